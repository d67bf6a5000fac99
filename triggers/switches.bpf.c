/* How many context switches of each CPU the tracepoint told, and how many it did not: there, who leaves the
 * CPU is not who came last. */
#include "triggers/bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct switches_seen {
    st_u64 last; /* address of the task that came last; 0: none yet */

    st_u64 traced;

    st_u64 untraced; /* at least: several in a row are one */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct switches_seen);
} seen SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(switches_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    st_u32 zero = 0;
    struct switches_seen *s = bpf_map_lookup_elem(&seen, &zero);

    if (!s)
        return 0;
    s->untraced += s->last && s->last != (st_u64)prev;
    s->last = (st_u64)next;
    s->traced++;
    return 0;
}
