/* offcpu: fills the records. */
#ifndef ST_TRIGGERS_KINDS_OFFCPU_RECORD_BPF_H
#define ST_TRIGGERS_KINDS_OFFCPU_RECORD_BPF_H

#include "triggers/bpf/about.bpf.h"
#include "triggers/bpf/look.bpf.h"
#include "triggers/bpf/python.bpf.h"
#include "triggers/bpf/quota.bpf.h"
#include "triggers/bpf/timeout.bpf.h"
#include "triggers/bpf/uring.bpf.h"
#include "triggers/kinds/offcpu_thread.bpf.h"

#define URING_AT   (ABOUT_PEER + 4 * ABOUT_SLOT) /* behind what a wake-up by a socket tells */
#define URING_ROOM 26                            /* of each: what /proc tells needs some too */
#define URING_MOST 10000000000000ull             /* ns, that fit */

/* Those of the waker, which is current, while the record has no user stack yet. */
static __always_inline void keep_waking_python(struct pending *p)
{
    struct task_struct *task = bpf_get_current_task_btf();
    st_u64 n;

    p->waker_python_n = 0;
    p->r.ustack_n = 0;
    if (p->r.waker_ctx != ST_WAKER_TASK || task->flags & PF_KTHREAD)
        return;
    walk_python(&p->r, task);
    if (p->r.ustack_n < 3)
        return;
    n = p->r.ustack_n - 1;
    p->waker_python_n = n < 2 * PYTHON_WAKER_FRAMES ? n : 2 * PYTHON_WAKER_FRAMES;
    __builtin_memcpy(p->waker_python, &p->r.ustack[1], sizeof(p->waker_python));
    p->r.ustack_n = 0;
}

/* Behind all the others. */
static __always_inline void add_waking_python(struct pending *p)
{
    st_u32 at = *(volatile st_u16 *)&p->r.ustack_n, n = p->waker_python_n;

    asm volatile("" : "+r"(at)); /* the bound is checked on what is the index */
    if (!n || n > 2 * PYTHON_WAKER_FRAMES || at > ST_STALL_USTACK - 1 - 2 * PYTHON_WAKER_FRAMES)
        return;
    p->r.ustack[at] = ST_STALL_WAKER_PYTHON_FRAMES;
    __builtin_memcpy(&p->r.ustack[at + 1], p->waker_python, sizeof(p->waker_python));
    p->r.ustack_n = at + 1 + n;
}

static __always_inline void base_record(struct st_stall_record *r, struct thread *t, st_u32 flags)
{
    r->magic = ST_STALL_MAGIC;
    r->version = ST_STALL_VERSION;
    r->kind = ST_STALL_OFFCPU;
    r->trigger = offcpu.trigger;
    r->flags = flags | t->flags;
    r->threshold_ns = threshold_ns;
    r->state = t->state;
    r->syscall = t->syscall;
    r->cpu = t->cpu;
    r->next_tid = t->next_tid;
    if (!t->state)
        __builtin_memcpy(r->next_comm, t->next_comm, sizeof(r->next_comm));
}

/* The thread's registers in user space, as they are on its kernel stack. */
static __always_inline void copy_user_registers(struct pending *p, struct task_struct *task)
{
    struct pt_regs *regs;

    if (task->flags & PF_KTHREAD)
        return;
    regs = user_registers(task);
    p->r.ustack[0] = regs->ip;
    p->r.ustack_n = 1;
    p->sp = regs->sp;
    p->bp = regs->bp;
    if (p->r.syscall >= 0 && p->r.syscall == (st_s32)regs->orig_ax)
        copy_args(p->r.syscall_args, regs, p->r.flags & ST_STALL_COMPAT);
}

/* `took` is by the switch clock; a stall that was told keeps the start that was told. */
static __always_inline void fill_ended(struct pending *p, struct thread *t, struct task_struct *task,
                                       st_u64 took, st_u64 told_start)
{
    struct st_stall_record *r = &p->r;
    st_u64 ktime = bpf_ktime_get_ns() - t->back_since;
    long bytes;

    base_record(r, t, told_start ? ST_STALL_COMPLETION : fires(ktime) ? ST_STALL_FIRED : 0);
    r->seq = told_start ? t->seq : __sync_fetch_and_add(&last_seq, 1) + 1;
    r->start_ktime = told_start ? told_start : ktime - took;
    r->end_ktime = ktime;
    r->measured_ns = ktime - r->start_ktime;
    name_thread(r, task);
    /* Woken before the threshold: known without the stack. */
    if (t->state && !r->waker_ctx) {
        r->waker_ctx = t->waker_ctx;
        r->waker_pid = t->waker >> 32;
        r->waker_tid = (st_u32)t->waker;
        r->waker_vec = ST_WAKER_VEC_UNKNOWN;
    }
    if (!t->state)
        about_quota(r, task);
    copy_user_registers(p, task);
    p->run_delay = task->sched_info.run_delay;
    if (t->back_since) {
        r->flags |= ST_STALL_STACK_LATE | ST_STALL_UNTRACED;
        return;
    }
    bytes = bpf_get_task_stack(task, r->kstack, sizeof(r->kstack), 0);
    r->kstack_n = bytes > 0 ? bytes / sizeof(r->kstack[0]) : 0;
}

/* How long it waited in the run queue is known once it runs: then it was woken. */
static __always_inline void find_wake_time(struct pending *p, struct task_struct *task)
{
    st_u64 waited = task->sched_info.run_delay - p->run_delay;

    if (!p->r.wake_ktime && p->r.state && p->r.waker_ctx && waited < p->r.measured_ns)
        p->r.wake_ktime = p->r.end_ktime - waited;
}

/* The last part of a record: the user stack, if the thread itself is current; and out. False: not out, try
 * again. */
/* What a wait in io_uring_enter was for. An operation that ends in the thread itself, after it was woken, has
 * not ended yet: then it is the one that is pending. */
static __noinline void about_uring(struct st_stall_record *r)
{
    static const char name[] = "io_uring=%s", took[] = "io_uring_ns=%llu", pending[] = "io_uring_pending=%u";
    struct uring_wait w;
    st_u64 value;

    uring_find(r->tid, r->start_ktime, r->end_ktime != 0, &w);
    if (!w.name)
        return;
    value = (st_u64)w.name;
    bpf_snprintf(r->extra + URING_AT, URING_ROOM, name, &value, sizeof(value));
    value = w.took && w.took < URING_MOST ? w.took : w.pending;
    if (w.took && w.took < URING_MOST)
        bpf_snprintf(r->extra + URING_AT + URING_ROOM, URING_ROOM, took, &value, sizeof(value));
    else
        bpf_snprintf(r->extra + URING_AT + URING_ROOM, URING_ROOM, pending, &value, sizeof(value));
    r->extra_n = URING_AT + 2 * URING_ROOM;
}

/* What woke it by data had no time-out, or another one. */
static __noinline void about_timeout(struct st_stall_record *r)
{
    static const char timeout[] = "timeout_ns=%llu";
    st_u64 ns = r->extra_n || r->flags & ST_STALL_STACK_LATE ? 0 : timeout_asked(r);

    if (!ns)
        return;
    about_number(r, 0, timeout, ns);
    r->extra_n = ABOUT_SLOT;
}

static __noinline bool finish_record(struct thread *t, st_u32 slot)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct pending *p = bpf_map_lookup_elem(&pending, &slot);

    if (!p)
        return true;
    if (offcpu.early && p->r.flags & ST_STALL_FIRED)
        announce(&p->r);
    if (p->r.ustack_n && (st_u64)task == t->task) {
        struct pt_regs *regs = user_registers(task);

        if (regs->ip != p->r.ustack[0] || regs->sp != p->sp)
            p->r.flags |= ST_STALL_STACK_LATE;
        about_timeout(&p->r);
        find_wake_time(p, task);
        if (!(p->r.flags & ST_STALL_COMPAT))
            walk_user_stack(p);
        /* Nobody takes them out of a record that does not fire. */
        if ((p->r.flags & (ST_STALL_FIRED | ST_STALL_STACK_LATE)) == ST_STALL_FIRED)
            walk_python(&p->r, task);
        if (p->r.flags & ST_STALL_FIRED)
            add_waking_python(p);
    }
    if (uring_told && p->r.syscall == NR_IO_URING_ENTER && !(p->r.flags & ST_STALL_COMPAT))
        about_uring(&p->r);
    if (!try_record(OUTPUT_PENDING, slot, &p->r))
        return false;
    bpf_map_delete_elem(&pending, &slot);
    return true;
}

static __always_inline bool has_to_emit(struct thread *t)
{
    return t->emit && __sync_lock_test_and_set(&t->emit, 0);
}

static __always_inline void give_up_record(st_u32 slot)
{
    bpf_map_delete_elem(&pending, &slot);
    count_lost_record();
}

static __always_inline void flush(struct thread *t, st_u32 slot)
{
    if (has_to_emit(t) && !finish_record(t, slot))
        give_up_record(slot);
}

#endif
