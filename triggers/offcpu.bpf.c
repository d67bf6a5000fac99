/* offcpu: how long a watched thread was off its CPU. The path of every context switch is kept short: one
 * task-storage look-up a watched thread, the run queue's own clock, no stack; all else happens past the
 * threshold. */
#include "triggers/config.h"
#include "triggers/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define CLOCK_MONOTONIC 1
#define EBUSY           16
#define ONGOING         1ull /* bit of thread.off: told as ongoing */
#define RUNNING         2ull /* thread.off: not off, or not in a way that counts; 0: not seen yet */
#define HOLD_LOOK_NS    50000000ull

struct thread {
    struct bpf_timer timer;

    st_u64 off; /* clock when it left its CPU, without the lowest bit; or RUNNING, or 0 */

    st_u64 task; /* kernel address; 0: the slot is free */

    st_u64 off_jiffies;

    st_u64 waker; /* pid << 32 | tid */

    st_u32 waker_ctx; /* ST_WAKER_NONE: not woken yet */

    st_u32 state;

    st_s32 syscall;

    st_u32 flags; /* ST_STALL_IDLE, ST_STALL_COMPAT */

    st_u32 cpu;

    st_u32 next_tid;

    st_u32 armed; /* the timer is, or will be looked at by its callback */

    st_u32 emit; /* a record in `pending` waits for the thread's user stack */

    st_u32 timer_ready;

    st_u64 ktime_offset; /* bpf_ktime_get_ns() - clock, when the timer was armed */

    st_u64 seq; /* of the record that told it as ongoing */

    st_u64 css; /* FOLLOW_CGROUP: the css_set that was looked at last, and what was found */

    st_u32 member;

    char next_comm[16]; /* who preempted it */
};

#include "triggers/context.bpf.h"
#include "triggers/follow.bpf.h"
#include "triggers/output.bpf.h"

const volatile struct offcpu_config offcpu;

/* The kernel allocates a timer without taking locks, so it may be done where the run queue's lock is held. */
const volatile st_u32 make_timers_anywhere;

st_u64 threshold_ns;
st_u64 hold_until_ktime; /* nothing fires before */
st_u32 timers_missing;   /* threads that the last run of offcpu_adopt left without a timer */
st_u32 broken_places;    /* this kernel's per-CPU section is not as BTF tells */

/* Zeros (an array of bytes: the skeleton does not know struct pending). */
const char no_record[sizeof(struct pending)] __attribute__((aligned(8))) = {0};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct hist);
} hist SEC(".maps");

/* The run queue's clock (sched_clock, ns) is up to date at sched_switch and costs three loads;
 * bpf_ktime_get_ns() reads the clock source: more than the rest of the program. */
static __always_inline st_u64 switch_clock(struct task_struct *running)
{
    return run_queue(running)->clock & ~ONGOING;
}

static __always_inline struct thread *thread_at(const st_u32 *slot)
{
    return slot ? bpf_map_lookup_elem(&threads, slot) : NULL;
}

/* ---- the timer: tells stalls that go on, and completes records when the thread runs ---- */

static int on_timer(void *map, st_u32 *key, struct thread *t);

/* Allocates, and may fail for want of memory: from 6.18 quite easily, when many are made at once. */
static __always_inline void make_timer(struct thread *t)
{
    long rc = bpf_timer_init(&t->timer, &threads, CLOCK_MONOTONIC);

    if (rc && rc != -EBUSY) /* busy: it was made for another thread in this slot */
        return;
    t->timer_ready = !bpf_timer_set_callback(&t->timer, on_timer);
}

/* Callback first clears `armed`, then looks at `off`; a thread that leaves its CPU first sets `off`, then
 * looks at `armed`: both by atomic exchange, so one of them always sees the other. */
static __always_inline int arm(struct thread *t, st_u64 ns)
{
    long rc;

    if (__sync_lock_test_and_set(&t->armed, 1))
        return 0;
    rc = bpf_timer_start(&t->timer, ns, 0);
    if (rc) {
        t->armed = 0;
        __sync_fetch_and_add(&lost_threads, 1);
    }
    return rc;
}

static void thread_begins(struct thread *t, struct task_struct *task)
{
    t->off = 0;
    t->emit = 0;
    t->waker = 0;
    t->css = 0;
    bpf_timer_init(&t->timer, &threads,
                   CLOCK_MONOTONIC); /* -EBUSY when the slot was in use before: is initialised */
    bpf_timer_set_callback(&t->timer, on_timer);
    t->task = (st_u64)task;
}

/* ---- records ---- */

static __always_inline void base_record(struct st_stall_record *r, struct thread *t, st_u32 flags)
{
    r->magic = ST_STALL_MAGIC;
    r->version = ST_STALL_VERSION;
    r->kind = ST_STALL_OFFCPU;
    r->trigger = offcpu.trigger;
    r->flags = flags | t->flags;
    r->threshold_ns = threshold_ns;
    r->state = t->state;
    r->syscall = t->syscall;
    r->cpu = t->cpu;
    r->next_tid = t->next_tid;
    if (!t->state)
        __builtin_memcpy(r->next_comm, t->next_comm, sizeof(r->next_comm));
}

static __always_inline void name_thread(struct st_stall_record *r, struct task_struct *task)
{
    r->pid = BPF_CORE_READ(task, tgid);
    r->tid = BPF_CORE_READ(task, pid);
    bpf_core_read(r->comm, sizeof(r->comm), &task->comm);
}

static __always_inline void copy_args(st_u64 *args, struct pt_regs *regs, bool compat)
{
    args[0] = compat ? regs->bx : regs->di;
    args[1] = compat ? regs->cx : regs->si;
    args[2] = regs->dx;
    args[3] = compat ? regs->si : regs->r10;
    args[4] = compat ? regs->di : regs->r8;
    args[5] = compat ? regs->bp : regs->r9;
}

/* The thread's registers in user space, as they are on its kernel stack. */
static __always_inline void copy_user_registers(struct pending *p, struct task_struct *task)
{
    struct pt_regs *regs;

    if (task->flags & PF_KTHREAD)
        return;
    regs = user_registers(task);
    p->r.ustack[0] = regs->ip;
    p->r.ustack_n = 1;
    p->sp = regs->sp;
    p->bp = regs->bp;
    if (p->r.syscall >= 0)
        copy_args(p->r.syscall_args, regs, p->r.flags & ST_STALL_COMPAT);
}

static __always_inline bool fires(st_u64 ktime)
{
    return ktime >= hold_until_ktime;
}

/* `took` is by the switch clock; a stall that was told keeps the start that was told. */
static __always_inline void fill_ended(struct pending *p, struct thread *t, struct task_struct *task,
                                       st_u64 took, st_u64 told_start)
{
    struct st_stall_record *r = &p->r;
    st_u64 ktime = bpf_ktime_get_ns();
    long bytes;

    base_record(r, t, told_start ? ST_STALL_COMPLETION : fires(ktime) ? ST_STALL_FIRED : 0);
    r->seq = told_start ? t->seq : __sync_fetch_and_add(&last_seq, 1) + 1;
    r->start_ktime = told_start ? told_start : ktime - took;
    r->end_ktime = ktime;
    r->measured_ns = ktime - r->start_ktime;
    name_thread(r, task);
    /* Woken before the threshold: known without the stack. */
    if (t->state && !r->waker_ctx) {
        r->waker_ctx = t->waker_ctx;
        r->waker_pid = t->waker >> 32;
        r->waker_tid = (st_u32)t->waker;
    }
    bytes = bpf_get_task_stack(task, r->kstack, sizeof(r->kstack), 0);
    r->kstack_n = bytes > 0 ? bytes / sizeof(r->kstack[0]) : 0;
    copy_user_registers(p, task);
    p->run_delay = task->sched_info.run_delay;
}

/* How long it waited in the run queue is known once it runs: then it was woken. */
static __always_inline void find_wake_time(struct pending *p, struct task_struct *task)
{
    st_u64 waited = task->sched_info.run_delay - p->run_delay;

    if (!p->r.wake_ktime && p->r.state && p->r.waker_ctx && waited < p->r.measured_ns)
        p->r.wake_ktime = p->r.end_ktime - waited;
}

/* The last part of a record: the user stack, if the thread itself is current; and out. */
static __noinline void finish_record(struct thread *t, st_u32 slot)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct pending *p = bpf_map_lookup_elem(&pending, &slot);

    if (!p)
        return;
    if (offcpu.early && p->r.flags & ST_STALL_FIRED)
        announce(&p->r);
    if (p->r.ustack_n && (st_u64)task == t->task) {
        struct pt_regs *regs = user_registers(task);

        if (regs->ip != p->r.ustack[0] || regs->sp != p->sp)
            p->r.flags |= ST_STALL_STACK_LATE;
        find_wake_time(p, task);
        if (!(p->r.flags & ST_STALL_COMPAT))
            walk_user_stack(p);
    }
    write_record(OUTPUT_PENDING, slot, &p->r);
    bpf_map_delete_elem(&pending, &slot);
}

static __always_inline void flush(struct thread *t, st_u32 slot)
{
    if (t->emit && __sync_lock_test_and_set(&t->emit, 0))
        finish_record(t, slot);
}

static void thread_ends(struct thread *t, st_u32 slot)
{
    flush(t, slot);
    t->task = 0;
    t->off = 0;
    bpf_map_delete_elem(&pending, &slot);
}

static __always_inline struct pending *cleared_scratch(void)
{
    st_u32 zero = 0;
    struct pending *p = bpf_map_lookup_elem(&scratch, &zero);

    if (p)
        bpf_probe_read_kernel(p, sizeof(*p), no_record);
    return p;
}

static __always_inline struct pending *new_pending(st_u32 slot)
{
    struct pending *p = bpf_map_lookup_elem(&pending, &slot);

    if (p)
        return p;
    bpf_map_update_elem(&pending, &slot, (void *)no_record, BPF_ANY);
    return bpf_map_lookup_elem(&pending, &slot);
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

static __noinline void tell_ongoing(struct thread *t, st_u64 ktime, st_u64 took)
{
    struct pending *p = cleared_scratch();

    if (!p)
        return;
    base_record(&p->r, t, ST_STALL_ONGOING | ST_STALL_FIRED);
    p->r.seq = t->seq;
    p->r.start_ktime = ktime - took;
    p->r.measured_ns = took;
    name_thread(&p->r, (struct task_struct *)t->task);
    write_record(OUTPUT_SCRATCH, 0, &p->r);
}

static __noinline void look_at_ongoing(struct thread *t)
{
    st_u64 off = *(volatile st_u64 *)&t->off, ktime, took, due;

    if (!t->task || off <= RUNNING || off & ONGOING)
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
    t->seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    if (__sync_val_compare_and_swap(&t->off, off, off | ONGOING) == off)
        tell_ongoing(t, ktime, took);
}

static int on_timer(void *map, st_u32 *key, struct thread *t)
{
    flush(t, *key);
    __sync_lock_test_and_set(&t->armed, 0);
    look_at_ongoing(t);
    return 0;
}

/* ---- the path of every switch ---- */

static __always_inline bool in_set(const volatile st_u64 *set, st_u32 nr)
{
    return nr < OFFCPU_SYSCALLS && set[nr / 64] >> (nr % 64) & 1;
}

enum {
    NR_FUTEX = 202,
    NR_IO_URING_ENTER = 426,
    NR32_FUTEX = 240,
    NR32_FUTEX_TIME64 = 422,
    FUTEX_CMD_MASK = 0x7f,
    FUTEX_WAIT_BITSET = 9,
    IORING_ENTER_GETEVENTS = 1,
};

/* In which system call, and whether that is a wait for work. */
static __always_inline bool classify_syscall(struct thread *t, struct task_struct *task)
{
    struct pt_regs *regs = user_registers(task);
    st_s32 nr = (st_s32)regs->orig_ax;

    t->syscall = nr < 0 ? -1 : nr;
    if (nr < 0)
        return false;
    if (task->thread_info.status & TS_COMPAT) {
        t->flags = ST_STALL_COMPAT;
        if (nr == NR32_FUTEX || nr == NR32_FUTEX_TIME64)
            return (regs->cx & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET || in_set(offcpu.idle32, nr);
        if (nr == NR_IO_URING_ENTER)
            return regs->si & IORING_ENTER_GETEVENTS || in_set(offcpu.idle32, nr);
        return in_set(offcpu.idle32, nr);
    }
    if (nr == NR_FUTEX && (regs->si & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return true;
    if (nr == NR_IO_URING_ENTER && regs->r10 & IORING_ENTER_GETEVENTS)
        return true;
    return in_set(offcpu.idle, nr);
}

static __always_inline bool is_idle(struct thread *t, struct task_struct *task, st_u32 kind, st_u32 state)
{
    st_u32 flags = task->flags;
    bool listed;

    t->syscall = -1;
    t->flags = 0;
    if (flags & PF_KTHREAD)
        return kind == OFFCPU_SLEEPING || (kind == OFFCPU_BLOCKED && state & TASK_NOLOAD);
    listed = classify_syscall(t, task);
    if (flags & (PF_IO_WORKER | PF_USER_WORKER))
        return kind != OFFCPU_PREEMPTED;
    return kind == OFFCPU_SLEEPING && listed;
}

static __always_inline bool is_member(struct thread *t, struct task_struct *task)
{
    if (follow.mode != FOLLOW_CGROUP)
        return true;
    if (t->css != (st_u64)task->cgroups) {
        t->css = (st_u64)task->cgroups;
        t->member = in_cgroup(task);
    }
    return t->member;
}

/* Whether this kind of being off the CPU counts; sets the thread's state and system call. */
static __always_inline bool counts(struct thread *t, struct task_struct *task, st_u32 state)
{
    st_u32 kind = state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT) ? OFFCPU_BLOCKED
                  : state & TASK_INTERRUPTIBLE                      ? OFFCPU_SLEEPING
                  : state                                           ? 0
                                                                    : OFFCPU_PREEMPTED;

    if (!(kind & offcpu.states) || !is_member(t, task))
        return false;
    t->state = state;
    if (!is_idle(t, task, kind, state))
        return true;
    t->flags |= ST_STALL_IDLE;
    return offcpu.count_idle;
}

enum { NEVER_COUNTS = TASK_STOPPED_BIT | TASK_TRACED_BIT | TASK_PARKED | TASK_DEAD | TASK_FROZEN | TASK_NEW };

static __always_inline void leaves(struct thread *t, st_u32 slot, struct task_struct *prev,
                                   struct task_struct *next, bool preempt, st_u32 state)
{
    flush(t, slot);
    if (!t->off)
        t->off = RUNNING;
    if (state & NEVER_COUNTS)
        return;
    if (preempt || !prev->__state) /* the latter: a signal was pending, it was not put to sleep */
        state = 0;
    if (!counts(t, prev, state))
        return;
    t->waker_ctx = ST_WAKER_NONE;
    t->waker = 0;
    t->cpu = bpf_get_smp_processor_id();
    t->next_tid = next->pid;
    if (!state)
        bpf_core_read(t->next_comm, sizeof(t->next_comm), &next->comm);
    if (offcpu.measure_only) {
        t->off = switch_clock(prev);
        return;
    }
    t->off_jiffies = bpf_jiffies64();
    __sync_lock_test_and_set(&t->off, switch_clock(prev));
    if (!t->armed) {
        if (!t->timer_ready && make_timers_anywhere)
            make_timer(t);
        t->ktime_offset = bpf_ktime_get_ns() - switch_clock(prev);
        arm(t, threshold_ns + ST_GRACE_NS);
    }
}

static __always_inline st_u32 log2_of(st_u64 v)
{
    st_u32 n = 0;

#pragma unroll
    for (st_u32 step = 32; step; step /= 2)
        if (v >> step) {
            v >>= step;
            n += step;
        }
    return n;
}

static __always_inline void measure(st_u64 took)
{
    st_u32 zero = 0, power, step;
    struct hist *h = bpf_map_lookup_elem(&hist, &zero);

    if (!h)
        return;
    power = log2_of(took);
    step = (power >= 3 ? took >> (power - 3) : took << (3 - power)) & (HIST_STEPS - 1);
    h->bucket[(power * HIST_STEPS + step) & (HIST_BUCKETS - 1)]++;
    h->sum += took;
    if (took > h->worst)
        h->worst = took;
}

static __always_inline void enters(struct thread *t, st_u32 slot, struct task_struct *next)
{
    st_u64 off = t->off, now, took;

    if (off <= RUNNING) {
        t->off = RUNNING;
        return;
    }
    now = switch_clock(next);
    took = now - (off & ~ONGOING);
    if ((long long)took < 0)
        took = 0;
    measure(took);
    if (took < threshold_ns || offcpu.measure_only) {
        t->off = RUNNING;
        return;
    }
    off = __sync_lock_test_and_set(&t->off, RUNNING);
    tell_ended(t, slot, next, took, off & ONGOING ? (off & ~ONGOING) + t->ktime_offset : 0);
    if (offcpu.worst)
        threshold_ns = took + 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state)
{
    st_u32 *slot = slot_of(prev);
    struct thread *t = thread_at(slot);

    if (t)
        leaves(t, *slot, prev, next, preempt, prev_state);
    slot = slot_of(next);
    t = thread_at(slot);
    if (t)
        enters(t, *slot, next);
    return 0;
}

/* A record that waits for its thread leaves at the latest as schedule() returns in it. */
SEC("fexit/schedule")
int offcpu_scheduled(void *ctx)
{
    st_u32 *slot = slot_of(bpf_get_current_task_btf());
    struct thread *t = thread_at(slot);

    (void)ctx;
    if (t)
        flush(t, *slot);
    return 0;
}

/* Woken past the threshold: now the waker's stack is there to be walked. */
static __noinline void woken_late(void *ctx, st_u32 slot, st_u64 ktime)
{
    struct pending *p = new_pending(slot);

    if (!p)
        return;
    describe_waker(ctx, &p->r);
    p->r.wake_ktime = ktime;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(offcpu_waking, struct task_struct *task)
{
    st_u32 *slot = slot_of(task);
    struct thread *t = thread_at(slot);
    st_u64 ktime;

    if (!t || t->off <= RUNNING || !t->state)
        return 0;
    t->waker = bpf_get_current_pid_tgid();
    t->waker_ctx = context_of(preempt_count());
    /* jiffies cost nothing, but lag where a tick was late: half the threshold is margin enough. */
    if ((bpf_jiffies64() - t->off_jiffies + 2) * offcpu.tick_ns * 2 < threshold_ns)
        return 0;
    ktime = bpf_ktime_get_ns();
    if (ktime - (t->off & ~ONGOING) - t->ktime_offset >= threshold_ns)
        woken_late(ctx, *slot, ktime);
    return 0;
}

/* ---- run by user space ---- */

/* Begins to watch the threads that are there already. One that is off its CPU now counts from now. */
SEC("iter/task")
int offcpu_adopt(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread *t;
    st_u32 *slot;
    st_u64 clock;

    if (!places_are_right())
        broken_places = 1;
    if (!task || !wanted(task))
        return 0;
    adopt(task);
    slot = bpf_task_storage_get(&slots, task, NULL, 0);
    t = thread_at(slot);
    if (t && !t->timer_ready)
        make_timer(t);
    if (t && !t->timer_ready)
        __sync_fetch_and_add(&timers_missing, 1);
    if (!t || follow.newborn || !task->__state || task->__state & NEVER_COUNTS || task->on_cpu)
        return 0;
    if (*(volatile st_u64 *)&t->off || !counts(t, task, task->__state))
        return 0;
    t->cpu = task->thread_info.cpu;
    t->off_jiffies = bpf_jiffies64();
    clock = switch_clock(bpf_get_current_task_btf());
    t->ktime_offset = bpf_ktime_get_ns() - clock;
    if (!__sync_val_compare_and_swap(&t->off, 0, clock) && !offcpu.measure_only)
        arm(t, threshold_ns + ST_GRACE_NS);
    return 0;
}

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct offcpu_look);
} look SEC(".maps");

/* What is to be known of a thread whose stall was told as ongoing and still goes on. */
SEC("iter/task")
int offcpu_look_at(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct offcpu_look *l;
    struct pt_regs *regs;
    struct thread *t;
    st_u32 zero = 0;
    long bytes;

    t = task ? thread_at(bpf_task_storage_get(&slots, task, NULL, 0)) : NULL;
    l = bpf_map_lookup_elem(&look, &zero);
    if (!t || !l || !(t->off & ONGOING))
        return 0;
    regs = user_registers(task);
    l->ip = regs->ip;
    l->sp = regs->sp;
    l->bp = regs->bp;
    l->compat = !!(t->flags & ST_STALL_COMPAT);
    copy_args(l->args, regs, l->compat);
    bytes = bpf_get_task_stack(task, l->kstack, sizeof(l->kstack), 0);
    l->kstack_n = bytes > 0 ? bytes / sizeof(l->kstack[0]) : 0;
    l->seq = *(volatile st_u64 *)&t->off & ONGOING ? t->seq : 0;
    bpf_seq_write(ctx->meta->seq, l, sizeof(*l));
    return 0;
}
