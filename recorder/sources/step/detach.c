/* Letting the target go: every thread goes on as if it had never been stepped. */
#include "recorder/sources/step/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum {
    SYSCALL_STOP = SIGTRAP | 0x80,
    PATIENCE = 3, /* s */
    TF = 0x100,
};

static void restore_flags(struct step_thread *t)
{
    struct user_regs_struct regs;

    if (t->own_tf || !step_get_regs(t, &regs) || !(regs.eflags & TF))
        return;
    regs.eflags &= ~(unsigned long long)TF;
    step_set_regs(t, &regs);
}

/* A system call that only our own waking it made fail goes on waiting, unless a signal would have ended it
 * too. That is so whether or not the thread was ever stepped: an arm that fails while it is arming has woken
 * it all the same. */
static void restore_syscall(struct step_thread *t)
{
    if (!step_signal_due(t->tid))
        step_remake(t, 0);
}

static void detach(struct step_helper *h, struct step_thread *t, int sig)
{
    step_restore_timeout(t);
    restore_flags(t);
    step_sigtrap_end(t);
    ptrace(PTRACE_DETACH, t->tid, 0, (long)sig);
    step_thread_remove(h, t);
}

/* Whether a SIGTRAP is none of the program's. */
static bool is_own_trap(const struct step_thread *t, int code)
{
    return t->recording && (code == TRAP_TRACE || code == TRAP_HWBKPT || code == SIGTRAP ||
                            (code == TRAP_BRKPT && t->run == STEP_RUN_STEP) || step_is_probe_trap(t, code));
}

/* The last step was made: what it left in the program's memory is put right as on the way (walk.c, stop.c).
 */
static void finish_step(struct step_thread *t, int code)
{
    struct user_regs_struct regs;

    if (!step_get_regs(t, &regs))
        return;
    if (code == SIGTRAP)
        step_sigtrap_handler(t, regs.rsp);
    else if (t->insn.kind == STEP_PUSHF && regs.rip != t->ip)
        step_hide_trap_flag(t, regs.rsp);
    else if ((t->insn.kind == STEP_POPF || t->insn.kind == STEP_IRET) && regs.rip != t->ip)
        t->own_tf = t->pops_tf;
}

static void on_signal_stop(struct step_helper *h, struct step_thread *t, int sig)
{
    siginfo_t info;

    if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info))
        return;
    if (sig == SIGTRAP && is_own_trap(t, info.si_code)) {
        finish_step(t, info.si_code);
        detach(h, t, 0);
        return;
    }
    if (step_signal_action(t->tid, sig) == STEP_SIG_IGNORED)
        restore_syscall(t);
    else
        step_unmake(t);
    detach(h, t, sig);
}

/* At the entry of a system call the thread would take our letting it go for a signal, and a wait would fail
 * (kernel/ptrace.c, ptrace_unlink() sets TIF_SIGPENDING; nothing clears it before the call looks): we ask it
 * to stop, and let it go at the exit. */
static void on_syscall_stop(struct step_helper *h, struct step_thread *t)
{
    if (t->run == STEP_RUN_TO_SYSCALL) {
        t->run = STEP_RUN_IN_SYSCALL;
        ptrace(PTRACE_SYSCALL, t->tid, 0, 0);
        return;
    }
    if (t->run == STEP_RUN_IN_SYSCALL)
        restore_syscall(t);
    detach(h, t, 0);
}

static void on_stop(struct step_helper *h, struct step_thread *t, int status)
{
    int sig = WSTOPSIG(status), event = status >> 16;

    step_catch_up(h, t);
    if (event == PTRACE_EVENT_EXEC) {
        unsigned long former = 0;

        ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &former);
        step_thread_exec(h, t, (pid_t)former);
    }
    if (!event && sig == SYSCALL_STOP) {
        on_syscall_stop(h, t);
    } else if (!event) {
        on_signal_stop(h, t, sig);
    } else if (step_signal_pending(t->tid, SIGTRAP) && t->recording) {
        /* The trap of the last step waits behind this stop; left there it would kill the thread. */
        ptrace(PTRACE_CONT, t->tid, 0, 0);
    } else {
        if (event == PTRACE_EVENT_STOP)
            restore_syscall(t);
        detach(h, t, 0);
    }
}

static void on_wait(struct step_helper *h, pid_t tid, int status)
{
    struct step_thread *t = step_thread_find(h, tid);

    if (!WIFSTOPPED(status)) {
        if (t)
            step_thread_remove(h, t);
        return;
    }
    if (!t && step_thread_add(h, tid, &t, NULL))
        ptrace(PTRACE_DETACH, tid, 0, 0);
    else
        on_stop(h, t, status);
}

static uint64_t seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

void step_detach_all(struct step_helper *h)
{
    struct step_thread *t, *next;
    uint64_t end = seconds() + PATIENCE;

    h->leaving = true;
    HASH_ITER(hh, h->threads, t, next)
    {
        ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
    }
    /* Those that the kernel holds longer than that (uninterruptible sleep) are in a system call: no trap flag
     * is set, and our end detaches them. */
    while (h->threads && seconds() < end) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

        if (tid > 0) {
            on_wait(h, tid, status);
        } else if (tid < 0 && errno == ECHILD) {
            break;
        } else if (tid == 0) {
            struct timespec pause = {.tv_nsec = 200 * 1000};

            nanosleep(&pause, NULL);
        }
    }
    HASH_ITER(hh, h->threads, t, next)
    {
        step_thread_remove(h, t);
    }
}
