/* In what context a CPU runs: which interrupt, softirq and timer it is in, and which timers may have raised
 * that softirq. */
#ifndef ST_TRIGGERS_BPF_CONTEXT_BPF_H
#define ST_TRIGGERS_BPF_CONTEXT_BPF_H

#include "triggers/bpf/kernel.h"
#include "triggers/bpf/socket.bpf.h"

#define SOFTIRQS 16 /* 10, and up to a power of two: the verifier sees the bound */
#define TIMERS   64 /* that ran last on a CPU */

#define HANDED_ON_NS 10000000
#define JUST_NOW_NS  1000000

struct timer_run {
    st_u64 func;

    st_u64 ktime;

    st_u64 at; /* the timer itself: a part of the object that it belongs to */
};

struct cpu_context {
    st_u32 softirq; /* the one that runs, or ran last */

    st_u32 irq;

    st_u64 irq_name; /* kernel address; 0 outside of a handler */

    st_u32 in_timer;

    st_u32 timers_run; /* so many: the last is timers[(timers_run - 1) % TIMERS] */

    struct timer_run timers[TIMERS];

    struct timer_run cause; /* the timer that raised the softirq that runs; func is 0: none */

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

/* The last one (0), or one so far before it. */
static __always_inline struct timer_run *timer_back(struct cpu_context *cpu, st_u32 back)
{
    return &cpu->timers[(cpu->timers_run - 1 - back) % TIMERS];
}

static __always_inline struct timer_run *raised_of(struct cpu_context *cpu, st_u32 vec)
{
    return &cpu->raised[vec % SOFTIRQS];
}

/* Raised by a timer; or by a softirq that itself was (a packet that answers a packet), but not for ever: a
 * network poll raises itself again and again. What an interrupt raises meanwhile is not theirs. */
SEC("tp_btf/softirq_raise")
int BPF_PROG(st_softirq_raise, unsigned int vec)
{
    struct cpu_context *cpu = this_cpu();
    struct timer_run *raised;

    if (!cpu || !(cpu->in_timer || cpu->cause.func))
        return 0;
    raised = raised_of(cpu, vec);
    if (raised->func || context_of(preempt_count()) != ST_WAKER_SOFTIRQ)
        return 0;
    if (cpu->in_timer)
        *raised = *timer_back(cpu, 0);
    else if (bpf_ktime_get_ns() - cpu->cause.ktime < HANDED_ON_NS)
        *raised = cpu->cause;
    return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(st_softirq_entry, unsigned int vec)
{
    struct cpu_context *cpu = this_cpu();
    struct timer_run *raised;

    if (!cpu)
        return 0;
    raised = raised_of(cpu, vec);
    cpu->softirq = vec;
    cpu->cause = *raised;
    raised->func = 0;
    return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(st_timer_entry, struct timer_list *timer)
{
    struct cpu_context *cpu = this_cpu();
    struct timer_run *run;

    if (!cpu)
        return 0;
    cpu->timers_run++;
    run = timer_back(cpu, 0);
    run->ktime = bpf_ktime_get_ns();
    run->func = (st_u64)timer->function;
    run->at = (st_u64)timer;
    cpu->in_timer = 1;
    return 0;
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(st_timer_exit)
{
    struct cpu_context *cpu = this_cpu();

    if (cpu)
        cpu->in_timer = 0;
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

#define WAKER_USER_FRAMES 16

/* Behind them the stack of the program that wakes, by frame pointers. */
static __always_inline void walk_waking_program(void *ctx, struct st_stall_record *r)
{
    st_u32 n = *(volatile st_u16 *)&r->wstack_n;
    long bytes;

    asm volatile("" : "+r"(n)); /* the bound is checked on what is added */
    if (n > ST_STALL_WSTACK - 1 - WAKER_USER_FRAMES)
        return;
    bytes = bpf_get_stack(ctx, &r->wstack[n + 1], WAKER_USER_FRAMES * sizeof(r->wstack[0]), BPF_F_USER_STACK);
    if (bytes <= 0)
        return;
    r->wstack[n] = ST_STALL_USER_FRAMES;
    r->wstack_n = n + 1 + bytes / sizeof(r->wstack[0]);
}

/* The timer that led to a wake-up in softirq context. One pass of the timer softirq runs many timers, and
 * what the later ones hand to a softirq that is raised already does not raise it again. So, of those that ran
 * since the one that raised it (or just now, when something else had), it is the one whose socket the thread
 * waits on; when there is none, the one that raised it. */
static __noinline void name_timer(struct cpu_context *cpu, struct task_struct *task,
                                  struct st_stall_record *r)
{
    struct timer_run *named = &cpu->cause;
    st_u64 since = named->func ? named->ktime : bpf_ktime_get_ns() - JUST_NOW_NS;
    st_u64 socket = socket_waited_on(task);

    for (st_u32 back = 0; socket && back < TIMERS; back++) {
        struct timer_run *one = timer_back(cpu, back);

        if (!one->func || one->ktime < since)
            break;
        if (is_part_of_socket(one->at, socket))
            named = one;
    }
    if (cpu->in_timer)
        named = timer_back(cpu, 0);
    r->timer_func = named->func;
    r->timer_ktime = named->func ? named->ktime : 0;
}

/* Who wakes `task`: fills the waker's part of a record. Runs in the waker's context; `ctx` is a tracing
 * program's. */
static __always_inline void describe_waker(void *ctx, struct task_struct *task, struct st_stall_record *r)
{
    struct cpu_context *cpu = this_cpu();
    st_u64 id = bpf_get_current_pid_tgid();

    r->waker_vec = 0;
    r->waker_irq[0] = '\0';
    r->timer_func = r->timer_ktime = 0;
    r->waker_ctx = context_of(preempt_count());
    r->waker_pid = id >> 32;
    r->waker_tid = (st_u32)id;
    if (r->waker_ctx == ST_WAKER_TASK && !r->waker_tid)
        r->waker_ctx = ST_WAKER_IDLE;
    bpf_get_current_comm(r->waker_comm, sizeof(r->waker_comm));
    walk_waker(ctx, r);
    if (r->waker_ctx == ST_WAKER_TASK && !(bpf_get_current_task_btf()->flags & PF_KTHREAD))
        walk_waking_program(ctx, r);
    if (!cpu)
        return;
    if (r->waker_ctx == ST_WAKER_IRQ && cpu->irq_name) {
        r->waker_vec = cpu->irq;
        bpf_probe_read_kernel_str(r->waker_irq, sizeof(r->waker_irq), (void *)cpu->irq_name);
    } else if (r->waker_ctx == ST_WAKER_SOFTIRQ) {
        r->waker_vec = cpu->softirq;
        name_timer(cpu, task, r);
    }
}

#endif
