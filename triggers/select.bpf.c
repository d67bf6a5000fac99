/* Of what happens on the CPUs, what is the target's. Events of a thread are switched in and out with it,
 * which costs it 0.5 us and more each time; those here are of the CPUs, and a program decides which records
 * are written. */
#include "triggers/bpf/kernel.h"
#include "triggers/bpf/select_shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct thread {
    st_u64 task; /* address of the task; 0: unused */

    st_u32 slot;

    st_u32 member; /* FOLLOW_CGROUP: what was found, and of which css_set */

    st_u64 css;

    struct select_bucket own[SELECT_MARKS];

    st_u64 run[SELECT_MARKS]; /* left out since the last that was taken */

    st_u64 left; /* when it went to wait, ktime, where no mark was taken of that; 0: not so */

    st_u32 state, cpu; /* in which, and where */

    st_s32 syscall;

    st_u32 compat;
};

#include "triggers/bpf/follow.bpf.h"

struct cpu_buckets {
    struct select_bucket shared[SELECT_MARKS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct cpu_buckets);
} buckets SEC(".maps");

#define OUTPUT_MAP(name)                                                                                     \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);                                                         \
        __uint(key_size, sizeof(int));                                                                       \
        __uint(value_size, sizeof(int));                                                                     \
    } name SEC(".maps")

OUTPUT_MAP(switches_wait); /* so many of them that they should be taken */
OUTPUT_MAP(switch_marks);
OUTPUT_MAP(wake_marks);

/* Every context switch, by CPU. Plain stores: a record of a perf event costs 0.8 us. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct select_ring);
} switches SEC(".maps");

const volatile st_u32 switch_type; /* numbers of the tracepoints, as in their records */
const volatile st_u32 waking_type;

struct select_pace pace;
struct select_left left;
st_u64 lost_records;
st_u32 broken_places;
st_u32 members; /* FOLLOW_CGROUP: threads in the cgroup */

/* ------------------------------------------------------------------ */
/* The threads                                                          */

/* An NMI may come in between: then the old one still holds. */
static __always_inline void set_member(struct thread *t, st_u32 member)
{
    st_u32 old = __sync_lock_test_and_set(&t->member, member);

    if (old != member)
        __sync_fetch_and_add(&members, member - old);
}

/* Whether a thread that is followed is of the target: with FOLLOW_CGROUP, while it is in the cgroup. */
static __always_inline bool belongs(struct thread *t, struct task_struct *task)
{
    st_u64 css;

    if (follow.mode != FOLLOW_CGROUP)
        return true;
    css = (st_u64)task->cgroups;
    if (t->css != css) {
        set_member(t, in_cgroup(task));
        barrier();
        t->css = css;
    }
    return t->member;
}

static void thread_begins(struct thread *t, struct task_struct *task)
{
    for (int i = 0; i < SELECT_MARKS; i++)
        t->own[i].next = t->run[i] = 0;
    t->left = 0;
    t->css = 0;
    belongs(t, task);
    t->task = (st_u64)task;
}

static __always_inline void thread_ends(struct thread *t, st_u32 slot)
{
    t->task = 0;
    if (follow.mode == FOLLOW_CGROUP)
        set_member(t, 0);
}

static void thread_exits(void *ctx, struct thread *t)
{
}

SEC("iter/task")
int select_adopt(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;

    if (!places_are_right())
        broken_places = 1;
    if (task && wanted(task))
        adopt(task, false);
    return 0;
}

/* ------------------------------------------------------------------ */
/* How many                                                             */

static __always_inline void leave_out(struct thread *t, enum select_mark mark, st_u64 now)
{
    st_u64 run = ++t->run[mark];

    if (run > left.run[mark])
        left.run[mark] = run;
    if (!left.since_ktime)
        left.since_ktime = now;
}

/* Whether the mark is taken; if not, that is noted. */
static __always_inline bool takes(struct thread *t, enum select_mark mark, st_u64 now)
{
    st_u64 own = pace.own_ns;
    struct cpu_buckets *cpu;
    st_u32 zero = 0;

    if (!own)
        return true;
    cpu = bpf_map_lookup_elem(&buckets, &zero);
    if (select_is_due(&t->own[mark], now, own) ||
        (cpu && select_is_due(&cpu->shared[mark], now, pace.shared_ns))) {
        t->run[mark] = 0;
        return true;
    }
    leave_out(t, mark, now);
    return false;
}

/* ------------------------------------------------------------------ */
/* Records as the tracepoints write them                                */

/* struct trace_entry, include/linux/trace_events.h; its flags: kernel/trace/trace.h. */
struct entry {
    st_u16 type;

    unsigned char flags, preempt_count;

    st_s32 pid;
};

enum { FLAG_HARDIRQ = 0x08, FLAG_SOFTIRQ = 0x10, FLAG_NMI = 0x40 };

struct switch_entry {
    struct entry common;

    char prev_comm[16];

    st_s32 prev_pid, prev_prio;

    st_u64 prev_state;

    char next_comm[16];

    st_s32 next_pid, next_prio;
};

struct waking_entry {
    struct entry common;

    char comm[16];

    st_s32 pid, prio, target_cpu;
};

static __always_inline void fill_common(struct entry *e, st_u32 type)
{
    st_u32 count = preempt_count();

    e->type = type;
    e->flags = (count & HARDIRQ_MASK ? FLAG_HARDIRQ : 0) | (count & SOFTIRQ_SERVING ? FLAG_SOFTIRQ : 0) |
               (count & NMI_MASK ? FLAG_NMI : 0);
    e->preempt_count = count;
    e->pid = bpf_get_current_pid_tgid();
}

enum {
    TASK_REPORT = 0x7f,
    TASK_REPORT_IDLE = 0x80,
    TASK_REPORT_MAX = 0x100, /* preempted */
    TASK_IDLE = TASK_UNINTERRUPTIBLE | TASK_NOLOAD,
};

/* Of several states the last bit (include/trace/events/sched.h, __trace_sched_switch_state; task_state_index
 * in include/linux/sched.h). */
static __always_inline st_u64 reported_state(struct task_struct *task, bool preempt)
{
    st_u32 state = task->__state, reported = (state | task->exit_state) & TASK_REPORT;

    if (preempt)
        return TASK_REPORT_MAX;
    if ((state & TASK_IDLE) == TASK_IDLE)
        return TASK_REPORT_IDLE;
    if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
        return TASK_UNINTERRUPTIBLE;
    for (st_u32 bit = 0x40; bit; bit >>= 1)
        if (reported & bit)
            return bit;
    return 0;
}

static __always_inline void output(void *ctx, void *map, void *data, st_u64 size)
{
    if (bpf_perf_event_output(ctx, map, BPF_F_CURRENT_CPU, data, size))
        __sync_fetch_and_add(&lost_records, 1);
}

static __noinline void mark_switch(void *ctx, struct task_struct *prev, struct task_struct *next,
                                   bool preempt)
{
    struct switch_entry e = {
        .prev_pid = prev->pid,
        .prev_prio = prev->prio,
        .prev_state = reported_state(prev, preempt),
        .next_pid = next->pid,
        .next_prio = next->prio,
    };

    fill_common(&e.common, switch_type);
    bpf_probe_read_kernel(e.prev_comm, sizeof(e.prev_comm), prev->comm);
    bpf_probe_read_kernel(e.next_comm, sizeof(e.next_comm), next->comm);
    output(ctx, &switch_marks, &e, sizeof(e));
}

static __always_inline struct thread *member_of(struct task_struct *task)
{
    struct thread *t = thread_of(task);

    return t && belongs(t, task) ? t : NULL;
}

/* Interrupts are off, and no program interrupts this one that writes here too. */
static __always_inline void note_switch(void *ctx, const struct select_switch *s)
{
    st_u32 cpu = bpf_get_smp_processor_id();
    struct select_ring *ring = bpf_map_lookup_elem(&switches, &cpu);
    st_u64 head;

    if (!ring)
        return;
    head = ring->head;
    ring->at[head % SELECT_RING] = *s;
    barrier();
    ring->head = ++head;
    if (head % (SELECT_RING / 2) == 0)
        output(ctx, &switches_wait, &head, sizeof(head));
}

/* A thread goes to wait. One that ends is in no system call that it asked for, and the stop by a signal is in
 * none. */
static __always_inline void goes_to_wait(struct thread *t, struct task_struct *task, st_u64 now)
{
    struct pt_regs *regs = user_registers(task);
    st_u32 state = reported_state(task, false);

    t->left = now;
    t->state = state;
    t->cpu = bpf_get_smp_processor_id();
    t->syscall = -1;
    if (state > TASK_UNINTERRUPTIBLE || task->flags & (PF_KTHREAD | PF_EXITING | PF_SIGNALED))
        return;
    t->syscall = (st_s32)regs->orig_ax;
    t->compat = !(regs->cx == regs->ip && regs->r11 == regs->flags) && task->thread_info.status & TS_COMPAT;
}

static __always_inline void comes_back(struct thread *t, struct select_switch *s)
{
    if (t->left && s->time - t->left >= SELECT_WAIT_NS) {
        s->left = t->left;
        s->left_cpu = t->cpu;
        s->state = t->state;
        s->syscall = t->syscall;
        s->compat = t->compat;
    }
    t->left = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(select_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    struct select_switch s = {.preempt = preempt || !prev->__state};
    struct thread *comes = member_of(next), *goes = member_of(prev);

    if (!comes && !goes)
        return 0;
    s.time = bpf_ktime_get_ns();
    if (goes) {
        s.prev_pid = prev->tgid;
        s.prev_tid = prev->pid;
        if (takes(goes, SELECT_SWITCHES, s.time)) {
            mark_switch(ctx, prev, next, preempt);
            s.time = bpf_ktime_get_ns(); /* the mark is of a thread that still has its CPU */
        } else if (!s.preempt) {
            goes_to_wait(goes, prev, s.time);
        }
    }
    if (comes) {
        s.next_pid = next->tgid;
        s.next_tid = next->pid;
        comes_back(comes, &s);
    }
    note_switch(ctx, &s);
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(select_waking, struct task_struct *task)
{
    struct thread *t = member_of(task);
    struct waking_entry e = {};

    if (!t || !takes(t, SELECT_WAKES, bpf_ktime_get_ns()))
        return 0;
    fill_common(&e.common, waking_type);
    bpf_probe_read_kernel(e.comm, sizeof(e.comm), task->comm);
    e.pid = task->pid;
    e.prio = task->prio;
    e.target_cpu = task->thread_info.cpu;
    output(ctx, &wake_marks, &e, sizeof(e));
    return 0;
}

/* A sample of whoever runs is kept where that is one of the target's threads. It may be in an NMI: nothing is
 * written here. */
static __always_inline bool is_sampled(const struct thread *t, struct task_struct *task)
{
    if (!t || t->task != (st_u64)task)
        return false;
    if (follow.mode != FOLLOW_CGROUP)
        return true;
    return t->css == (st_u64)task->cgroups ? t->member : in_cgroup(task);
}

SEC("perf_event")
int select_sample(void *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    st_u32 pid = task->pid, *owned;
    struct thread *t;

    if (!pid || !maybe_followed(task))
        return 0;
    t = thread_at(slot_hints[pid % SLOT_HINTS] - 1);
    if (t && t->task == (st_u64)task)
        return is_sampled(t, task);
    owned = bpf_task_storage_get(&slots, task, NULL, 0);
    return is_sampled(owned ? thread_at(*owned) : NULL, task);
}
