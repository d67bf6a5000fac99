/* runq: how long a runnable thread waited for a CPU, and who had it meanwhile. */
#include "triggers/bpf/quota.bpf.h"
#include "triggers/bpf/span.bpf.h"
#include "triggers/bpf/switch.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TURNS 512 /* what a real-time thread interrupts each millisecond has many */

const volatile st_u32 states; /* enum offcpu_state: what it was before it was runnable */

/* Who ran on a CPU, by its run queue's clock. */
struct turn {
    st_u64 from, to;

    st_u32 tid;

    char comm[16]; /* it may have ended when it is told of */
};

struct turns {
    struct turn last[TURNS];

    st_u32 n; /* the last is last[(n - 1) % TURNS] */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct turns);
} turns SEC(".maps");

static __always_inline void note_turn(struct task_struct *prev, st_u64 clock)
{
    st_u32 zero = 0;
    struct turns *all = bpf_map_lookup_elem(&turns, &zero);
    struct turn *t;

    if (!all)
        return;
    t = &all->last[all->n++ % TURNS];
    t->tid = prev->pid;
    bpf_core_read(t->comm, sizeof(t->comm), &prev->comm);
    t->from = prev->sched_info.last_arrival;
    t->to = clock;
}

/* ---- spans ---- */

static __always_inline void waits(struct thread *t, struct task_struct *task, st_u64 ktime)
{
    if (t->mark & states && is_member(t, task))
        span_begin(t, ktime);
}

static __always_inline int wakes(struct task_struct *task)
{
    struct thread *t = thread_of(task);

    /* Woken before it was off the CPU: it does not wait. */
    if (t && !t->start && !task->on_cpu)
        waits(t, task, bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(runq_wakeup, struct task_struct *task)
{
    return wakes(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(runq_wakeup_new, struct task_struct *task)
{
    return wakes(task);
}

static __always_inline st_u32 kind_of(bool preempt, st_u32 state)
{
    if (preempt || !state)
        return OFFCPU_PREEMPTED;
    return state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT) ? OFFCPU_BLOCKED : OFFCPU_SLEEPING;
}

static __always_inline void leaves(void *ctx, struct thread *t, struct task_struct *prev, bool preempt,
                                   st_u32 state, st_u64 clock)
{
    st_u64 ktime;

    if (t->start) { /* it came back unseen: not every kernel traces every switch */
        struct span_end end = {.ktime = bpf_ktime_get_ns() - (clock - prev->sched_info.last_arrival),
                               .task = prev};

        span_end_of(ctx, t, &end);
    }
    t->mark = kind_of(preempt, state);
    if (t->mark != OFFCPU_PREEMPTED)
        return;
    ktime = bpf_ktime_get_ns();
    waits(t, prev, ktime);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(runq_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    st_u32 prev_state = state_left(ctx, prev);
    st_u64 clock = run_queue(prev)->clock;
    struct span_end end = {.task = next};
    struct thread *t;

    if (!span.measure_only)
        note_turn(prev, clock);
    t = thread_of(prev);
    if (t && !(prev_state & TASK_DEAD))
        leaves(ctx, t, prev, preempt, prev_state, clock);
    t = thread_of(next);
    if (!t || !t->start)
        return 0;
    end.ktime = bpf_ktime_get_ns();
    end.ret = clock;
    span_end_of(ctx, t, &end);
    return 0;
}

static void span_found(struct thread *t, struct task_struct *task)
{
    t->mark = OFFCPU_PREEMPTED;
    if (task->__state || task->on_cpu || !(t->mark & states) || !is_member(t, task))
        return;
    t->cpu = task->thread_info.cpu;
    __sync_val_compare_and_swap(&t->start, 0, bpf_ktime_get_ns() & ~ONGOING);
}

/* ---- who had the CPU ---- */

struct search {
    struct turns *all;

    st_u64 since; /* the run queue's clock */

    st_u64 longest;

    st_u64 held; /* by whom the longest turn was, in all turns */

    st_u32 holder; /* the number of the longest turn, plus 1; 0: there was none */

    st_u32 tid; /* of its thread */

    st_u32 others;
};

/* For how long of the wait; 0: it was before it, or there was none. */
static __always_inline st_u64 within_wait(const struct turn *t, const struct search *s)
{
    return t->to > s->since ? t->to - (t->from > s->since ? t->from : s->since) : 0;
}

ST_STEP(look_at_turn, back, struct search *s)
{
    st_u32 number = (s->all->n - 1 - *back) % TURNS;
    struct turn *t = &s->all->last[number];
    st_u64 ns = within_wait(t, s);

    if (*back >= TURNS || t->to <= s->since)
        return 1;
    s->others++;
    if (ns > s->longest) {
        s->longest = ns;
        s->holder = number + 1;
        s->tid = t->tid;
    }
    return 0;
}

ST_STEP(add_turn, back, struct search *s)
{
    struct turn *t = &s->all->last[(s->all->n - 1 - *back) % TURNS];

    if (*back >= TURNS || t->to <= s->since)
        return 1;
    if (t->tid == s->tid)
        s->held += within_wait(t, s);
    return 0;
}

static __noinline void find_holder(struct thread *t, struct st_stall_record *r, st_u64 clock)
{
    st_u32 zero = 0;
    struct search s = {.all = bpf_map_lookup_elem(&turns, &zero), .since = clock - r->measured_ns};
    struct turn *holder;

    if (!s.all)
        return;
    st_steps(look_at_turn, &s);
    if (s.holder) {
        st_steps(add_turn, &s);
        holder = &s.all->last[(s.holder - 1) % TURNS];
        r->next_tid = holder->tid;
        __builtin_memcpy(r->next_comm, holder->comm, sizeof(r->next_comm));
    }
    add_attribute(r, "held_ns=%llu", s.held);
    add_attribute(r, "turns=%u", s.others);
}

static __noinline void find_running(struct thread *t, struct st_stall_record *r)
{
    struct task_struct *task = (struct task_struct *)t->task;
    struct task_struct *curr = BPF_CORE_READ(task, se.cfs_rq, rq, curr);

    r->cpu = BPF_CORE_READ(task, thread_info.cpu); /* who woke it may have been on another one */
    r->next_tid = BPF_CORE_READ(curr, pid);
    bpf_core_read(r->next_comm, sizeof(r->next_comm), &curr->comm);
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    long bytes;

    if (t->mark != OFFCPU_PREEMPTED)
        r->wake_ktime = r->start_ktime;
    about_quota(r, (struct task_struct *)t->task);
    if (!end) {
        find_running(t, r);
        return;
    }
    r->syscall = (st_s32)user_registers(end->task)->orig_ax;
    if (r->syscall < 0 || end->task->flags & PF_KTHREAD)
        r->syscall = -1;
    else
        copy_args(r->syscall_args, user_registers(end->task), false);
    r->cpu = bpf_get_smp_processor_id();
    bytes = bpf_get_task_stack(end->task, r->kstack, sizeof(r->kstack), 0);
    r->kstack_n = bytes > 0 ? bytes / sizeof(r->kstack[0]) : 0;
    find_holder(t, r, end->ret);
}
