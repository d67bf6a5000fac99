/* quiet: how long an event did not happen in any thread of the target. The slot 0 of `threads` is no thread's
 * but the event's: its span goes from one time it happens to the next. */
#define LOOKS_AT_ALL
#include "triggers/bpf/fields.bpf.h"
#include "triggers/bpf/span.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define EVENT_SLOT 0
#define NO_TASK    1 /* is not read: nothing is there */

/* Who did it last. */
struct {
    st_u64 id;

    char comm[16];
} last;

static __always_inline void happened(void *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct span_end end = {.ktime = bpf_ktime_get_ns(), .task = task};
    struct thread *t = thread_of(task), *e = thread_at(EVENT_SLOT);
    st_u64 start, took;

    if (!t || !e || !is_member(t, task))
        return;
    last.id = bpf_get_current_pid_tgid();
    bpf_get_current_comm(last.comm, sizeof(last.comm));
    start = __sync_lock_test_and_set(&e->start, end.ktime & ~ONGOING);
    took = end.ktime - (start & ~ONGOING);
    if (!start || (st_s64)took < 0)
        return;
    measure(took, t);
    if (took < threshold_ns || span.measure_only)
        return;
    e->cpu = bpf_get_smp_processor_id();
    tell_ended(ctx, e, t->slot, start, &end);
    if (span.worst && took >= threshold_ns)
        threshold_ns = took + 1;
}

static __always_inline int called_at(struct pt_regs *ctx)
{
    st_u64 args[ARGS] = {ctx->di, ctx->si, ctx->dx, ctx->cx, ctx->r8, ctx->r9};

    if (call_passes(&span.filter, args, false, 0))
        happened(ctx);
    return 0;
}

SEC("uprobe")
int quiet_uprobe(struct pt_regs *ctx)
{
    return called_at(ctx);
}

SEC("kprobe")
int quiet_kprobe(struct pt_regs *ctx)
{
    return called_at(ctx);
}

SEC("fentry")
int quiet_fentry(void *ctx)
{
    st_u64 args[ARGS] = {0};

    for (int i = 0; i < ARGS; i++)
        bpf_get_func_arg(ctx, i, &args[i]);
    if (call_passes(&span.filter, args, false, 0))
        happened(ctx);
    return 0;
}

SEC("tracepoint")
int quiet_tracepoint(void *ctx)
{
    if (fields_pass(&span.filter, ctx))
        happened(ctx);
    return 1; /* 0 would take the event from everyone's perf */
}

SEC("raw_tp")
int quiet_raw_tracepoint(void *ctx)
{
    happened(ctx);
    return 0;
}

/* Armed: the event counts from now. */
static void span_found(struct thread *t, struct task_struct *task)
{
    struct thread *e = thread_at(EVENT_SLOT);

    if (!e || e->task)
        return;
    e->syscall = -1;
    last.id = ((st_u64)task->tgid << 32) | task->tgid;
    bpf_core_read(last.comm, sizeof(last.comm), &task->comm);
    e->start = bpf_ktime_get_ns() & ~ONGOING;
    e->task = NO_TASK;
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    if (end)
        return;
    r->pid = last.id >> 32;
    r->tid = (st_u32)last.id;
    __builtin_memcpy(r->comm, last.comm, sizeof(r->comm));
}
