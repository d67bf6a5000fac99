/* A thread as seen from outside: its name, its registers, its kernel stack. */
#ifndef ST_TRIGGERS_BPF_LOOK_BPF_H
#define ST_TRIGGERS_BPF_LOOK_BPF_H

#include "triggers/bpf/config.h"
#include "triggers/bpf/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct thread_look);
} look SEC(".maps");

/* Which thread: set by user space. The kernel lets an iterator see that one alone only from Linux 6.1. */
st_u32 look_tid;

static __always_inline bool is_looked_for(struct task_struct *task)
{
    return task && (st_u32)task->pid == look_tid;
}

static __always_inline void name_thread(struct st_stall_record *r, struct task_struct *task)
{
    r->pid = BPF_CORE_READ(task, tgid);
    r->tid = BPF_CORE_READ(task, pid);
    bpf_core_read(r->comm, sizeof(r->comm), &task->comm);
}

static __always_inline void copy_args(st_u64 *args, struct pt_regs *regs, bool compat)
{
    args[0] = compat ? regs->bx : regs->di;
    args[1] = compat ? regs->cx : regs->si;
    args[2] = regs->dx;
    args[3] = compat ? regs->si : regs->r10;
    args[4] = compat ? regs->di : regs->r8;
    args[5] = compat ? regs->bp : regs->r9;
}

/* Of a thread that has a CPU the kernel's stack is that of an earlier moment, and so are its user registers,
 * unless it is known to be in a system call all the while. */
static __always_inline void look_at_thread(struct thread_look *l, struct task_struct *task, bool compat,
                                           bool in_syscall)
{
    struct pt_regs *regs = user_registers(task);
    bool runs = task->on_cpu;
    long bytes = 0;

    l->ip = runs && !in_syscall ? 0 : regs->ip;
    l->sp = regs->sp;
    l->bp = regs->bp;
    l->compat = compat;
    l->syscall = l->ip ? (st_s32)regs->orig_ax : -1;
    l->state = runs ? 0 : task->__state;
    copy_args(l->args, regs, compat);
    if (!runs)
        bytes = bpf_get_task_stack(task, l->kstack, sizeof(l->kstack), 0);
    l->kstack_n = bytes > 0 ? bytes / sizeof(l->kstack[0]) : 0;
}

#endif
