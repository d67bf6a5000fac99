/* For tests: what an independent observer of a run saw of each kind of stall. */
#ifndef ST_TEST_TRIGGERS_TRUTH_H
#define ST_TEST_TRIGGERS_TRUTH_H

#include "observer.h"
#include "workload.h"

#define TRUTH_NAME "st-truth" /* the workloads' threads have it */

/* The shortest stall that is over the threshold, and the longest that is not, in ms. */
enum { TRUTH_ABOVE = 25, TRUTH_BELOW = 9 };

struct truth_span {
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */

    pid_t tid;

    bool unsure; /* its end was not seen: it may be over the threshold or not */

    uint64_t within_ns; /* its start or end lies within a system call of this length */
};

/* ---- workloads: truth_count stalls that are over the threshold and half as many that are not ---- */

extern int truth_count;
extern int truth_scale;   /* the stalls are so many times as long */
extern int truth_sockets; /* that a packet of truth_broadcast() goes to */

void truth_receive(struct workload *w);  /* waits in recvfrom, and sleeps, which is idle */
void truth_vfork(struct workload *w);    /* the same, but that the stalls are uninterruptible waits */
void truth_lose_cpu(struct workload *w); /* while it computes */
void truth_wake(struct workload *w);     /* is woken when another has the CPU */
void truth_loop(struct workload *w);     /* event loops */
void truth_beat(struct workload *w);     /* getpgid, and truth_called(1), is the heartbeat */
void truth_call(struct workload *w);     /* truth_slow() */
void truth_hit(struct workload *w);      /* truth_called(), st_test:beat, getpriority, all with the length */
void truth_read_late(struct workload *w);
void truth_write_twice(struct workload *w);
void truth_broadcast(struct workload *w);
void truth_use_disk(struct workload *w);

long truth_slow(long ms);
long truth_called(long ms);
void truth_hit_above(long ms); /* calls it for those that are over the threshold */

/* ---- observers ---- */

/* Begins to observe. */
typedef void truth_observe_fn(struct observer *o);

/* What it saw of the workload. Returns how many. */
typedef size_t truth_seen_fn(const struct observer *o, const struct workload *w, struct truth_span *out,
                             size_t room);

truth_observe_fn truth_observe_switches, truth_observe_wakes, truth_observe_calls, truth_observe_beats,
    truth_observe_function, truth_observe_hits, truth_observe_tracepoint, truth_observe_packets,
    truth_observe_softirqs, truth_observe_irqs;

truth_seen_fn truth_offcpu, truth_offcpu_idle, truth_blocked, truth_preempted, truth_runq, truth_woken,
    truth_ready_preempted, truth_syscalls, truth_idle_calls, truth_nothing, truth_receives, truth_busy,
    truth_quiet, truth_priorities, truth_function, truth_hits, truth_unread, truth_unsent, truth_handlers;

#endif
