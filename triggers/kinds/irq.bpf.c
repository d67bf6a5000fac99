/* irq: how long the handler of a device's interrupt held a CPU that a watched thread had. */
#include "triggers/bpf/handler.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define NAME 32

const volatile char only[NAME]; /* the handler with this name only; "": all */

static __always_inline bool is_wanted(struct irqaction *action)
{
    char name[NAME] = "";

    if (!only[0])
        return true;
    bpf_probe_read_kernel_str(name, sizeof(name), action->name);
    for (int i = 0; i < NAME; i++) {
        if (name[i] != only[i])
            return false;
        if (!only[i])
            break;
    }
    return true;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_begins, int irq, struct irqaction *action)
{
    struct thread *h;

    if (!is_wanted(action))
        return 0;
    h = handler_begins(irq);
    if (h)
        h->args[0] = (st_u64)action->name;
    return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_ends)
{
    handler_ends(ctx);
    return 0;
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    char name[NAME] = "";

    bpf_probe_read_kernel_str(name, sizeof(name), (void *)t->args[0]);
    add_attribute(r, "irq=%llu", t->mark);
    add_attribute(r, "handler=%s", name);
}
