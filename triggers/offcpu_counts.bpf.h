/* offcpu: which ways of being off the CPU count. */
#ifndef ST_TRIGGERS_OFFCPU_COUNTS_BPF_H
#define ST_TRIGGERS_OFFCPU_COUNTS_BPF_H

#include "triggers/offcpu_thread.bpf.h"

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

#endif
