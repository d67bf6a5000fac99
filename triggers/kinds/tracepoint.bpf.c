/* tracepoint: a watched thread hit one. */
#include "triggers/bpf/fields.bpf.h"
#include "triggers/bpf/hit.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define SHOWN 6

/* Numbers of the record that are told: their places, and their names. */
const volatile struct filter_term shown[SHOWN];
const volatile st_u32 shown_n;
const char shown_name[SHOWN][24] = {""};

static __always_inline void was_hit(void *ctx)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());

    if (t)
        hit(ctx, t, t->slot);
}

/* A program on a tracepoint that returns 0 takes the event from everyone's perf (trace_call_bpf() in the
 * kernel's trace/bpf_trace.c). */
SEC("tracepoint")
int tracepoint_hit(void *ctx)
{
    if (fields_pass(&span.filter, ctx))
        was_hit(ctx);
    return 1;
}

/* Where tracefs is not there: without fields. */
SEC("raw_tp")
int tracepoint_raw_hit(void *ctx)
{
    was_hit(ctx);
    return 0;
}

static __always_inline void hit_describe(void *ctx, struct thread *t, struct st_stall_record *r)
{
#pragma unroll
    for (st_u32 i = 0; i < SHOWN; i++)
        if (i < shown_n)
            add_attribute(r, "%s=%lld", shown_name[i], field_value(&shown[i], ctx));
}
