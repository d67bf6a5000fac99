/* What user space tells the BPF programs before they are loaded, and what it reads back. Shared with BPF. */
#ifndef ST_TRIGGERS_BPF_CONFIG_H
#define ST_TRIGGERS_BPF_CONFIG_H

#include "base/stall_record.h"

/* Whose threads are watched. */
enum follow_mode {
    FOLLOW_PIDS,   /* the processes in the map `pids`, and what they fork */
    FOLLOW_CGROUP, /* every thread while it is in the cgroup */
    FOLLOW_ALL,    /* every thread but the idle ones and our own */
};

#define FOLLOW_COMM 16

struct follow_config {
    st_u32 mode;

    st_u32 self; /* our own process: never watched */

    st_u32 newborn; /* the process is held back before its first exec: that wait is ours, not its own */

    st_u64 cgroup;

    char comm[FOLLOW_COMM]; /* FOLLOW_PIDS: the processes are those that have this name, or get it; "": those
                             * in the map */
};

/* States that offcpu tells apart. */
enum offcpu_state {
    OFFCPU_BLOCKED = 1,   /* uninterruptible: disk, page fault, vfork */
    OFFCPU_SLEEPING = 2,  /* interruptible: futex, socket, pipe */
    OFFCPU_PREEMPTED = 4, /* runnable, without a CPU */
    OFFCPU_ANY = 7,
};

/* What counts that waits in a socket. */
enum socket_side {
    SOCKET_UNREAD = 1,
    SOCKET_UNSENT = 2,
    SOCKET_UNACCEPTED = 4, /* connections */
    SOCKET_ANY = 7,
};

#define OFFCPU_SYSCALLS 512 /* bits in a set of system calls */

/* Of one system call. */
struct call_count {
    st_u64 count; /* entered */

    st_u64 worst; /* ns, of those that have returned */
};

/* Waits for work, by system call number. */
struct idle_config {
    st_u64 calls[OFFCPU_SYSCALLS / 64];

    st_u64 calls32[OFFCPU_SYSCALLS / 64]; /* of i386 */

    st_u32 learned; /* idle=learned: they are at the places where the thread usually waits, and only there */

    st_u32 by_depth; /* the depth of the stack tells places apart */

    st_u32 noted; /* waits for work that are over the threshold are kept, to be told at the end */
};

/* Where the interpreter of a Python program keeps the frames of its threads (triggers/python.h): offsets. */
struct python_layout {
    st_u32 interpreters; /* in _PyRuntime */

    st_u32 interpreter_next, threads; /* in an interpreter */

    st_u32 thread_next, thread_id, native_id, frame; /* in a thread's state */

    st_u32 by_cframe; /* what is at `frame` points to a _PyCFrame, which holds the frame at `cframe` */

    st_u32 cframe;

    st_u32 previous, code, instruction, owner; /* in a frame */
};

struct python_target {
    st_u64 runtime; /* address of _PyRuntime */

    struct python_layout at;
};

#define PYTHON_FRAMES       24 /* of a stall at most: the innermost ones */
#define PYTHON_WAKER_FRAMES 8
#define PYTHON_THREADS      256 /* that are looked through for one */
#define PYTHON_INTERPRETERS 4
#define PYTHON_LAST_BEGIN   (ST_STALL_USTACK - 2 - 2 * (PYTHON_FRAMES + PYTHON_WAKER_FRAMES)) /* in ustack */
#define PYTHON_PROCESSES    1024
#define PYTHON_OWNED_BY_C                                                                                    \
    3 /* frames from this owner on hold no code of the program: FRAME_OWNED_BY_CSTACK                        \
       */
#define PYTHON_OBJECT_MASK (~3ull) /* references are tagged from 3.14 on */

/* A place: where in its code a thread waits. With `ip` 0 it stands for all waits. */
struct wait_key {
    st_u32 id; /* process or thread id */

    st_u32 of; /* enum wait_of */

    st_u64 ip; /* return address of the system call */

    st_u32 syscall; /* with WAIT_COMPAT where it is one of i386 */

    st_u32 depth; /* the user stack pointer's last bits: one call path into it has one depth */
};

enum wait_of {
    WAIT_OF_PROCESS,
    WAIT_OF_THREAD,
    WAIT_OF_YOUNG, /* of the threads of a process that were born while it was watched, in their first waits */
    WAIT_OF_OBJECT, /* of a thread, on an object that is not its usual one, which is in the place of `ip` */
    WAIT_OF_LAST,   /* of threads of a pool, in their first waits: those behind a wait at the place that `ip`
                       stands for */
    WAIT_OF_NEXT,   /* and of these the ones at this place: `ip` stands for both */
    WAIT_OF_POOL, /* of threads of a pool, in their first waits: `ip` 1: all but each one's first; 2: of these
                     the ones on another object than most of the thread's */
};

#define WAIT_COMPAT 0x80000000u
#define WAIT_DEPTH  0xfffu /* stacks of threads begin at other addresses, but at the same place of a page */

/* What is known of one. Those of threads are counted only. */
struct wait_place {
    st_u64 count;

    st_u64 unusual; /* that many of them were no waits for work */

    st_u64 sum, longest; /* ns, of those that have ended */

    st_u32 tid; /* that had the longest, and its name */

    char comm[16];

    st_u32 unused;

    st_u64 object; /* of all waits of a thread: the one that most of them were on, if there is such a one, */

    st_u64 votes; /* and by how many these are more than the others (the majority vote of Boyer and Moore) */

    st_u64 last; /* of all waits of a thread: what stands for the place of the last one; 0: there was none */
};

/* A thread's place is usual when it, or its process, waits there in one of WAIT_SHARE waits. Before a thread
 * has waited WAIT_FIRST times it is judged by the others of its pool that waited where it did before; and
 * where those are fewer, nothing is known: then the list holds. */
#define WAIT_FIRST 64
#define WAIT_SHARE 16

/* After so many waits it can be said on which object a thread of such a pool waits most. */
#define WAIT_FEW 8

#define WAIT_PLACES       16384 /* and totals, of processes and of threads, with idle=learned */
#define WAIT_PLACES_NOTED 4096

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

/* What a program tells of a thread whose stall goes on, all of one moment. */
struct thread_look {
    st_u64 seq;

    st_u64 ip, sp, bp; /* user registers; ip is 0 where they are not known: it runs */

    st_u64 args[6];

    st_s32 syscall; /* that it is in, and that args are of; -1: none */

    st_u32 state; /* as st_stall_record.state; 0: it runs, or could */

    st_u32 kstack_n; /* 0 also where it runs */

    st_u32 compat;

    st_u64 kstack[ST_STALL_KSTACK];
};

#endif
