// The predicate of probe_auxpause: a thread was off its CPU for longer than a threshold. On a hit it fires
// the tracepoint bpf_trace:bpf_trace_printk, on which the event with aux_pause sits, at one of several
// places.
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probe_auxpause.h"

#include <stdbool.h>

struct task_struct {
    int pid;
} __attribute__((preserve_access_index));

const volatile __u64 threshold_ns;
const volatile int place;

int target; /* the thread */
__u64 off_since;
__u64 hit_ns;   /* the predicate held */
__u64 fired_ns; /* the tracepoint was fired */
int hits;
int fired_on; /* the thread that was current when it was fired */
int pending;

struct slot {
    struct bpf_timer timer;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct slot);
} timers SEC(".maps");

static void fire(void)
{
    fired_ns = bpf_ktime_get_ns();
    fired_on = (int)bpf_get_current_pid_tgid();
    bpf_printk("stalltrap %d", target);
}

static int timer_fired(void *map, int *key, struct slot *slot)
{
    (void)map, (void)key, (void)slot;
    fire();
    return 0;
}

static void start_timer(void)
{
    struct slot *slot;
    int zero = 0;

    slot = bpf_map_lookup_elem(&timers, &zero);
    if (!slot)
        return;
    bpf_timer_init(&slot->timer, &timers, 1 /* CLOCK_MONOTONIC */);
    bpf_timer_set_callback(&slot->timer, timer_fired);
    bpf_timer_start(&slot->timer, 0, 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    __u64 now = bpf_ktime_get_ns();

    (void)ctx, (void)preempt;
    if (prev->pid == target)
        off_since = now;
    if (next->pid != target || !off_since || now - off_since < threshold_ns)
        return 0;
    off_since = 0;
    hits++;
    hit_ns = now;
    if (place == AT_SWITCH)
        fire();
    else if (place == AT_TIMER)
        start_timer();
    else
        pending = 1;
    return 0;
}

static void at_place(void)
{
    if (pending && (int)bpf_get_current_pid_tgid() == target) {
        pending = 0;
        fire();
    }
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit)
{
    (void)ctx;
    if (place == AT_SYS_EXIT)
        at_place();
    return 0;
}

SEC("fexit/schedule")
int BPF_PROG(on_schedule)
{
    (void)ctx;
    if (place == AT_SCHEDULE)
        at_place();
    return 0;
}

SEC("kprobe/finish_task_switch.isra.0")
int on_finish(void *ctx)
{
    (void)ctx;
    if (place == AT_FINISH)
        at_place();
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
