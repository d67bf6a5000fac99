/* What a stop of a thread means. See ptrace(2), "Stopped tracees". */
#include "recorder/sources/step/helper.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum {
    SYSCALL_STOP = SIGTRAP | 0x80, /* PTRACE_O_TRACESYSGOOD */
};

bool step_get_regs(const struct step_thread *t, struct user_regs_struct *regs)
{
    return !ptrace(PTRACE_GETREGS, t->tid, 0, regs);
}

void step_set_regs(const struct step_thread *t, const struct user_regs_struct *regs)
{
    ptrace(PTRACE_SETREGS, t->tid, 0, regs);
}

static bool read_ip(const struct step_thread *t, uint64_t *ip)
{
    errno = 0;
    *ip = (uint64_t)ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user_regs_struct, rip), 0);
    return !errno;
}

/* ------------------------------------------------------------------ */
/* Signals                                                             */

/* The thread got a signal of its own at `ip`; the tracer decides whether it receives it. */
static void on_signal(struct step_helper *h, struct step_thread *t, int sig, uint64_t ip)
{
    enum step_action action = step_signal_action(t->tid, sig);

    if (!t->recording) {
        if (action == STEP_SIG_IGNORED)
            step_remake(t, 0);
        else
            step_unmake(t);
        step_resume(h, t, sig);
        return;
    }
    if (sig == SIGTRAP && t->proc->sigtrap_ignored)
        action = STEP_SIG_IGNORED;
    if (action == STEP_SIG_IGNORED) {
        /* Without a tracer an ignored signal wakes nobody (kernel/signal.c, sig_ignored()). */
        if (!t->at_restart)
            step_remake(t, step_clock_now(&h->clock));
        step_resume(h, t, 0);
        return;
    }
    step_unmake(t);
    step_leave(h, t);
    if (t->insn.kind == STEP_TRAP && ip == t->ip + t->insn.length)
        t->ip = ip;
    step_resume(h, t, sig);
}

/* A signal handler is about to begin. */
static void enter_handler(struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!step_get_regs(t, &regs))
        return;
    t->ip = regs.rip;
    t->at_restart = false;
    t->remade = -1;
    step_sigtrap_handler(t, regs.rsp);
}

bool step_is_probe_trap(const struct step_thread *t, int code)
{
    return code == SI_USER && t->recording && t->run == STEP_RUN_STEP && t->insn.kind != STEP_SYSCALL &&
           step_code_probed(&t->proc->code, t->ip);
}

/* The trampoline by which a function with a uretprobe returns makes a system call of its own (uretprobe(2)),
 * and the kernel gives nobody its code to read. */
static bool is_unread_syscall(const struct step_thread *t, uint64_t ip)
{
    return t->insn.kind == STEP_BAD && ip == t->ip + STEP_SYSCALL_LENGTH;
}

/* SIGTRAP whose cause must be looked up. */
static void on_rare_trap(struct step_helper *h, struct step_thread *t, uint64_t ip)
{
    bool own_step = t->own_tf;
    siginfo_t info;

    if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info))
        return;
    t->check = false;
    if (step_is_probe_trap(t, info.si_code))
        info.si_code = TRAP_TRACE;
    switch (info.si_code) {
    case SIGTRAP: /* the tracer's own notification (kernel/signal.c, signal_setup_done()) */
        enter_handler(t);
        break;
    case TRAP_TRACE:
    case TRAP_HWBKPT:
        if (t->at_restart) /* the kernel restarted it, and it did not block; both in one step */
            step_over_syscall(h, t);
        else
            step_walk(h, t, ip);
        if (!own_step)
            break;
        on_signal(h, t, SIGTRAP, ip);
        return;
    case TRAP_BRKPT: /* the end of a system call that was stepped over (arch/x86/kernel/ptrace.c) */
        if (t->at_restart || t->insn.kind == STEP_SYSCALL || is_unread_syscall(t, ip)) {
            step_over_syscall(h, t);
            break;
        }
        /* fallthrough */
    default:
        on_signal(h, t, SIGTRAP, ip);
        return;
    }
    step_resume(h, t, 0);
}

static void on_trap(struct step_helper *h, struct step_thread *t)
{
    uint64_t ip;

    if (!read_ip(t, &ip))
        return;
    if (t->run == STEP_RUN_STEP && !t->check && !t->own_tf && ip != t->ip && step_leads_to(t, ip)) {
        step_walk(h, t, ip);
        step_resume(h, t, 0);
        return;
    }
    if (t->recording)
        on_rare_trap(h, t, ip);
    else
        step_resume(h, t, SIGTRAP);
}

/* ------------------------------------------------------------------ */
/* Other stops                                                         */

static void on_syscall_stop(struct step_helper *h, struct step_thread *t)
{
    if (t->run == STEP_RUN_IN_SYSCALL) {
        step_on_exit(h, t);
        step_resume(h, t, 0);
        return;
    }
    step_on_entry(h, t);
    ptrace(PTRACE_SYSCALL, t->tid, 0, 0);
}

/* Goes on within a system call (clone, exec) as it was entered. */
static void go_on_inside(struct step_thread *t)
{
    step_switches_collect(&t->switches, t->slot, true);
    step_switches_resume(&t->switches);
    ptrace(t->run == STEP_RUN_IN_SYSCALL ? PTRACE_SYSCALL
           : t->run == STEP_RUN_STEP     ? PTRACE_SINGLESTEP
                                         : PTRACE_CONT,
           t->tid, 0, 0);
}

static void on_exec(struct step_helper *h, struct step_thread *t)
{
    unsigned long former = 0;

    ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &former);
    step_thread_exec(h, t, (pid_t)former);
    if ((t->tid == h->command || t->interrupted) && h->started && !t->recording) {
        h->command = t->tid == h->command ? 0 : h->command;
        t->interrupted = false;
        step_thread_record(h, t);
        t->run = STEP_RUN_IN_SYSCALL;
    }
    go_on_inside(t);
}

/* The first stop after attaching, that of a new thread, or the end of a group-stop. */
static void on_event_stop(struct step_helper *h, struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!t->recording && h->started && t->proc->pid != h->command && step_get_regs(t, &regs)) {
        step_take_position(t, &regs);
        step_thread_record(h, t);
    }
    if (t->interrupted && (!t->recording || !t->at_restart))
        step_remake(t, 0);
    t->interrupted = false;
    t->check = true;
    step_resume(h, t, 0);
}

static void on_group_stop(struct step_helper *h, struct step_thread *t)
{
    if (t->recording)
        step_leave(h, t);
    t->check = true;
    t->interrupted = false;
    ptrace(PTRACE_LISTEN, t->tid, 0, 0);
}

void step_catch_up(struct step_helper *h, struct step_thread *t)
{
    uint64_t ip;

    if ((t->run != STEP_RUN_TO_BREAK && t->run != STEP_RUN_UNSEEN) || !read_ip(t, &ip))
        return;
    step_clear_break(t);
    if (t->run == STEP_RUN_TO_BREAK && ip != t->ip)
        step_walk(h, t, ip);
    t->ip = ip;
    t->run = STEP_RUN_STEP;
    t->insn = (struct step_insn){.kind = STEP_UNREAD};
    t->check = true;
}

static void on_stop(struct step_helper *h, struct step_thread *t, int status)
{
    int sig = WSTOPSIG(status), event = status >> 16;
    uint64_t ip;

    step_catch_up(h, t);
    switch (event) {
    case 0:
        break;
    case PTRACE_EVENT_EXEC:
        on_exec(h, t);
        return;
    case PTRACE_EVENT_STOP:
        if (sig == SIGTRAP)
            on_event_stop(h, t);
        else
            on_group_stop(h, t);
        return;
    default:
        go_on_inside(t);
        return;
    }
    if (sig == SYSCALL_STOP)
        on_syscall_stop(h, t);
    else if (sig == SIGTRAP)
        on_trap(h, t);
    else if (read_ip(t, &ip))
        on_signal(h, t, sig, ip);
}

/* A thread that nobody told us of: the kernel attached us to it when it was created. */
static struct step_thread *welcome(struct step_helper *h, pid_t tid)
{
    struct step_thread *t;

    return step_thread_add(h, tid, &t, NULL) ? NULL : t;
}

void step_on_wait(struct step_helper *h, pid_t tid, int status)
{
    struct step_thread *t = step_thread_find(h, tid);

    if (!WIFSTOPPED(status)) {
        if (t)
            step_thread_remove(h, t);
        return;
    }
    if (!t)
        t = welcome(h, tid);
    if (!t) {
        ptrace(PTRACE_CONT, tid, 0, 0);
        return;
    }
    on_stop(h, t, status);
    /* Any other stop took the one that was asked for with it (kernel/signal.c, ptrace_stop()). */
    if (t->interrupted)
        ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}
