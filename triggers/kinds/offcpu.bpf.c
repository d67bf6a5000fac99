/* offcpu: how long a watched thread was off its CPU. The path of every context switch is kept short: one
 * task-storage look-up a watched thread, the run queue's own clock, no stack; all else happens past the
 * threshold. */
#include "triggers/bpf/switch.bpf.h"
#include "triggers/kinds/offcpu_counts.bpf.h"
#include "triggers/kinds/offcpu_iter.bpf.h"
#include "triggers/kinds/offcpu_timer.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The thread is back since `now` (by the switch clock). */
static __always_inline void ended(struct thread *t, st_u32 slot, struct task_struct *task, st_u64 now)
{
    st_u64 off = t->off, took = now - (off & ~ONGOING);

    if ((long long)took < 0)
        took = 0;
    measure(took, t);
    if (took < threshold_ns || offcpu.measure_only) {
        t->off = RUNNING;
        return;
    }
    off = __sync_lock_test_and_set(&t->off, RUNNING);
    tell_ended(t, slot, task, took, off & ONGOING ? (off & ~ONGOING) + t->ktime_offset : 0);
    if (offcpu.worst && took >= threshold_ns)
        threshold_ns = took + 1;
}

static __always_inline void enters(struct thread *t, st_u32 slot, struct task_struct *next)
{
    if (t->idle_since)
        idle_is_over(t, next, switch_clock(next));
    if (t->off <= RUNNING) {
        t->off = RUNNING;
        return;
    }
    ended(t, slot, next, switch_clock(next));
}

/* It leaves its CPU and had not come back: not every kernel traces every switch. */
static __noinline void returned_unseen(struct thread *t, st_u32 slot, struct task_struct *task)
{
    st_u64 arrival = task->sched_info.last_arrival;

    t->back_since = switch_clock(task) - arrival;
    ended(t, slot, task, arrival);
    t->back_since = 0;
}

static __always_inline void leaves(struct thread *t, st_u32 slot, struct task_struct *prev,
                                   struct task_struct *next, bool preempt, st_u32 state)
{
    flush(t, slot);
    if (t->idle_since)
        idle_is_over(t, prev, prev->sched_info.last_arrival);
    if (!t->off)
        t->off = RUNNING;
    else if (t->off > RUNNING)
        returned_unseen(t, slot, prev);
    if (state & NEVER_COUNTS)
        return;
    /* The latter: woken again before it was off, or not put to sleep because a signal was pending. */
    if (preempt || prev->__state != state)
        state = 0;
    if (!counts(t, prev, state, true))
        return;
    t->waker_ctx = ST_WAKER_NONE;
    t->waker = 0;
    t->cpu = bpf_get_smp_processor_id();
    t->next_tid = next->pid;
    if (!state && !offcpu.measure_only)
        bpf_core_read(t->next_comm, sizeof(t->next_comm), &next->comm);
    if (offcpu.measure_only) {
        t->off = switch_clock(prev);
        return;
    }
    t->off_jiffies = bpf_jiffies64();
    __sync_lock_test_and_set(&t->off, switch_clock(prev));
    if (!t->armed || t->offset_rough) {
        if (!t->timer_ready)
            make_timer_now(t);
        t->ktime_offset = bpf_ktime_get_ns() - switch_clock(prev);
        t->offset_rough = 0;
        arm(t, threshold_ns + ST_GRACE_NS);
    }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    struct thread *t = thread_of(prev);

    if (t)
        leaves(t, t->slot, prev, next, preempt, state_left(ctx, prev));
    t = thread_of(next);
    if (t)
        enters(t, t->slot, next);
    return 0;
}

/* A record that waits for its thread leaves at the latest as schedule() returns in it. */
SEC("fexit/schedule")
int offcpu_scheduled(void *ctx)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());

    (void)ctx;
    if (t)
        flush(t, t->slot);
    return 0;
}

/* Woken past the threshold: now the waker's stack is there to be walked. */
static __noinline void woken_late(void *ctx, struct task_struct *task, st_u32 slot, st_u64 since,
                                  st_u64 ktime)
{
    struct pending *p = new_pending(slot);

    if (!p)
        return;
    describe_waker(ctx, task, &p->r);
    keep_waking_python(p);
    about_socket(&p->r, since, ktime);
    p->r.wake_ktime = ktime;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(offcpu_waking, struct task_struct *task)
{
    struct thread *t = thread_of(task);
    st_u64 ktime, since;

    if (!t || t->off <= RUNNING || !t->state)
        return 0;
    t->waker = bpf_get_current_pid_tgid();
    t->waker_ctx = context_of(preempt_count());
    /* jiffies cost nothing, but lag where a tick was late: half the threshold is margin enough. */
    if ((bpf_jiffies64() - t->off_jiffies + 2) * offcpu.tick_ns * 2 < threshold_ns)
        return 0;
    ktime = bpf_ktime_get_ns();
    since = (t->off & ~ONGOING) + t->ktime_offset;
    if (ktime - since >= threshold_ns)
        woken_late(ctx, task, t->slot, since, ktime);
    return 0;
}
