/* What runs in place of a thread without being one: the spans of irq and softirq are a CPU's. One that goes
 * on cannot be told: it has the CPU whose timer would tell it. */
#ifndef ST_TRIGGERS_BPF_HANDLER_BPF_H
#define ST_TRIGGERS_BPF_HANDLER_BPF_H

#include "triggers/bpf/span.bpf.h"

#define HANDLER_SLOT 0x80000000u /* | CPU: what its record is kept by until it leaves */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct thread);
} handlers SEC(".maps");

/* Whether the thread that is interrupted is one of the target's; of a whole machine the idle ones too. */
static __always_inline bool interrupts_target(struct task_struct *task)
{
    struct thread *t;

    if (follow.mode == FOLLOW_ALL)
        return true;
    t = thread_of(task);
    return t && is_member(t, task);
}

static __always_inline struct thread *handler_begins(st_u64 which)
{
    st_u32 zero = 0;
    struct thread *h = bpf_map_lookup_elem(&handlers, &zero);

    if (!h || !interrupts_target(bpf_get_current_task_btf()))
        return NULL;
    h->mark = which;
    h->syscall = -1;
    span_begin(h, bpf_ktime_get_ns());
    return h;
}

static __always_inline void handler_ends(void *ctx)
{
    st_u32 zero = 0;
    struct thread *h = bpf_map_lookup_elem(&handlers, &zero);

    if (h && h->start)
        span_end(ctx, h, HANDLER_SLOT | bpf_get_smp_processor_id(), 0);
}

static void span_found(struct thread *t, struct task_struct *task)
{
}

#endif
