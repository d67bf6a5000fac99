/* offcpu: the timer of each thread. It tells stalls that go on, and completes records when the thread runs.
 */
#ifndef ST_TRIGGERS_KINDS_OFFCPU_TIMER_BPF_H
#define ST_TRIGGERS_KINDS_OFFCPU_TIMER_BPF_H

#include "triggers/kinds/offcpu_record.bpf.h"

static int on_timer(void *map, st_u32 *key, struct thread *t);

static __always_inline void mark_missing(struct thread *t, st_u32 missing)
{
    if (__sync_lock_test_and_set(&t->timer_missing, missing) != missing)
        __sync_fetch_and_add(&without_timer, missing ? 1 : -1);
}

/* Allocates, and may fail: from 6.18 for want of memory that can be had without taking a lock. */
static __always_inline void make_timer(struct thread *t)
{
    long rc = bpf_timer_init(&t->timer, &threads, CLOCK_MONOTONIC);

    if (!rc || rc == -EBUSY) /* busy: it was made for another thread in this slot */
        t->timer_ready = !bpf_timer_set_callback(&t->timer, on_timer);
    mark_missing(t, !t->timer_ready);
}

/* Once a tick at most: a try that fails is dear. */
static __always_inline void make_timer_now(struct thread *t)
{
    st_u64 jiffies = bpf_jiffies64();

    if (!make_timers_anywhere || t->timer_tried == jiffies)
        return;
    t->timer_tried = jiffies;
    make_timer(t);
}

/* Callback first clears `armed`, then looks at `off`; a thread that leaves its CPU first sets `off`, then
 * looks at `armed`: both by atomic exchange, so one of them always sees the other. */
static __always_inline void arm(struct thread *t, st_u64 ns)
{
    if (!t->timer_ready || __sync_lock_test_and_set(&t->armed, 1))
        return;
    if (bpf_timer_start(&t->timer, ns, 0)) {
        t->armed = 0;
        __sync_fetch_and_add(&lost_threads, 1);
    }
}

static __always_inline void begin(struct thread *t, struct task_struct *task, bool make_now)
{
    t->off = 0;
    t->idle_since = 0;
    wait_forget(&offcpu.idle, task);
    t->emit = 0;
    t->waker = 0;
    t->css = 0;
    t->hist = 0;
    t->task = (st_u64)task;
    if (!offcpu.measure_only && !t->timer_ready && make_now)
        make_timer(t);
}

static void thread_begins(struct thread *t, struct task_struct *task)
{
    /* Of a whole machine's threads most only ever wait for work: there, the first wait that counts makes it.
     */
    begin(t, task, !(make_timers_anywhere && follow.mode != FOLLOW_PIDS));
}

static void thread_begins_late(struct thread *t, struct task_struct *task)
{
    begin(t, task, make_timers_anywhere);
}

static void returned_unseen(struct thread *t, st_u32 slot, struct task_struct *task);

static void thread_exits(void *ctx, struct thread *t)
{
    wait_has_ended(&offcpu.idle, bpf_get_current_task_btf());
}

static __always_inline void thread_ends(struct thread *t, st_u32 slot)
{
    struct task_struct *current = bpf_get_current_task_btf();

    if (t->off > RUNNING && t->task == (st_u64)current)
        returned_unseen(t, slot, current);
    flush(t, slot);
    t->task = 0;
    t->off = 0;
    bpf_map_delete_elem(&pending, &slot);
    mark_missing(t, 0);
}

/* A wait over the threshold has ended: `task` is about to run. The timer goes off as soon as interrupts are
 * on, when the thread is current, still on its way out of the kernel. */
static __noinline void tell_ended(struct thread *t, st_u32 slot, struct task_struct *task, st_u64 took,
                                  st_u64 told_start)
{
    struct pending *p = new_pending(slot);

    if (!p) {
        p = cleared_scratch();
        if (!p)
            return;
        fill_ended(p, t, task, took, told_start);
        write_record(OUTPUT_SCRATCH, 0, &p->r);
        return;
    }
    fill_ended(p, t, task, took, told_start);
    t->tries = 0;
    __sync_lock_test_and_set(&t->emit, 1);
    /* Who slept comes out of schedule(), where offcpu_scheduled waits for it; starting a timer takes long. */
    if (offcpu.early && t->state)
        return;
    t->armed = 1;
    if (bpf_timer_start(&t->timer, 0, 0)) {
        t->armed = 0;
        flush(t, slot);
    }
}

/* The record is filled before the stall is marked as told: as long as `off` is what it was, the thread is in
 * that wait, and what is kept of it is of that wait. */
static __noinline void tell_ongoing(struct thread *t, st_u64 off, st_u64 ktime)
{
    struct pending *p = cleared_scratch();

    if (!p)
        return;
    base_record(&p->r, t, ST_STALL_ONGOING | ST_STALL_FIRED);
    p->r.seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = off + t->ktime_offset;
    p->r.measured_ns = ktime - p->r.start_ktime;
    name_thread(&p->r, (struct task_struct *)t->task);
    if (!t->state)
        about_quota(&p->r, (struct task_struct *)t->task);
    else if (uring_told && t->syscall == NR_IO_URING_ENTER && !(t->flags & ST_STALL_COMPAT))
        about_uring(&p->r);
    t->seq = p->r.seq;
    if (__sync_val_compare_and_swap(&t->off, off, off | ONGOING) != off ||
        try_record(OUTPUT_SCRATCH, 0, &p->r))
        return;
    if (__sync_val_compare_and_swap(&t->off, off | ONGOING, off) == (off | ONGOING))
        arm(t, TRY_AGAIN_NS);
    else /* it has just come back, and its end is told of a stall that was not */
        count_lost_record();
}

static __noinline void look_at_ongoing(struct thread *t)
{
    struct task_struct *task = (struct task_struct *)t->task;
    st_u64 off = *(volatile st_u64 *)&t->off, ktime, took, due;

    if (!task || off <= RUNNING || off & ONGOING)
        return;
    if (BPF_CORE_READ(task, sched_info.last_arrival) > off) /* back, unseen */
        return;
    ktime = bpf_ktime_get_ns();
    took = ktime - (off + t->ktime_offset);
    due = threshold_ns + ST_GRACE_NS;
    if ((long long)took < (long long)due) {
        arm(t, due - took);
        return;
    }
    if (ktime < hold_until_ktime) {
        st_u64 left = hold_until_ktime - ktime;

        arm(t, left < HOLD_LOOK_NS ? left : HOLD_LOOK_NS);
        return;
    }
    tell_ongoing(t, off, ktime);
}

/* The record stays where it is; should the thread leave its CPU before, it goes out then. */
static __always_inline void try_later(struct thread *t, st_u32 slot)
{
    if (++t->tries > MAX_TRIES) {
        give_up_record(slot);
        return;
    }
    __sync_lock_test_and_set(&t->emit, 1);
    arm(t, TRY_AGAIN_NS);
}

static int on_timer(void *map, st_u32 *key, struct thread *t)
{
    bool out = !has_to_emit(t) || finish_record(t, *key);

    __sync_lock_test_and_set(&t->armed, 0);
    if (!out)
        try_later(t, *key);
    look_at_ongoing(t);
    return 0;
}

#endif
