/* A thread as seen from outside: its name, its registers, its kernel stack. */
#ifndef ST_TRIGGERS_LOOK_BPF_H
#define ST_TRIGGERS_LOOK_BPF_H

#include "triggers/config.h"
#include "triggers/kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct thread_look);
} look SEC(".maps");

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

static __always_inline void look_at_thread(struct thread_look *l, struct task_struct *task, bool compat)
{
    struct pt_regs *regs = user_registers(task);
    long bytes;

    l->ip = regs->ip;
    l->sp = regs->sp;
    l->bp = regs->bp;
    l->compat = compat;
    copy_args(l->args, regs, compat);
    bytes = bpf_get_task_stack(task, l->kstack, sizeof(l->kstack), 0);
    l->kstack_n = bytes > 0 ? bytes / sizeof(l->kstack[0]) : 0;
}

#endif
