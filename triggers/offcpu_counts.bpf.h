/* offcpu: which ways of being off the CPU count. */
#ifndef ST_TRIGGERS_OFFCPU_COUNTS_BPF_H
#define ST_TRIGGERS_OFFCPU_COUNTS_BPF_H

#include "triggers/idle.bpf.h"
#include "triggers/offcpu_thread.bpf.h"

/* In which system call, and whether that is a wait for work. */
static __always_inline bool classify_syscall(struct thread *t, struct task_struct *task)
{
    struct pt_regs *regs = user_registers(task);
    st_s32 nr = (st_s32)regs->orig_ax;
    bool compat = task->thread_info.status & TS_COMPAT;

    t->syscall = nr < 0 ? -1 : nr;
    if (nr < 0)
        return false;
    if (compat)
        t->flags = ST_STALL_COMPAT;
    return is_idle_syscall(&offcpu.idle, regs, nr, compat);
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
