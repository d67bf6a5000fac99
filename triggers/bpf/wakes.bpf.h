/* Who wakes a thread whose span is over the threshold, and where the thread waited. Of several times it is
 * the one with the most time before it, since the wake-up before or since the span's begin: a short wait at
 * its end is not what the span was about. Behind span.bpf.h. */
#ifndef ST_TRIGGERS_BPF_WAKES_BPF_H
#define ST_TRIGGERS_BPF_WAKES_BPF_H

#include "triggers/bpf/span.bpf.h"

static __noinline void woken_late(void *ctx, struct task_struct *task, struct thread *t, st_u32 slot,
                                  st_u64 ktime)
{
    struct pending *p = new_pending(slot);
    st_u64 gap;
    long bytes;

    if (!p)
        return;
    gap = ktime - (t->woken && p->woken ? p->woken : t->start & ~ONGOING);
    p->woken = ktime;
    if (t->woken && gap <= p->gap)
        return;
    p->gap = gap;
    t->woken = 1;
    describe_waker(ctx, task, &p->r);
    p->r.wake_ktime = ktime;
    p->r.state = task->__state;
    bytes = bpf_get_task_stack(task, p->r.kstack, sizeof(p->r.kstack), 0);
    p->r.kstack_n = bytes > 0 ? bytes / sizeof(p->r.kstack[0]) : 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(span_waking, struct task_struct *task)
{
    struct thread *t = thread_of(task);
    st_u64 ktime;

    /* It wakes itself where what it waits for has come before it slept. */
    if (!t || !t->start || task == bpf_get_current_task_btf())
        return 0;
    ktime = bpf_ktime_get_ns();
    if (ktime - (t->start & ~ONGOING) >= threshold_ns)
        woken_late(ctx, task, t, t->slot, ktime);
    return 0;
}

#endif
