/* busy: how long an event loop was away: from leaving a wait for work to entering the next one. */
#include "triggers/bpf/waits.bpf.h"

#include "triggers/bpf/caller.bpf.h"
#include "triggers/bpf/wakes.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* What `args` holds: of the system calls between two waits. */
enum {
    ENTERED,    /* when the one that it is in was */
    LONGEST,    /* ns */
    LONGEST_NR, /* its number */
    IN_CALLS,   /* ns in all of them */
};

static __always_inline bool waits_for_work(struct pt_regs *regs, st_s32 nr)
{
    return nr >= 0 && is_idle_syscall(&span.idle, regs, nr, is_compat_call(regs));
}

/* A wait of an idle kind begins. Whether it is elsewhere than where the thread usually waits: then it is away
 * all the same. */
static __noinline bool waits_elsewhere(struct thread *t, struct pt_regs *regs, st_s32 nr)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct wait_key key;

    t->mark = bpf_ktime_get_ns();
    if (!span.idle.learned)
        return false;
    wait_key_of(&key, &span.idle, task, regs, nr, is_compat_call(regs));
    return !wait_is_usual(&key, task, wait_object(regs, nr, is_compat_call(regs)));
}

static __noinline void idle_is_over(struct thread *t, struct pt_regs *regs)
{
    struct task_struct *task = bpf_get_current_task_btf();
    st_u64 took = bpf_ktime_get_ns() - t->mark;
    struct wait_key key;

    t->mark = 0;
    if (!span.idle.learned && took < threshold_ns)
        return;
    wait_key_of(&key, &span.idle, task, regs, (st_s32)regs->orig_ax, is_compat_call(regs));
    wait_is_over(&key, task, took, span.idle.learned);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(busy_enter, struct pt_regs *regs, long nr)
{
    struct thread *t = caller(regs);

    if (!t || !t->start)
        return 0;
    t->syscall = nr;
    if (waits_for_work(regs, nr) && !(span.idle.noted && waits_elsewhere(t, regs, nr)))
        span_end(ctx, t, t->slot, 0);
    else
        t->args[ENTERED] = bpf_ktime_get_ns();
    return 0;
}

static __always_inline void note_call(struct thread *t)
{
    st_u64 took = bpf_ktime_get_ns() - t->args[ENTERED];

    t->args[IN_CALLS] += took;
    if (took > t->args[LONGEST]) {
        t->args[LONGEST] = took;
        t->args[LONGEST_NR] = t->syscall;
    }
    t->args[ENTERED] = 0;
    t->syscall = -1;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(busy_exit, struct pt_regs *regs, long ret)
{
    struct thread *t = caller(regs);

    if (!t)
        return 0;
    if (t->mark)
        idle_is_over(t, regs);
    if (t->start) {
        if (t->args[ENTERED])
            note_call(t);
        return 0;
    }
    if (!waits_for_work(regs, (st_s32)regs->orig_ax) || !caller_is_member(t))
        return 0;
    t->args[ENTERED] = t->args[LONGEST] = t->args[IN_CALLS] = 0;
    t->args[LONGEST_NR] = -1;
    t->syscall = -1;
    t->flags = is_compat_call(regs) ? ST_STALL_COMPAT : 0;
    span_begin(t, bpf_ktime_get_ns());
    return 0;
}

static void span_found(struct thread *t, struct task_struct *task)
{
}

/* `syscall` is the one it is in, or the longest. */
static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
    if (!end && t->args[ENTERED])
        return;
    r->syscall = (st_s32)t->args[LONGEST_NR];
    add_attribute(r, "syscall_ns=%llu", t->args[LONGEST]);
    add_attribute(r, "in_syscalls_ns=%llu", t->args[IN_CALLS]);
}
