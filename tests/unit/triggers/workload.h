/* For tests: child processes that block in known ways, known times, and tell when they did. */
#ifndef ST_TEST_TRIGGERS_WORKLOAD_H
#define ST_TEST_TRIGGERS_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WORKLOAD_STALLS 256

/* One stall as the child that had it saw it, by CLOCK_MONOTONIC. */
struct workload_stall {
    uint64_t start_ns, end_ns;

    pid_t tid;
};

struct workload_shared {
    _Atomic uint32_t stalls; /* how many are in `stall` */

    struct workload_stall stall[WORKLOAD_STALLS];

    _Atomic int note[8]; /* for a workload's own use: thread ids it wants to tell */

    _Atomic int asked; /* reads that workload_feeder() is to serve */
};

struct workload {
    pid_t pid;

    int go[2]; /* pipe: a byte lets the child begin */

    uint64_t go_ns; /* when it got it */

    struct workload_shared *shared;
};

typedef void workload_fn(struct workload *w);

/* Forks a child that waits (in poll: idle) until workload_go(), then runs fn and exits. It has real-time
 * priority, so that it waits for nothing but what it waits for. */
void workload_fork(struct workload *w, workload_fn *fn);
void workload_go(struct workload *w);

/* Waits for the end; the child must have ended with status 0. */
void workload_wait(struct workload *w);

/* For the child: it was stalled since start_ns, until now. */
void workload_end(struct workload *w, uint64_t start_ns);

/* For a child that does not sleep: no real-time priority. */
void workload_be_ordinary(void);

uint64_t workload_now(void);
pid_t workload_tid(void);
void workload_sleep_ms(int ms);

/* Whether the thread sleeps right now. */
bool workload_sleeps(pid_t tid);

/* For the child's first thread: reads a byte that comes so long after it blocked, however slow the machine;
 * notes the stall. */
void workload_read_fed(struct workload *w, int fd);

/* A process that is not watched and writes a byte to fd `ms` milliseconds after the child's first thread
 * sleeps in each of its `n` reads. Its pid. */
pid_t workload_feeder(struct workload *w, int fd, int ms, int n);
void workload_reap(pid_t pid);

#endif
