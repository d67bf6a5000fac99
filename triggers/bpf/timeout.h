/* The longest that a system call is asked to wait, by its arguments. Shared with BPF; compiled for the host
 * by its test. */
#ifndef ST_TRIGGERS_BPF_TIMEOUT_H
#define ST_TRIGGERS_BPF_TIMEOUT_H

#include "base/stall_record.h"

#define ST_ALWAYS_INLINE inline __attribute__((always_inline)) /* BPF returns no structs */

/* Whether a wait of `slept` ns ended with a time-out of `ns`: timers are late, by 50 us on purpose and by
 * what the machine adds, never early by more than the clocks differ. */
#define ST_TIMEOUT_FITS(ns, slept) ((slept) + 200000 >= (ns) && (slept) - (ns) <= (ns) / 20 + 1000000)

/* How it is given. The times that are in memory are two 64-bit numbers, the first one of seconds. */
enum timeout_form {
    TIMEOUT_NONE,         /* there is none, or it is not known how it is given */
    TIMEOUT_MILLISECONDS, /* the argument itself; negative: for ever */
    TIMEOUT_TIMESPEC,     /* in memory; NULL: for ever */
    TIMEOUT_TIMEVAL,      /* the same, the second number of microseconds */
    TIMEOUT_UNTIL,        /* in memory, a time of CLOCK_MONOTONIC */
    TIMEOUT_UNTIL_REAL,   /* a time of CLOCK_REALTIME */
};

struct timeout_place {
    st_u32 form;

    st_u64 value; /* the argument, or the address */
};

/* Numbers of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl); FUTEX_* of linux/futex.h. */
enum timeout_call {
    TIMEOUT_NR_POLL = 7,
    TIMEOUT_NR_SELECT = 23,
    TIMEOUT_NR_NANOSLEEP = 35,
    TIMEOUT_NR_RT_SIGTIMEDWAIT = 128,
    TIMEOUT_NR_FUTEX = 202,
    TIMEOUT_NR_SEMTIMEDOP = 220,
    TIMEOUT_NR_CLOCK_NANOSLEEP = 230,
    TIMEOUT_NR_EPOLL_WAIT = 232,
    TIMEOUT_NR_PSELECT6 = 270,
    TIMEOUT_NR_PPOLL = 271,
    TIMEOUT_NR_EPOLL_PWAIT = 281,
    TIMEOUT_NR_EPOLL_PWAIT2 = 441,
};

#define TIMEOUT_FUTEX_CMD      0x7f
#define TIMEOUT_FUTEX_REALTIME 0x100

/* FUTEX_WAIT's time counts from now; FUTEX_WAIT_BITSET's, FUTEX_LOCK_PI2's and FUTEX_WAIT_REQUEUE_PI's is a
 * time of a clock, FUTEX_LOCK_PI's of CLOCK_REALTIME always. */
static ST_ALWAYS_INLINE st_u32 timeout_of_futex(st_u64 op)
{
    switch (op & TIMEOUT_FUTEX_CMD) {
    case 0:
        return TIMEOUT_TIMESPEC;
    case 6:
        return TIMEOUT_UNTIL_REAL;
    case 9:
    case 11:
    case 13:
        return op & TIMEOUT_FUTEX_REALTIME ? TIMEOUT_UNTIL_REAL : TIMEOUT_UNTIL;
    default:
        return TIMEOUT_NONE;
    }
}

/* CLOCK_REALTIME is 0, CLOCK_MONOTONIC 1; TIMER_ABSTIME 1. */
static ST_ALWAYS_INLINE st_u32 timeout_of_sleep(st_u64 clock, st_u64 flags)
{
    if (!(flags & 1))
        return TIMEOUT_TIMESPEC;
    return clock == 1 ? TIMEOUT_UNTIL : clock == 0 ? TIMEOUT_UNTIL_REAL : TIMEOUT_NONE;
}

static ST_ALWAYS_INLINE struct timeout_place timeout_at(st_u32 form, st_u64 value)
{
    struct timeout_place place = {form, value};

    if (form > TIMEOUT_MILLISECONDS && !value)
        place.form = TIMEOUT_NONE;
    if (form == TIMEOUT_MILLISECONDS && (st_s32)value < 0)
        place.form = TIMEOUT_NONE;
    return place;
}

static ST_ALWAYS_INLINE struct timeout_place timeout_of(st_s32 syscall, const st_u64 *args)
{
    switch (syscall) {
    case TIMEOUT_NR_POLL:
        return timeout_at(TIMEOUT_MILLISECONDS, args[2]);
    case TIMEOUT_NR_EPOLL_WAIT:
    case TIMEOUT_NR_EPOLL_PWAIT:
        return timeout_at(TIMEOUT_MILLISECONDS, args[3]);
    case TIMEOUT_NR_SELECT:
        return timeout_at(TIMEOUT_TIMEVAL, args[4]);
    case TIMEOUT_NR_NANOSLEEP:
        return timeout_at(TIMEOUT_TIMESPEC, args[0]);
    case TIMEOUT_NR_PPOLL:
    case TIMEOUT_NR_RT_SIGTIMEDWAIT:
        return timeout_at(TIMEOUT_TIMESPEC, args[2]);
    case TIMEOUT_NR_SEMTIMEDOP:
    case TIMEOUT_NR_EPOLL_PWAIT2:
        return timeout_at(TIMEOUT_TIMESPEC, args[3]);
    case TIMEOUT_NR_PSELECT6:
        return timeout_at(TIMEOUT_TIMESPEC, args[4]);
    case TIMEOUT_NR_FUTEX:
        return timeout_at(timeout_of_futex(args[1]), args[3]);
    case TIMEOUT_NR_CLOCK_NANOSLEEP:
        return timeout_at(timeout_of_sleep(args[0], args[1]), args[2]);
    default:
        return timeout_at(TIMEOUT_NONE, 0);
    }
}

/* ns from `start` (CLOCK_MONOTONIC) on, by what stands in memory; 0: it is no time, or over already.
 * `real_offset` leads from CLOCK_REALTIME to CLOCK_MONOTONIC. */
static ST_ALWAYS_INLINE st_u64 timeout_ns(st_u32 form, const st_u64 *two, st_u64 start, st_u64 real_offset)
{
    st_u64 unit = form == TIMEOUT_TIMEVAL ? 1000 : 1, ns;

    if (two[0] > 4000000000ull || two[1] * unit >= 1000000000ull)
        return 0;
    ns = two[0] * 1000000000ull + two[1] * unit;
    if (form == TIMEOUT_UNTIL_REAL)
        ns -= real_offset;
    if (form >= TIMEOUT_UNTIL)
        ns -= start;
    return (long long)ns > 0 ? ns : 0;
}

#endif
