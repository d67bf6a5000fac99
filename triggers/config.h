/* What user space tells the BPF programs before they are loaded, and what it reads back. Shared with BPF. */
#ifndef ST_TRIGGERS_CONFIG_H
#define ST_TRIGGERS_CONFIG_H

#include "base/stall_record.h"

/* Whose threads are watched. */
enum follow_mode {
    FOLLOW_PIDS,   /* the processes in the map `pids`, and what they fork */
    FOLLOW_CGROUP, /* every thread while it is in the cgroup */
    FOLLOW_ALL,    /* every thread but the idle ones and our own */
};

struct follow_config {
    st_u32 mode;

    st_u32 self; /* our own process: never watched */

    st_u32 newborn; /* the process is held back before its first exec: that wait is ours, not its own */

    st_u64 cgroup;
};

/* States that offcpu tells apart. */
enum offcpu_state {
    OFFCPU_BLOCKED = 1,   /* uninterruptible: disk, page fault, vfork */
    OFFCPU_SLEEPING = 2,  /* interruptible: futex, socket, pipe */
    OFFCPU_PREEMPTED = 4, /* runnable, without a CPU */
    OFFCPU_ANY = 7,
};

/* Which data in a socket count. */
enum socket_side {
    SOCKET_UNREAD = 1,
    SOCKET_UNSENT = 2,
    SOCKET_BOTH = 3,
};

#define OFFCPU_SYSCALLS 512 /* bits in a set of system calls */

/* Waits for work, by system call number. */
struct idle_config {
    st_u64 calls[OFFCPU_SYSCALLS / 64];

    st_u64 calls32[OFFCPU_SYSCALLS / 64]; /* of i386 */
};

struct offcpu_config {
    struct idle_config idle;

    st_u32 states; /* enum offcpu_state: which count */

    st_u32 trigger; /* number of the --on */

    st_u32 measure_only;

    st_u32 count_idle; /* idle=yes */

    st_u32 worst; /* each new worst raises the threshold */

    st_u32 early; /* a stall that fires is announced before its record is made */

    st_u64 tick_ns; /* of the jiffies clock, or more */
};

/* A stall that lasts so much longer than its threshold is told while it goes on. */
#define ST_GRACE_NS 40000000ull

/* A log2 histogram with 8 linear steps in each power of two: a value is known within 12.5 %. */
#define HIST_STEPS   8
#define HIST_BUCKETS (64 * HIST_STEPS)

struct hist {
    st_u64 sum;

    st_u64 worst;

    st_u64 bucket[HIST_BUCKETS];
};

/* That of one thread, while threads are told apart. */
struct thread_hist {
    st_u32 tid;

    char comm[16]; /* as it was first seen */

    struct hist hist;
};

#define HIST_FIRST   256  /* threads whose histograms are found at once */
#define HIST_THREADS 4096 /* that are told apart beside them */

/* What a program tells of a thread whose stall goes on. */
struct thread_look {
    st_u64 seq;

    st_u64 ip, sp, bp; /* user registers */

    st_u64 args[6];

    st_u32 kstack_n;

    st_u32 compat;

    st_u64 kstack[ST_STALL_KSTACK];
};

#endif
