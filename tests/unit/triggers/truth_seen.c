/* What perf's tracepoints tell of a run: who was off the CPU, ready, in a system call, in a function. */
#include "truth.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define OURS     "comm==\"" TRUTH_NAME "\""
#define THREADS  64
#define NO_CALL  (-1)
#define HEADERS  66 /* Ethernet, IPv4, TCP with time stamps */
#define FIRST    211
#define SECOND   307
#define SWITCHES "prev_comm==\"" TRUTH_NAME "\"||next_comm==\"" TRUTH_NAME "\""

struct thread {
    pid_t tid;

    int call; /* the system call it is in */

    bool idle_call;

    uint64_t since; /* 0: not */

    bool idle;
};

struct threads {
    struct thread at[THREADS];

    size_t n;
};

static struct thread *thread(struct threads *all, pid_t tid)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].tid == tid)
            return &all->at[i];
    all->n += all->n < THREADS;
    all->at[all->n - 1] = (struct thread){.tid = tid, .call = NO_CALL};
    return &all->at[all->n - 1];
}

struct spans {
    struct truth_span *out;

    size_t n, room;
};

static void add(struct spans *s, uint64_t start, uint64_t end, pid_t tid, bool unsure)
{
    if (s->n < s->room)
        s->out[s->n++] = (struct truth_span){start, end, tid, unsure, 0};
}

static long field(const struct observed *e, unsigned offset)
{
    long v;

    memcpy(&v, e->raw + offset, sizeof(v));
    return v;
}

/* The threads' names are 16 bytes long. */
static bool is_ours(const struct observed *e, unsigned offset)
{
    return !strncmp((const char *)e->raw + offset, TRUTH_NAME, 16);
}

/* What docs/triggers.md calls a wait for work, of the calls that the workloads make. */
static bool is_idle(int call, long arg1)
{
    return call == SYS_clock_nanosleep || call == SYS_nanosleep || call == SYS_epoll_wait ||
           call == SYS_poll || (call == SYS_futex && (arg1 & 0x7f) == 9);
}

/* raw_syscalls: the number is at 8, the arguments from 16, or the result. */
static void enter(struct thread *t, const struct observed *e)
{
    t->call = (int)field(e, 8);
    t->idle_call = is_idle(t->call, field(e, 24));
}

/* ---- off the CPU, ready to run ---- */

void truth_observe_switches(struct observer *o)
{
    observer_add(o, "sched/sched_switch", SWITCHES, 0);
    observer_add(o, "raw_syscalls/sys_enter", OURS, 0);
    observer_add(o, "raw_syscalls/sys_exit", OURS, 0);
}

/* sched_switch: prev_comm at 8, prev_pid at 24, prev_state at 32, next_comm at 40, next_pid at 56. What was
 * on the CPU again unseen is unsure: not every switch of every machine is shown. */
static void leave(struct spans *s, struct thread *t, const struct observed *e, bool begins)
{
    if (t->since)
        add(s, t->since, e->time, t->tid, true);
    t->since = begins ? e->time : 0;
}

static void come_back(struct spans *s, struct thread *t, const struct observed *e)
{
    if (t->since && !t->idle)
        add(s, t->since, e->time, t->tid, false);
    t->since = 0;
}

enum { SLEEPING = 1, BLOCKED = 2, PREEMPTED = 4 };

static int state_of(const struct observed *e)
{
    int state = observed_int(e, 32) & 0xff;

    return !state ? PREEMPTED : state & BLOCKED ? BLOCKED : SLEEPING;
}

/* In one of these states; idle: waits for work too. */
static size_t off_cpu(const struct observer *o, const struct workload *w, struct spans s, int states,
                      bool idle)
{
    struct threads all = {.n = 0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        struct thread *t;

        if (e->event == 1 && e->pid == (uint32_t)w->pid)
            enter(thread(&all, (pid_t)e->tid), e);
        if (e->event == 2 && e->pid == (uint32_t)w->pid)
            thread(&all, (pid_t)e->tid)->call = NO_CALL;
        if (!e->event && is_ours(e, 8)) {
            t = thread(&all, observed_int(e, 24));
            leave(&s, t, e, state_of(e) & states);
            t->idle = !idle && state_of(e) == SLEEPING && t->call != NO_CALL && t->idle_call;
        }
        if (!e->event && is_ours(e, 40))
            come_back(&s, thread(&all, observed_int(e, 56)), e);
    }
    return s.n;
}

size_t truth_offcpu(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    return off_cpu(o, w, (struct spans){out, 0, room}, SLEEPING | BLOCKED | PREEMPTED, false);
}

size_t truth_offcpu_idle(const struct observer *o, const struct workload *w, struct truth_span *out,
                         size_t room)
{
    return off_cpu(o, w, (struct spans){out, 0, room}, SLEEPING | BLOCKED | PREEMPTED, true);
}

size_t truth_blocked(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    return off_cpu(o, w, (struct spans){out, 0, room}, BLOCKED, false);
}

size_t truth_preempted(const struct observer *o, const struct workload *w, struct truth_span *out,
                       size_t room)
{
    return off_cpu(o, w, (struct spans){out, 0, room}, PREEMPTED, false);
}

size_t truth_nothing(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    (void)o;
    (void)w;
    (void)out;
    (void)room;
    return 0;
}

void truth_observe_wakes(struct observer *o)
{
    observer_add(o, "sched/sched_switch", SWITCHES, 0);
    observer_add(o, "sched/sched_wakeup", OURS, 0);
}

/* sched_wakeup: pid at 24. */
static size_t ready(const struct observer *o, struct spans s, bool woken, bool preempted)
{
    struct threads all = {.n = 0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        struct thread *t = is_ours(e, 8) ? thread(&all, observed_int(e, 24)) : NULL;

        if (e->event == 1) {
            t->since = t->since || !woken ? t->since : e->time;
            continue;
        }
        if (t)
            leave(&s, t, e, preempted && !(observed_int(e, 32) & 0xff));
        if (is_ours(e, 40))
            come_back(&s, thread(&all, observed_int(e, 56)), e);
    }
    return s.n;
}

size_t truth_runq(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    (void)w;
    return ready(o, (struct spans){out, 0, room}, true, true);
}

size_t truth_woken(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    (void)w;
    return ready(o, (struct spans){out, 0, room}, true, false);
}

size_t truth_ready_preempted(const struct observer *o, const struct workload *w, struct truth_span *out,
                             size_t room)
{
    (void)w;
    return ready(o, (struct spans){out, 0, room}, false, true);
}

/* ---- system calls ---- */

void truth_observe_calls(struct observer *o)
{
    observer_add(o, "raw_syscalls/sys_enter", OURS, 0);
    observer_add(o, "raw_syscalls/sys_exit", OURS, 0);
}

enum { NOT_IDLE = -1, ANY = -2 };

/* Those of number `only`, or all, or all that are no waits for work. */
static size_t calls(const struct observer *o, const struct workload *w, struct spans s, int only)
{
    struct threads all = {.n = 0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        struct thread *t = thread(&all, (pid_t)e->tid);

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (!e->event) {
            enter(t, e);
            t->since = e->time;
        } else if (t->since && t->call == (int)field(e, 8) &&
                   (only == ANY || (only == NOT_IDLE ? !t->idle_call : t->call == only))) {
            add(&s, t->since, e->time, t->tid, false);
        }
    }
    return s.n;
}

size_t truth_syscalls(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    return calls(o, w, (struct spans){out, 0, room}, NOT_IDLE);
}

size_t truth_idle_calls(const struct observer *o, const struct workload *w, struct truth_span *out,
                        size_t room)
{
    return calls(o, w, (struct spans){out, 0, room}, ANY);
}

size_t truth_receives(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    return calls(o, w, (struct spans){out, 0, room}, SYS_recvfrom);
}

size_t truth_busy(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    struct threads all = {.n = 0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        struct thread *t = thread(&all, (pid_t)e->tid);

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (e->event) {
            t->since = t->idle_call ? e->time : t->since;
            t->idle_call = false;
            continue;
        }
        enter(t, e);
        if (t->idle_call && t->since)
            add(&s, t->since, e->time, t->tid, false);
        t->since = t->idle_call ? 0 : t->since;
    }
    return s.n;
}

size_t truth_priorities(const struct observer *o, const struct workload *w, struct truth_span *out,
                        size_t room)
{
    struct spans s = {out, 0, room};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];

        if (e->pid == (uint32_t)w->pid && !e->event && field(e, 8) == SYS_getpriority)
            add(&s, e->time, e->time, (pid_t)e->tid, false);
    }
    return s.n;
}

void truth_observe_beats(struct observer *o)
{
    observer_add(o, "raw_syscalls/sys_enter", "id==121&&" OURS, 0); /* getpgid */
}

size_t truth_quiet(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    uint64_t last = 0;

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (last)
            add(&s, last, e->time, (pid_t)e->tid, false);
        last = e->time;
    }
    return s.n;
}

/* ---- functions ---- */

void truth_observe_function(struct observer *o)
{
    observer_add_function(o, (const void *)truth_slow, false);
    observer_add_function(o, (const void *)truth_slow, true);
}

size_t truth_function(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    struct threads all = {.n = 0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        struct thread *t = thread(&all, (pid_t)e->tid);

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (e->event && t->since)
            add(&s, t->since, e->time, t->tid, false);
        t->since = e->event ? 0 : e->time;
    }
    return s.n;
}

void truth_observe_hits(struct observer *o)
{
    observer_add_function(o, (const void *)truth_hit_above, false);
}

void truth_observe_tracepoint(struct observer *o)
{
    char filter[64];

    snprintf(filter, sizeof(filter), "who>=%d&&" OURS, TRUTH_ABOVE);
    observer_add(o, "syscalls/sys_enter_getpriority", filter, 0);
}

size_t truth_hits(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};

    for (size_t i = 0; i < o->seen.n; i++)
        if (o->seen.at[i].pid == (uint32_t)w->pid)
            add(&s, o->seen.at[i].time, o->seen.at[i].time, (pid_t)o->seen.at[i].tid, false);
    return s.n;
}

/* ---- sockets ---- */

/* On the loopback the data are there when sendto returns. */
size_t truth_unread(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    uint64_t since = 0, entered = 0, within = 0;

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (!e->event) {
            entered = e->time;
        } else if (field(e, 8) == SYS_sendto) {
            since = e->time;
            within = e->time - entered;
        } else if (field(e, 8) == SYS_recvfrom && since) {
            add(&s, since, e->time, (pid_t)e->tid, false);
            out[s.n - 1].within_ns = within + e->time - entered;
        }
    }
    return s.n;
}

void truth_observe_packets(struct observer *o)
{
    char filter[96];

    observer_keep_awake(o); /* acknowledgements, which let packets go, come in interrupts */
    snprintf(filter, sizeof(filter), "len==%d||len==%d||len==%d", HEADERS + FIRST, HEADERS + SECOND,
             HEADERS + FIRST + SECOND);
    observer_add(o, "raw_syscalls/sys_enter", "id==44&&" OURS, 0); /* sendto */
    observer_add(o, "net/net_dev_start_xmit", filter, 0);
    observer_add(o, "raw_syscalls/sys_exit", "id==44&&" OURS, 0);
}

/* From the write to the packet; net_dev_start_xmit: len at 36. The two writes may go in one packet. */
size_t truth_unsent(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    uint64_t written[2] = {0, 0}, within = 0;
    pid_t tid = 0;

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        int len = observed_int(e, 36) - HEADERS, which;

        if (e->event == 2) {
            within = e->time - (written[1] ? written[1] : e->time);
            continue;
        }
        if (!e->event) {
            which = field(e, 32) == SECOND; /* the third argument: how many */
            if (e->pid != (uint32_t)w->pid || (!which && field(e, 32) != FIRST))
                continue;
            written[which] = e->time;
            tid = (pid_t)e->tid;
            continue;
        }
        which = len == SECOND;
        if (written[which]) {
            add(&s, written[which], e->time, tid, false);
            out[s.n - 1].within_ns = within;
        }
        written[which] = 0;
        if (len == FIRST + SECOND)
            written[1] = 0;
    }
    return s.n;
}

/* ---- handlers ---- */

void truth_observe_softirqs(struct observer *o)
{
    observer_add(o, "irq/softirq_entry", "vec==3&&" OURS, 0); /* NET_RX */
    observer_add(o, "irq/softirq_exit", "vec==3&&" OURS, 0);
}

void truth_observe_irqs(struct observer *o)
{
    observer_add(o, "irq/irq_handler_entry", OURS, 0);
    observer_add(o, "irq/irq_handler_exit", OURS, 0);
}

size_t truth_handlers(const struct observer *o, const struct workload *w, struct truth_span *out, size_t room)
{
    struct spans s = {out, 0, room};
    uint64_t since[64] = {0};

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];

        if (e->pid != (uint32_t)w->pid)
            continue;
        if (e->event && since[e->cpu % 64])
            add(&s, since[e->cpu % 64], e->time, (pid_t)e->tid, false);
        since[e->cpu % 64] = e->event ? 0 : e->time;
    }
    return s.n;
}
