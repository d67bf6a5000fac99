/* usdt: a watched thread hit a probe that its program's author put there. */
#define __VMLINUX_H__ /* the registers have the kernel's names */
#include "triggers/bpf/hit.bpf.h"

#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* As a probe of its own at each place: triggers/kinds/usdt.c finds them, libbpf does not. */
SEC("uprobe")
int usdt_hit(struct pt_regs *ctx)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());
    long value;

    if (!t)
        return 0;
    for (int i = 0; i < ARGS; i++) {
        value = 0;
        bpf_usdt_arg(ctx, i, &value);
        t->args[i] = value;
    }
    if (!call_passes(&span.filter, t->args, false, 0))
        return 0;
    t->seq = bpf_usdt_arg_cnt(ctx);
    hit(ctx, t, t->slot);
    return 0;
}

static __always_inline void hit_describe(void *ctx, struct thread *t, struct st_stall_record *r)
{
    st_u64 n = t->seq; /* there are no spans that it could number */

#pragma unroll
    for (st_u32 i = 0; i < ARGS; i++)
        if (i < n)
            add_attribute(r, "arg%d=%lld", i, t->args[i]);
}
