/* offcpu: which ways of being off the CPU count. */
#ifndef ST_TRIGGERS_KINDS_OFFCPU_COUNTS_BPF_H
#define ST_TRIGGERS_KINDS_OFFCPU_COUNTS_BPF_H

#include "triggers/bpf/idle.bpf.h"
#include "triggers/kinds/offcpu_thread.bpf.h"

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

/* Where the thread went to wait. When its return was not seen, its registers tell of something else by now.
 */
static __always_inline void wait_key_kept(struct wait_key *key, struct thread *t, struct task_struct *task)
{
    key->id = task->tgid;
    key->of = WAIT_OF_PROCESS;
    key->ip = t->idle_ip;
    key->syscall = (st_u32)t->syscall | (t->flags & ST_STALL_COMPAT ? WAIT_COMPAT : 0);
    key->depth = t->idle_depth;
    settle_restarted(key);
}

/* A program's thread begins to wait in an idle system call. Whether it is stalled all the same. */
static __noinline bool waits_elsewhere(struct thread *t, struct task_struct *task)
{
    struct pt_regs *regs = user_registers(task);
    bool compat = t->flags & ST_STALL_COMPAT;
    struct wait_key key;

    wait_key_of(&key, &offcpu.idle, task, regs, t->syscall, compat);
    t->idle_since = switch_clock(task);
    t->idle_ip = key.ip;
    t->idle_depth = key.depth;
    if (!offcpu.idle.learned)
        return false;
    if (wait_is_usual(&key, task, wait_object(regs, t->syscall, compat)))
        return false;
    t->flags &= ~ST_STALL_IDLE;
    return true;
}

/* The wait that begins is one that a program makes, not the kernel. */
static __always_inline bool has_place(struct thread *t, struct task_struct *task)
{
    return t->syscall >= 0 && !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
}

/* Whether this kind of being off the CPU counts; sets the thread's state and system call. `leaves`: it begins
 * now, and the thread is current. */
static __always_inline bool counts(struct thread *t, struct task_struct *task, st_u32 state, bool leaves)
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
    if (offcpu.count_idle)
        return true;
    return offcpu.idle.noted && leaves && has_place(t, task) && waits_elsewhere(t, task);
}

/* The wait for work is over: it runs since `now` (by the switch clock). */
static __noinline void idle_is_over(struct thread *t, struct task_struct *task, st_u64 now)
{
    st_u64 took = now - t->idle_since;
    struct wait_key key;

    t->idle_since = 0;
    if ((long long)took < 0 || (!offcpu.idle.learned && took < threshold_ns))
        return;
    wait_key_kept(&key, t, task);
    wait_is_over(&key, task, took, offcpu.idle.learned);
}

enum { NEVER_COUNTS = TASK_STOPPED_BIT | TASK_TRACED_BIT | TASK_PARKED | TASK_DEAD | TASK_FROZEN | TASK_NEW };

#endif
