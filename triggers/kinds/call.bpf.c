/* call: a watched thread entered a function. */
#include "triggers/bpf/hit.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

st_u32 entered; /* by a watched thread */

static __always_inline void called(void *ctx, const st_u64 *args)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (t && !entered)
        entered = 1;
    if (!t || !call_passes(&span.filter, args, false, 0))
        return;
    for (int i = 0; i < ARGS; i++)
        t->args[i] = args[i];
    hit(ctx, t, t->slot);
}

static __always_inline int called_at(struct pt_regs *ctx)
{
    st_u64 args[ARGS] = {ctx->di, ctx->si, ctx->dx, ctx->cx, ctx->r8, ctx->r9};

    called(ctx, args);
    return 0;
}

SEC("uprobe")
int call_uprobe(struct pt_regs *ctx)
{
    return called_at(ctx);
}

SEC("kprobe")
int call_kprobe(struct pt_regs *ctx)
{
    return context_of(preempt_count()) == ST_WAKER_TASK ? called_at(ctx) : 0;
}

SEC("fentry")
int call_fentry(void *ctx)
{
    st_u64 args[ARGS] = {0};

    if (context_of(preempt_count()) != ST_WAKER_TASK)
        return 0;
    for (int i = 0; i < ARGS; i++)
        bpf_get_func_arg(ctx, i, &args[i]);
    called(ctx, args);
    return 0;
}

static __always_inline void hit_describe(void *ctx, struct thread *t, struct st_stall_record *r)
{
    add_attribute(r, "arg0=%lld", t->args[0]);
    add_attribute(r, "arg1=%lld", t->args[1]);
    add_attribute(r, "arg2=%lld", t->args[2]);
    add_attribute(r, "arg3=%lld", t->args[3]);
}
