/* What a watched thread does from one event to another, how long that takes, and what goes on for too long.
 * One timer for all threads looks at what is going on, no more often than the shortest stall takes to be
 * told. (A program on a user function may not use a map with timers, and a timer a thread needs memory a
 * thread.) A kind's program includes this, begins and ends the spans, and defines the hooks below. */
#ifndef ST_TRIGGERS_BPF_SPAN_BPF_H
#define ST_TRIGGERS_BPF_SPAN_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"
#include "triggers/bpf/span.h"

#define ONGOING         1ull /* bit of thread.start: told as ongoing */
#define CLOCK_MONOTONIC 1
#define EBUSY           16
#define LOOK_NS         10000000ull /* not more often than this */
#define LOOK_SLOTS      1024        /* at so many at once: it is done in an interrupt */
#define LOOK_ON_NS      1000000ull  /* until the next so many */
#define LOOPS           (1 << 20)

struct thread {
    st_u64 seq; /* of the record that told it as ongoing */

    /* What every span needs. The values of an array map begin 312 bytes into it (struct bpf_array), 56 behind
     * a cache line's start: behind `seq` these share one line. */
    st_u64 start; /* ktime without the lowest bit; 0: nothing goes on */

    st_u64 task; /* kernel address; 0: the slot is free */

    st_u64 regs; /* tells where its user registers are in a system call; 0: not known */

    st_u64 mark; /* a kind's own */

    st_s32 syscall;

    st_u32 flags; /* ST_STALL_IDLE, ST_STALL_COMPAT */

    st_u32 slot; /* its own number */

    st_u32 hist; /* where its histogram is: measure.bpf.h */

    /* What filters, stalls and cgroups need. */
    st_u64 args[6];

    st_u64 css; /* FOLLOW_CGROUP: the css_set that was looked at last, and what was found */

    st_u32 member;

    st_u32 cpu; /* it began on */

    st_u32 woken; /* after the threshold: `pending` knows by whom */
};

#include "triggers/bpf/filter.bpf.h"
#include "triggers/bpf/follow.bpf.h"
#include "triggers/bpf/idle.bpf.h"
#include "triggers/bpf/look.bpf.h"
#include "triggers/bpf/measure.bpf.h"
#include "triggers/bpf/member.bpf.h"
#include "triggers/bpf/output.bpf.h"
#include "triggers/bpf/steps.bpf.h"
#include "triggers/bpf/stops.bpf.h"

const volatile struct span_config span;

st_u64 threshold_ns;
st_u32 without_timer; /* the kernel had no memory for the timer yet */
st_u32 broken_places; /* this kernel's per-CPU section is not as BTF tells */

struct looker {
    struct bpf_timer timer;

    st_u64 next; /* when to look again, as far as is known since the first slot */

    st_u32 slot; /* to begin with */

    st_u32 ready;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct looker);
} looker SEC(".maps");

/* ---- a kind's own ---- */

/* What the end of a span is known by. */
struct span_end {
    st_u64 ktime;

    st_u64 ret; /* what the call returned */

    struct task_struct *task; /* whose span it is */

    bool exits; /* the thread itself ends; the call did not return */
};

/* A span over the threshold: the kind's part of the record. `end` is NULL while it goes on. */
static void span_describe(struct thread *t, struct st_stall_record *r, const struct span_end *end);

/* A thread that was there before. */
static void span_found(struct thread *t, struct task_struct *task);

/* ---- records ---- */

static __always_inline void base_record(struct st_stall_record *r, struct thread *t, st_u32 flags)
{
    r->magic = ST_STALL_MAGIC;
    r->version = ST_STALL_VERSION;
    r->kind = span.kind;
    r->trigger = span.trigger;
    r->flags = flags | t->flags;
    r->threshold_ns = threshold_ns;
    r->syscall = t->syscall;
    r->cpu = t->cpu;
}

/* Puts "key=VALUE" behind the attributes that are there. `format` is of BPF_SNPRINTF. */
#define add_attribute(r, format, args...)                                                                    \
    ({                                                                                                       \
        st_u32 _at = *(volatile st_u16 *)&(r)->extra_n;                                                      \
        long _n;                                                                                             \
                                                                                                             \
        asm volatile("" : "+r"(_at)); /* the bound is checked on what is added */                            \
        if (_at <= ST_STALL_EXTRA - 64) {                                                                    \
            _n = BPF_SNPRINTF((r)->extra + _at, 64, format, args);                                           \
            if (_n > 0 && _n <= 64)                                                                          \
                (r)->extra_n = _at + _n;                                                                     \
        }                                                                                                    \
    })

/* stopped_by, who sent the signal, and stop_signal, its number. */
static __always_inline void add_sender(struct st_stall_record *r, const struct stop_sent *sent)
{
    if (!sent)
        return;
    add_attribute(r, "stopped_by=thread %u \"%s\"", sent->tid, sent->comm);
    add_attribute(r, "stop_signal=%u", sent->signal);
}

static __noinline void add_stop(struct st_stall_record *r)
{
    add_sender(r, stop_of(r));
}

/* Of a record that is of a socket: its process was stopped while the data, or the connections, lay there. */
static __always_inline void add_stop_within(struct st_stall_record *r)
{
    add_sender(r, stop_within(r));
}

/* The record leaves. */
static __always_inline void emit(void *ctx, struct pending *p)
{
    if (p->r.flags & ST_STALL_FIRED)
        announce(&p->r);
    p->r.now_ktime = bpf_ktime_get_ns();
    if (bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &p->r, sizeof(p->r)))
        __sync_fetch_and_add(&lost_records, 1);
}

/* The whole user stack of the current thread; of another one only where it is. */
static __always_inline void copy_user_stack(void *ctx, struct pending *p, struct task_struct *task)
{
    long bytes;

    if (task->flags & PF_KTHREAD)
        return;
    if (task != bpf_get_current_task_btf()) {
        p->r.ustack[0] = user_registers(task)->ip;
        p->r.ustack_n = 1;
        return;
    }
    bytes = bpf_get_stack(ctx, p->r.ustack, sizeof(p->r.ustack), BPF_F_USER_STACK);
    p->r.ustack_n = bytes > 0 ? bytes / sizeof(p->r.ustack[0]) : 0;
}

static __noinline void tell_ended(void *ctx, struct thread *t, st_u32 slot, st_u64 start,
                                  const struct span_end *end)
{
    struct pending *p = new_pending(slot);
    st_u64 told = start & ONGOING;

    if (!p) {
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    base_record(&p->r, t, told ? ST_STALL_COMPLETION : fires(end->ktime) ? ST_STALL_FIRED : 0);
    p->r.seq = told ? t->seq : __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = start & ~ONGOING;
    p->r.end_ktime = end->ktime;
    p->r.measured_ns = end->ktime - p->r.start_ktime;
    name_thread(&p->r, end->task);
    copy_user_stack(ctx, p, end->task);
#ifdef ST_TRIGGERS_PYTHON_BPF_H /* the span is at one place of the program */
    if (p->r.flags & ST_STALL_FIRED && end->task == bpf_get_current_task_btf())
        walk_python(&p->r, bpf_get_current_task_btf());
#endif
    span_describe(t, &p->r, end);
    add_stop(&p->r);
    emit(ctx, p);
    t->woken = 0;
    bpf_map_delete_elem(&pending, &slot);
}

/* Of a thread that is off its CPU, as sched_switch has it. A thread that could run has none in a span. */
static __always_inline st_u32 state_now(struct task_struct *task)
{
    return BPF_CORE_READ(task, on_cpu) ? 0 : BPF_CORE_READ(task, __state);
}

/* The record is filled before the span is marked as told: as long as `start` is what it was, the thread is in
 * that span. False: it could not be told now. */
static __noinline bool tell_ongoing(struct thread *t, st_u64 start, st_u64 ktime)
{
    struct pending *p = cleared_scratch();

    if (!p)
        return false;
    base_record(&p->r, t, ST_STALL_ONGOING | ST_STALL_FIRED);
    p->r.seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = start;
    p->r.measured_ns = ktime - start;
    p->r.state = state_now((struct task_struct *)t->task);
    name_thread(&p->r, (struct task_struct *)t->task);
    span_describe(t, &p->r, NULL);
    add_stop(&p->r);
    t->seq = p->r.seq;
    if (__sync_val_compare_and_swap(&t->start, start, start | ONGOING) != start ||
        try_record(OUTPUT_SCRATCH, 0, &p->r))
        return true;
    if (__sync_val_compare_and_swap(&t->start, start | ONGOING, start) == (start | ONGOING))
        return false;
    count_lost_record(); /* it has just ended, and its end is told of a span that was not */
    return true;
}

/* ---- spans ---- */

static __always_inline void span_begin(struct thread *t, st_u64 ktime)
{
    if (!span.measure_only)
        t->cpu = bpf_get_smp_processor_id();
    *(volatile st_u64 *)&t->start = ktime & ~ONGOING;
}

/* It does not count after all, or what ended it was not seen. */
static __always_inline void span_drop(struct thread *t, st_u32 slot)
{
    *(volatile st_u64 *)&t->start = 0;
    if (t->woken) {
        t->woken = 0;
        bpf_map_delete_elem(&pending, &slot);
    }
}

/* Whether there is nothing to be told of the span that ended at `ktime`. */
static __always_inline bool span_was_short(struct thread *t, st_u32 slot, st_u64 ktime)
{
    st_u64 took = ktime - (t->start & ~ONGOING);

    if ((st_s64)took < 0)
        took = 0;
    measure(took, t);
    if (span.measure_only) {
        *(volatile st_u64 *)&t->start = 0;
        return true;
    }
    if (took >= threshold_ns)
        return false;
    span_drop(t, slot);
    return true;
}

static __always_inline void tell_span(void *ctx, struct thread *t, st_u32 slot, const struct span_end *end)
{
    st_u64 start = __sync_lock_test_and_set(&t->start, 0), took = end->ktime - (start & ~ONGOING);

    tell_ended(ctx, t, slot, start, end);
    if (span.worst && took >= threshold_ns)
        threshold_ns = took + 1;
}

static __noinline void tell_span_now(void *ctx, struct thread *t, st_u32 slot, st_u64 ktime, st_u64 ret)
{
    struct span_end end = {.ktime = ktime, .ret = ret, .task = bpf_get_current_task_btf()};

    tell_span(ctx, t, slot, &end);
}

/* A thread's span has ended. */
static __always_inline void span_end_of(void *ctx, struct thread *t, const struct span_end *end)
{
    if (!span_was_short(t, t->slot, end->ktime))
        tell_span(ctx, t, t->slot, end);
}

/* The current thread's has. All that only a record needs is elsewhere: with little on its stack a program
 * gets none of its own, which would be one more page to touch. */
static __always_inline void span_end_at(void *ctx, struct thread *t, st_u32 slot, st_u64 ktime, st_u64 ret)
{
    if (!span_was_short(t, slot, ktime))
        tell_span_now(ctx, t, slot, ktime, ret);
}

/* The same, now. */
static __always_inline void span_end(void *ctx, struct thread *t, st_u32 slot, st_u64 ret)
{
    span_end_at(ctx, t, slot, bpf_ktime_get_ns(), ret);
}

/* ---- what goes on ---- */

struct looking {
    st_u64 now;

    st_u64 due; /* ns after its start that a span is told */

    st_u64 next; /* when to look again */

    st_u32 slot; /* the first of them */

    st_u32 n; /* of them */
};

static __always_inline void sooner(struct looking *l, st_u64 at)
{
    if (at < l->next)
        l->next = at;
}

ST_STEP(look_at_slot, number, struct looking *l)
{
    st_u32 slot = l->slot + *number;
    struct thread *t = bpf_map_lookup_elem(&threads, &slot);
    st_u64 start;

    if (!t || *number >= l->n)
        return 1;
    start = *(volatile st_u64 *)&t->start;
    if (!start || start & ONGOING || !t->task || (st_s64)(l->now - start) < 0)
        return 0;
    if (l->now - start < l->due)
        sooner(l, start + l->due);
    else if (fires(l->now) && call_passes(&span.filter, t->args, false, 0) && !tell_ongoing(t, start, l->now))
        sooner(l, l->now);
    return 0;
}

#ifdef LOOKS_AT_MORE
static void look_at_more(struct looking *l);
#endif

/* At some of the slots; behind the last it begins anew. A span that begins where it has looked already is due
 * later than `next` says, which is counted from the first slot. */
static int look_at_some(void *map, st_u32 *key, struct looker *self)
{
    struct looking l = {.now = bpf_ktime_get_ns(), .due = threshold_ns + ST_GRACE_NS, .slot = self->slot};
    st_u32 used = slots_used, n = used > l.slot ? used - l.slot : 0;
    st_u64 wait;

    l.next = l.slot ? self->next : l.now + l.due;
    l.n = n < LOOK_SLOTS ? n : LOOK_SLOTS;
    if (l.n)
        st_steps(look_at_slot, &l);
#ifdef LOOKS_AT_MORE
    if (!l.slot)
        look_at_more(&l);
#endif
    self->next = l.next;
    self->slot = n > LOOK_SLOTS ? l.slot + LOOK_SLOTS : 0;
    wait = l.next > l.now ? l.next - l.now : 0;
    wait = self->slot ? LOOK_ON_NS : wait > LOOK_NS ? wait : LOOK_NS;
    bpf_timer_start(&self->timer, wait, 0);
    return 0;
}

static __always_inline void start_looking(void)
{
    st_u32 zero = 0;
    struct looker *l = bpf_map_lookup_elem(&looker, &zero);
    long rc;

    if (!l || l->ready || span.measure_only)
        return;
    rc = bpf_timer_init(&l->timer, &looker, CLOCK_MONOTONIC);
    if (rc && rc != -EBUSY) {
        without_timer = 1;
        return;
    }
    if (bpf_timer_set_callback(&l->timer, look_at_some) || bpf_timer_start(&l->timer, LOOK_NS, 0)) {
        without_timer = 1;
        return;
    }
    without_timer = 0;
    l->ready = 1;
}

/* ---- threads ---- */

static void thread_begins(struct thread *t, struct task_struct *task)
{
    st_u32 pid = BPF_CORE_READ(task, pid);

    bpf_map_delete_elem(&stops_sent, &pid); /* of a process that had its number before */
    t->start = 0;
    t->regs = 0;
    t->mark = 0;
    t->css = 0;
    t->hist = 0;
    t->flags = 0;
    t->woken = 0;
    t->syscall = -1;
    t->task = (st_u64)task;
#ifdef ST_TRIGGERS_WAITS_BPF_H
    wait_forget(&span.idle, task);
#endif
}

/* What was told as ongoing ends with its thread. */
static void thread_exits(void *ctx, struct thread *t)
{
    struct span_end end = {.task = bpf_get_current_task_btf(), .exits = true};
    st_u64 start;

#ifdef ST_TRIGGERS_WAITS_BPF_H
    wait_has_ended(&span.idle, end.task);
#endif
    if (span.measure_only || !(t->start & ONGOING))
        return;
    end.ktime = bpf_ktime_get_ns();
    start = __sync_lock_test_and_set(&t->start, 0);
    measure(end.ktime - (start & ~ONGOING), t);
    tell_ended(ctx, t, t->slot, start, &end);
}

static __always_inline void thread_ends(struct thread *t, st_u32 slot)
{
    t->start = 0;
    t->regs = 0;
    t->task = 0;
    bpf_map_delete_elem(&pending, &slot);
}

/* Begins to watch the threads that are there already, and then to look at them. */
SEC("iter/task")
int span_adopt(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread *t;

    if (!task) {
        start_looking();
        return 0;
    }
    if (!places_are_right())
        broken_places = 1;
    if (!wanted(task))
        return 0;
    adopt(task, false);
    t = thread_of(task);
    if (t && !follow.newborn)
        span_found(t, task);
    return 0;
}

/* What is to be known of a thread whose span was told as ongoing and still goes on. */
SEC("iter/task")
int span_look_at(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread_look *l;
    struct thread *t;
    st_u32 zero = 0;

    t = is_looked_for(task) ? thread_of(task) : NULL;
    l = bpf_map_lookup_elem(&look, &zero);
#ifdef LOOKS_AT_ALL /* what goes on is no thread's own */
    if (!t || !l)
        return 0;
    look_at_thread(l, task, false, false);
#else
    if (!t || !l || !(t->start & ONGOING))
        return 0;
    look_at_thread(l, task, t->flags & ST_STALL_COMPAT, span.kind == ST_STALL_SYSCALL);
#endif
    l->seq = *(volatile st_u64 *)&t->start & ONGOING ? t->seq : 0;
    bpf_seq_write(ctx->meta->seq, l, sizeof(*l));
    return 0;
}

#endif
