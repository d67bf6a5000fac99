/* softirq: how long a softirq held a CPU that a watched thread had. */
#include "triggers/bpf/handler.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile st_s32 only = -1; /* this softirq only */

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_begins, unsigned int vec)
{
    if (only < 0 || vec == (st_u32)only)
        handler_begins(vec);
    return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends, unsigned int vec)
{
    if (only < 0 || vec == (st_u32)only)
        handler_ends(ctx);
    return 0;
}

static const char names[16][9] = {"HI",      "TIMER", "NET_TX",  "NET_RX", "BLOCK", "IRQ_POLL",
                                  "TASKLET", "SCHED", "HRTIMER", "RCU",    "10",    "11",
                                  "12",      "13",    "14",      "15"};

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    add_attribute(r, "softirq=%s", names[t->mark & 15]);
}
