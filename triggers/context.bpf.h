/* In what context a CPU runs, which interrupt, softirq and timer it is in, and which timer raised that
 * softirq. */
#ifndef ST_TRIGGERS_CONTEXT_BPF_H
#define ST_TRIGGERS_CONTEXT_BPF_H

#include "triggers/kernel.h"

#define SOFTIRQS 10 /* include/linux/interrupt.h */

#define HANDED_ON_NS 10000000

struct timer_run {
    st_u64 func;

    st_u64 ktime;
};

struct cpu_context {
    st_u32 softirq; /* the one that runs, or ran last */

    st_u32 irq;

    st_u64 irq_name; /* kernel address; 0 outside of a handler */

    struct timer_run timer; /* func is 0 outside of a timer */

    struct timer_run cause; /* the timer that raised the softirq that runs */

    struct timer_run raised[SOFTIRQS]; /* by which timer, until the softirq runs */

    st_u32 output; /* see output.bpf.h */

    st_u32 output_slot;
} __attribute__((aligned(64)));

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* as many as there can be CPUs: set by user space */
    __type(key, st_u32);
    __type(value, struct cpu_context);
} cpus SEC(".maps");

static __always_inline struct cpu_context *this_cpu(void)
{
    st_u32 cpu = bpf_get_smp_processor_id();

    return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline st_u32 context_of(st_u32 count)
{
    if (count & NMI_MASK)
        return ST_WAKER_NMI;
    if (count & HARDIRQ_MASK)
        return ST_WAKER_IRQ;
    return count & SOFTIRQ_SERVING ? ST_WAKER_SOFTIRQ : ST_WAKER_TASK;
}

/* Raised by a timer; or by a softirq that itself was (a packet that answers a packet), but not for ever: a
 * network poll raises itself again and again. What an interrupt raises meanwhile is not theirs. */
SEC("tp_btf/softirq_raise")
int BPF_PROG(st_softirq_raise, unsigned int vec)
{
    struct cpu_context *cpu = this_cpu();

    if (!cpu || vec >= SOFTIRQS || !(cpu->timer.func || cpu->cause.func))
        return 0;
    if (context_of(preempt_count()) != ST_WAKER_SOFTIRQ)
        return 0;
    if (cpu->timer.func)
        cpu->raised[vec] = cpu->timer;
    else if (bpf_ktime_get_ns() - cpu->cause.ktime < HANDED_ON_NS)
        cpu->raised[vec] = cpu->cause;
    return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(st_softirq_entry, unsigned int vec)
{
    struct cpu_context *cpu = this_cpu();

    if (!cpu || vec >= SOFTIRQS)
        return 0;
    cpu->softirq = vec;
    cpu->cause = cpu->raised[vec];
    cpu->raised[vec].func = 0;
    return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(st_timer_entry, struct timer_list *timer)
{
    struct cpu_context *cpu = this_cpu();

    if (!cpu)
        return 0;
    cpu->timer.ktime = bpf_ktime_get_ns();
    cpu->timer.func = (st_u64)timer->function;
    return 0;
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(st_timer_exit)
{
    struct cpu_context *cpu = this_cpu();

    if (cpu)
        cpu->timer.func = 0;
    return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(st_irq_entry, int irq, struct irqaction *action)
{
    struct cpu_context *cpu = this_cpu();

    if (!cpu)
        return 0;
    cpu->irq = irq;
    cpu->irq_name = (st_u64)action->name;
    return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(st_irq_exit)
{
    struct cpu_context *cpu = this_cpu();

    if (cpu)
        cpu->irq_name = 0;
    return 0;
}

/* The function that the tracepoint sched_waking is in; 0: not known. */
const volatile st_u64 wake_up_start;
const volatile st_u64 wake_up_end;

#define OWN_FRAMES 12

/* The waker's stack from try_to_wake_up() on: without the frames of the tracepoint and of this program. */
static __always_inline void walk_waker(void *ctx, struct st_stall_record *r)
{
    long bytes = bpf_get_stack(ctx, r->wstack, sizeof(r->wstack), 0);
    st_u64 skip = 0;

    for (st_u64 i = 0; wake_up_start && i < OWN_FRAMES; i++)
        if (!skip && r->wstack[i] - wake_up_start < wake_up_end - wake_up_start)
            skip = i;
    if (skip)
        bytes = bpf_get_stack(ctx, r->wstack, sizeof(r->wstack), skip);
    r->wstack_n = bytes > 0 ? bytes / sizeof(r->wstack[0]) : 0;
}

/* Who wakes a thread: fills the waker's part of a record. Runs in the waker's context; `ctx` is a tracing
 * program's. */
static __always_inline void describe_waker(void *ctx, struct st_stall_record *r)
{
    struct cpu_context *cpu = this_cpu();
    st_u64 id = bpf_get_current_pid_tgid();

    r->waker_ctx = context_of(preempt_count());
    r->waker_pid = id >> 32;
    r->waker_tid = (st_u32)id;
    if (r->waker_ctx == ST_WAKER_TASK && !r->waker_tid)
        r->waker_ctx = ST_WAKER_IDLE;
    bpf_get_current_comm(r->waker_comm, sizeof(r->waker_comm));
    walk_waker(ctx, r);
    if (!cpu)
        return;
    if (r->waker_ctx == ST_WAKER_IRQ && cpu->irq_name) {
        r->waker_vec = cpu->irq;
        bpf_probe_read_kernel_str(r->waker_irq, sizeof(r->waker_irq), (void *)cpu->irq_name);
    } else if (r->waker_ctx == ST_WAKER_SOFTIRQ) {
        struct timer_run *timer = cpu->timer.func ? &cpu->timer : &cpu->cause;

        r->waker_vec = cpu->softirq;
        r->timer_func = timer->func;
        r->timer_ktime = timer->ktime;
    }
}

#endif
