/* bpftrace: writes the record that user space made of a line, from the kernel like those of all other kinds.
 * Run by user space (BPF_PROG_TEST_RUN), attached to nothing. */
#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile st_u32 self; /* our own process */

st_u64 lost_records;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct st_stall_record);
} told SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, sizeof(int));
    __uint(value_size, sizeof(int));
} events SEC(".maps");

SEC("raw_tp")
int bpftrace_tell(void *ctx)
{
    st_u32 zero = 0;
    struct st_stall_record *r = bpf_map_lookup_elem(&told, &zero);

    if (!r)
        return 0;
    if (r->flags & ST_STALL_FIRED)
        bpf_printk("stalltrap %u: --on %u fired, stall %llu", self, r->trigger, r->seq);
    r->now_ktime = bpf_ktime_get_ns();
    if (bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, r, sizeof(*r)))
        __sync_fetch_and_add(&lost_records, 1);
    return 0;
}
