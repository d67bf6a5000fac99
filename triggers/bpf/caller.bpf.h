/* The watched thread that makes a system call, by the place of its user registers alone: the hooks of system
 * calls run hundreds of thousands of times a second, and of all processes. Behind span.bpf.h. */
#ifndef ST_TRIGGERS_BPF_CALLER_BPF_H
#define ST_TRIGGERS_BPF_CALLER_BPF_H

#include "triggers/bpf/span.bpf.h"

#define PLACES_BITS 10
#define STACK_BITS  14 /* a kernel stack is no smaller, and aligned so: registers differ above these bits */

/* By place, the slot of the thread that was seen there last plus 1: thread.regs tells whether it is right. 0:
 * none was; the state of a thread that is none of theirs stays out of the caches of other CPUs. */
st_u32 caller_slots[1 << PLACES_BITS];

/* By place, the registers of a thread that is not watched, plus how many had been adopted when that was so.
 */
st_u64 strangers[1 << PLACES_BITS];

/* The verifier lets nothing be computed from an address but its distance from another one. */
static __always_inline st_u64 number_of(const struct pt_regs *regs)
{
    st_u64 number = (st_u64)regs;

    asm volatile("%0 -= %1" : "+r"(number) : "r"(&adoptions));
    return number;
}

static __always_inline st_u32 place_of(st_u64 regs)
{
    return (st_u32)(regs >> STACK_BITS) * 0x9e3779b1u >> (32 - PLACES_BITS);
}

static __always_inline st_u64 stranger_now(st_u64 regs)
{
    return regs + (*(volatile st_u32 *)&adoptions & ((1 << STACK_BITS) - 1));
}

static __noinline struct thread *find_caller(st_u64 regs)
{
    st_u64 stranger = stranger_now(regs); /* before it is looked for: it may be adopted meanwhile */
    struct thread *t = thread_of(bpf_get_current_task_btf());
    st_u32 place = place_of(regs);

    if (t) {
        t->regs = regs;
        caller_slots[place] = t->slot + 1;
    } else if (!late_tasks) {
        strangers[place] = stranger;
    }
    return t;
}

/* `regs`: the argument of sys_enter and sys_exit, the current thread's. NULL: it is not watched. */
static __always_inline struct thread *caller(const struct pt_regs *regs)
{
    st_u64 key = number_of(regs);
    st_u32 place = place_of(key);
    struct thread *t = thread_at(caller_slots[place] - 1);

    if (t && t->regs == key)
        return t;
    return strangers[place] == stranger_now(key) ? NULL : find_caller(key);
}

static __always_inline bool caller_is_member(struct thread *t)
{
    return follow.mode != FOLLOW_CGROUP || is_member(t, bpf_get_current_task_btf());
}

/* Whether the system call that begins, or has just ended, is a 32-bit one. The instruction SYSCALL leaves the
 * return address in rcx and the flags in r11: where they are, there is no need to ask. */
static __always_inline bool is_compat_call(const struct pt_regs *regs)
{
    if (regs->cx == regs->ip && regs->r11 == regs->flags)
        return false;
    return bpf_get_current_task_btf()->thread_info.status & TS_COMPAT;
}

#endif
