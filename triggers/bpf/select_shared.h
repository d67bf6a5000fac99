/* What select.bpf.c and select.c share. */
#ifndef ST_TRIGGERS_BPF_SELECT_SHARED_H
#define ST_TRIGGERS_BPF_SELECT_SHARED_H

#include "base/stall_record.h"

#include <stdbool.h>

/* How many marks are taken: each thread has some of its own, and what the CPU has left over goes to whoever
 * comes. 0: all are taken. */
struct select_pace {
    st_u64 own_ns; /* between two marks of one thread, */

    st_u64 shared_ns; /* and between two on one CPU of threads that have used up theirs */
};

#define SELECT_BURST 16 /* marks that may follow one another at once */

/* When the next mark is due. */
struct select_bucket {
    st_u64 next; /* ktime: the later, the more were taken in advance */
};

/* Whether one is due at `now`, with one in `interval` ns in the long run; then it is taken. The clock may
 * have begun less than a burst ago. */
static inline __attribute__((always_inline)) bool select_is_due(struct select_bucket *b, st_u64 now,
                                                                st_u64 interval)
{
    st_u64 burst = SELECT_BURST * interval, before = now > burst ? now - burst : 0;

    if (b->next > now)
        return false;
    b->next = (b->next > before ? b->next : before) + interval;
    return true;
}

enum select_mark { SELECT_SWITCHES, SELECT_WAKES, SELECT_MARKS };

/* What was left out. */
struct select_left {
    st_u64 since_ktime; /* 0: nothing was */

    st_u64 run[SELECT_MARKS]; /* so many in a row at most, of one thread */
};

/* A context switch. Number 0: not one of the target's threads. */
struct select_switch {
    st_u64 time; /* ktime */

    st_u32 prev_pid, prev_tid, next_pid, next_tid;

    st_u32 preempt; /* prev could have run on */

    st_s32 syscall; /* that next waited in; -1: none */

    st_u64
        left; /* ktime at which next had left its CPU to wait; 0: of that a mark was taken, or it was short */

    st_u32 state; /* in which state, as sched_switch has it */

    st_u16 left_cpu;

    st_u16 compat; /* the system call is one of i386's */
};

#define SELECT_WAIT_NS 1000000 /* waits from that length on are told in a select_switch */

#define SELECT_RING 8192 /* switches: half of them are 40 ms of 100,000 a second */

/* Those of a CPU, which alone writes it. The newest are written over the oldest. */
struct select_ring {
    st_u64 head; /* so many were written; the next is number head % SELECT_RING */

    st_u64 unused[7];

    struct select_switch at[SELECT_RING];
};

#endif
