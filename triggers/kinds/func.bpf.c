/* func: how long a function took in a watched thread: the outermost of recursive calls. Of a user function by
 * uprobes, of a kernel function by fentry and fexit or by kprobes. */
#include "triggers/bpf/wakes.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

st_u32 entered; /* by a watched thread */

const volatile st_u32 in_kernel; /* then only what a thread itself calls counts, no interrupt */

/* ---- with registers: uprobes, kprobes ---- */

/* A call that was left without a return (longjmp, an exception) is known by its stack pointer: a later call
 * does not stand below it. */
static __always_inline int enter_at(struct pt_regs *ctx)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (!t || (t->start && ctx->sp < t->mark) || !is_member(t, bpf_get_current_task_btf()))
        return 0;
    if (in_kernel && context_of(preempt_count()) != ST_WAKER_TASK)
        return 0;
    if (!entered)
        entered = 1;
    t->mark = ctx->sp;
    t->args[0] = ctx->di;
    t->args[1] = ctx->si;
    t->args[2] = ctx->dx;
    t->args[3] = ctx->cx;
    t->args[4] = ctx->r8;
    t->args[5] = ctx->r9;
    span_begin(t, bpf_ktime_get_ns());
    return 0;
}

/* The end of the thread's call counts, if it is one that counts. */
static __always_inline void leave(void *ctx, struct thread *t, st_u64 ktime, st_u64 ret)
{
    if (call_passes(&span.filter, t->args, true, ret))
        span_end_at(ctx, t, t->slot, ktime, ret);
    else
        span_drop(t, t->slot);
}

static __always_inline int leave_at(struct pt_regs *ctx)
{
    st_u64 ktime = bpf_ktime_get_ns();
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (t && t->start && ctx->sp > t->mark)
        leave(ctx, t, ktime, ctx->ax);
    return 0;
}

SEC("uprobe")
int func_uprobe(struct pt_regs *ctx)
{
    return enter_at(ctx);
}

SEC("uretprobe")
int func_uretprobe(struct pt_regs *ctx)
{
    return leave_at(ctx);
}

SEC("kprobe")
int func_kprobe(struct pt_regs *ctx)
{
    return enter_at(ctx);
}

SEC("kretprobe")
int func_kretprobe(struct pt_regs *ctx)
{
    return leave_at(ctx);
}

/* ---- fentry, fexit: always in pairs; `mark` is the depth ---- */

SEC("fentry")
int func_fentry(void *ctx)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (!t || context_of(preempt_count()) != ST_WAKER_TASK)
        return 0;
    if (t->mark++ || !is_member(t, bpf_get_current_task_btf()))
        return 0;
    if (!entered)
        entered = 1;
    for (int i = 0; i < ARGS; i++) {
        st_u64 arg = 0;

        bpf_get_func_arg(ctx, i, &arg);
        t->args[i] = arg;
    }
    span_begin(t, bpf_ktime_get_ns());
    return 0;
}

SEC("fexit")
int func_fexit(void *ctx)
{
    st_u64 ktime = bpf_ktime_get_ns(), ret = 0;
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (!t || context_of(preempt_count()) != ST_WAKER_TASK || !t->mark || --t->mark || !t->start)
        return 0;
    bpf_get_func_ret(ctx, &ret);
    leave(ctx, t, ktime, ret);
    return 0;
}

static void span_found(struct thread *t, struct task_struct *task)
{
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    add_attribute(r, "arg0=%lld", t->args[0]);
    add_attribute(r, "arg1=%lld", t->args[1]);
    add_attribute(r, "arg2=%lld", t->args[2]);
    add_attribute(r, "arg3=%lld", t->args[3]);
    if (end && !end->exits)
        add_attribute(r, "ret=%lld", end->ret);
}
