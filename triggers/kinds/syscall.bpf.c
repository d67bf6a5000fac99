/* syscall: how long a system call of a watched thread took. */
#include "triggers/bpf/python.bpf.h"

#include "triggers/bpf/caller.bpf.h"
#include "triggers/bpf/wakes.bpf.h"

#include "triggers/bpf/timeout.bpf.h"
#include "triggers/bpf/uring.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile st_s32 only = -1; /* this system call only */

st_u32 seen; /* that one, in a watched thread */

/* Those that are made instead, by number, until it is. */
struct call_count calls[OFFCPU_SYSCALLS];

/* Calls whose return value is a number of bytes. */
const volatile st_u64 moves_bytes[OFFCPU_SYSCALLS / 64];

/* Threads on other CPUs raise it too: who comes in between is tried again. */
static __always_inline void raise_to(st_u64 *worst, st_u64 value)
{
    for (int i = 0; i < 4; i++) {
        st_u64 was = *(volatile st_u64 *)worst;

        if (value <= was || __sync_val_compare_and_swap(worst, was, value) == was)
            return;
    }
}

/* The call counts, unless its thread is none of the target's just now. */
static __always_inline bool begins(struct thread *t, struct pt_regs *regs, st_s32 nr, bool compat)
{
    t->syscall = nr;
    t->flags = compat ? ST_STALL_COMPAT : 0;
    if (only >= 0)
        return nr == only && !compat;
    if (!is_idle_syscall(&span.idle, regs, nr, compat))
        return true;
    t->flags |= ST_STALL_IDLE;
    return span.count_idle;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long nr)
{
    struct thread *t;
    bool compat;

    if (nr < 0 || (only >= 0 && nr != only))
        return 0;
    t = caller(regs);
    if (!t)
        return 0;
    compat = is_compat_call(regs);
    if (!begins(t, regs, nr, compat) || !caller_is_member(t))
        return 0;
    if (!seen)
        seen = 1;
    if (span.filter.n)
        copy_args(t->args, regs, compat);
    span_begin(t, bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
    struct thread *t = caller(regs);

    if (!t || !t->start)
        return 0;
    if (call_passes(&span.filter, t->args, true, ret))
        span_end(ctx, t, t->slot, ret);
    else
        span_drop(t, t->slot);
    return 0;
}

/* ---- while the one that is named is not seen ---- */

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_other_enter, struct pt_regs *regs, long nr)
{
    st_u32 number = (st_u32)nr;
    struct thread *t;

    if (seen || nr < 0 || nr == only || nr >= OFFCPU_SYSCALLS)
        return 0;
    t = caller(regs);
    if (!t || is_compat_call(regs) || !caller_is_member(t))
        return 0;
    t->mark = bpf_ktime_get_ns();
    asm volatile("" : "+r"(number)); /* the verifier sees the bound where it is used */
    __sync_fetch_and_add(&calls[number & (OFFCPU_SYSCALLS - 1)].count, 1);
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_other_exit, struct pt_regs *regs, long ret)
{
    struct thread *t;
    st_u32 number;
    st_u64 took;

    if (seen)
        return 0;
    t = caller(regs);
    if (!t || !t->mark)
        return 0;
    took = bpf_ktime_get_ns() - t->mark;
    t->mark = 0;
    number = (st_u32)user_registers(bpf_get_current_task_btf())->orig_ax;
    asm volatile("" : "+r"(number));
    raise_to(&calls[number & (OFFCPU_SYSCALLS - 1)].worst, took);
    return 0;
}

static void span_found(struct thread *t, struct task_struct *task)
{
    struct pt_regs *regs = user_registers(task);
    st_s32 nr = (st_s32)regs->orig_ax;
    bool compat = task->thread_info.status & TS_COMPAT;

    if (task->on_cpu || nr < 0 || task->flags & PF_KTHREAD)
        return;
    if (!begins(t, regs, nr, compat) || !is_member(t, task))
        return;
    seen = 1;
    copy_args(t->args, regs, compat);
    t->flags |= ST_STALL_FOUND;
    t->cpu = task->thread_info.cpu;
    __sync_val_compare_and_swap(&t->start, 0, bpf_ktime_get_ns() & ~ONGOING);
}

static __always_inline bool counts_bytes(struct thread *t)
{
    return !(t->flags & ST_STALL_COMPAT) && t->syscall >= 0 && in_set(moves_bytes, t->syscall);
}

static __noinline void describe_uring(struct st_stall_record *r)
{
    struct uring_wait w;

    uring_find(r->tid, r->start_ktime, r->end_ktime != 0, &w);
    if (w.name)
        add_attribute(r, "io_uring=%s", w.name);
    if (w.took)
        add_attribute(r, "io_uring_ns=%llu", w.took);
    add_attribute(r, "io_uring_pending=%u", w.pending);
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    st_u64 ns;

    if (uring_told && t->syscall == NR_IO_URING_ENTER)
        describe_uring(r);
    if (!end)
        return;
    copy_args(r->syscall_args, user_registers(bpf_get_current_task_btf()), t->flags & ST_STALL_COMPAT);
    if (end->exits)
        return;
    ns = timeout_asked(r);
    if (ns)
        add_attribute(r, "timeout_ns=%llu", ns);
    add_attribute(r, "ret=%lld", end->ret);
    if ((st_s64)end->ret >= 0 && counts_bytes(t))
        add_attribute(r, "bytes=%lld", end->ret);
}
