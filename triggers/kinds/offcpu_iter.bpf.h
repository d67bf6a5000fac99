/* offcpu: what user space runs over the threads that are there. */
#ifndef ST_TRIGGERS_KINDS_OFFCPU_ITER_BPF_H
#define ST_TRIGGERS_KINDS_OFFCPU_ITER_BPF_H

#include "triggers/bpf/look.bpf.h"
#include "triggers/kinds/offcpu_counts.bpf.h"
#include "triggers/kinds/offcpu_timer.bpf.h"

/* A thread that is off its CPU when it begins to be watched: it counts from now. */
static __always_inline void begin_off(struct thread *t, struct task_struct *task)
{
    st_u64 clock;

    if (*(volatile st_u64 *)&t->off || !counts(t, task, task->__state, false))
        return;
    t->cpu = task->thread_info.cpu;
    t->off_jiffies = bpf_jiffies64();
    clock = switch_clock(bpf_get_current_task_btf());
    if (clock <= task->sched_info.last_arrival) /* this run queue's clock is a little behind */
        clock = (task->sched_info.last_arrival | ONGOING) + 1;
    t->ktime_offset = bpf_ktime_get_ns() - clock;
    t->offset_rough = 1;
    t->flags |= ST_STALL_FOUND;
    if (__sync_val_compare_and_swap(&t->off, 0, clock) || offcpu.measure_only)
        return;
    if (!t->timer_ready)
        make_timer(t);
    arm(t, threshold_ns + ST_GRACE_NS);
}

/* Begins to watch the threads that are there already. Runs again when some of them got no timer. */
SEC("iter/task")
int offcpu_adopt(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread *t;

    if (!places_are_right())
        broken_places = 1;
    if (!task || !wanted(task))
        return 0;
    adopt(task, false);
    t = thread_of(task);
    if (!t)
        return 0;
    if (t->timer_missing) {
        make_timer(t);
        if (*(volatile st_u64 *)&t->off > RUNNING)
            arm(t, threshold_ns + ST_GRACE_NS);
    }
    if (!follow.newborn && task->__state && !(task->__state & NEVER_COUNTS) && !task->on_cpu)
        begin_off(t, task);
    return 0;
}

/* What is to be known of a thread whose stall was told as ongoing and still goes on. */
SEC("iter/task")
int offcpu_look_at(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread_look *l;
    struct thread *t;
    st_u32 zero = 0;

    t = is_looked_for(task) ? thread_of(task) : NULL;
    l = bpf_map_lookup_elem(&look, &zero);
    if (!t || !l || !(t->off & ONGOING))
        return 0;
    look_at_thread(l, task, t->flags & ST_STALL_COMPAT, false);
    l->seq = *(volatile st_u64 *)&t->off & ONGOING ? t->seq : 0;
    bpf_seq_write(ctx->meta->seq, l, sizeof(*l));
    return 0;
}

#endif
