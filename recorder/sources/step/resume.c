/* How a stopped thread is let go on. */
#include "recorder/sources/step/helper.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>

enum {
    REP_WORTH_A_BREAK = 8, /* iterations */

    TF = 0x100, /* EFLAGS.TF */
};

static const uint64_t vsyscall_page = 0xffffffffff600000;

static bool set_debug_register(const struct step_thread *t, unsigned n, uint64_t value)
{
    size_t offset = offsetof(struct user, u_debugreg) + n * sizeof(((struct user *)0)->u_debugreg[0]);

    return !ptrace(PTRACE_POKEUSER, t->tid, offset, value);
}

/* DR7 bit 2n enables the breakpoint in DRn; zero type and length bits: on execution (SDM volume 3, "Debug
 * Registers"). */
static bool set_breaks(struct step_helper *h, struct step_thread *t, const uint64_t *ip, unsigned n)
{
    uint64_t enable = 0;
    bool ok = !h->no_breaks;

    for (unsigned i = 0; ok && i < n; i++) {
        ok = set_debug_register(t, i, ip[i]);
        enable |= 1ull << (2 * i);
    }
    t->break_set = ok && set_debug_register(t, 7, enable);
    if (!t->break_set && errno != ESRCH)
        h->no_breaks = true;
    return t->break_set;
}

void step_clear_break(struct step_thread *t)
{
    if (t->break_set)
        set_debug_register(t, 7, 0);
    t->break_set = false;
}

/* Stepping stops once an iteration; a breakpoint behind the instruction, in a debug register, runs them all.
 */
static bool run_repeated(struct step_helper *h, struct step_thread *t)
{
    uint64_t count, end = t->ip + t->insn.length;

    errno = 0;
    count = (uint64_t)ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user_regs_struct, rcx), 0);
    if (errno || (uint32_t)count < REP_WORTH_A_BREAK)
        return false;
    return set_breaks(h, t, &end, 1);
}

/* The kernel believes that a POPF or IRET that is stepped sets the trap flag for the program, and from then
 * on that every trap flag is the program's (arch/x86/kernel/step.c, enable_single_step()). It runs to a
 * breakpoint instead. */
static bool run_flags(struct step_helper *h, struct step_thread *t)
{
    unsigned slot = t->insn.kind == STEP_IRET ? (unsigned)t->insn.displacement : 0;
    uint64_t to = 0;
    struct user_regs_struct regs;
    uint16_t flags = 0;

    if (!step_get_regs(t, &regs) ||
        !step_code_read(&t->proc->code, regs.rsp + 2 * slot, &flags, sizeof(flags)))
        return false;
    t->pops_tf = flags & TF;
    if (!slot)
        to = t->ip + t->insn.length;
    else if (!step_code_read(&t->proc->code, regs.rsp, &to, slot))
        return false;
    if (set_breaks(h, t, &to, 1))
        return true;
    t->tf_stuck = true;
    return false;
}

static bool run_to_break(struct step_helper *h, struct step_thread *t)
{
    if (t->insn.kind == STEP_REP)
        return !t->own_tf && run_repeated(h, t);
    return (t->insn.kind == STEP_POPF || t->insn.kind == STEP_IRET) && run_flags(h, t);
}

/* At an instruction that arms a restartable sequence: goes through it unseen. */
static bool run_through(struct step_helper *h, struct step_thread *t)
{
    const struct step_sequence *s = t->proc->nsequences ? step_rseq_at(t, t->ip) : NULL;

    if (!s || !set_breaks(h, t, s->exit, s->nexits))
        return false;
    step_leave(h, t);
    return true;
}

static void note_vsyscall(struct step_thread *t)
{
    struct user_regs_struct regs;

    t->vsyscall_return = 0;
    if (step_get_regs(t, &regs))
        step_code_read(&t->proc->code, regs.rsp, &t->vsyscall_return, sizeof(t->vsyscall_return));
}

/* A trap flag that the kernel takes for the program's is not cleared by resuming without a step. */
static void free_trap_flag(struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!t->own_tf && step_get_regs(t, &regs)) {
        regs.eflags &= ~(unsigned long long)TF;
        step_set_regs(t, &regs);
    }
    t->tf_stuck = false;
}

static void go(struct step_thread *t, enum __ptrace_request how, enum step_run run, int sig)
{
    if (t->tf_stuck && how != PTRACE_SINGLESTEP)
        free_trap_flag(t);
    t->run = run;
    ptrace(how, t->tid, 0, (long)sig);
}

/* With a signal that has a handler, one step stops at the handler's first instruction. */
static void go_to_handler(struct step_thread *t, int sig)
{
    t->check = true;
    go(t, PTRACE_SINGLESTEP, STEP_RUN_STEP, sig);
}

void step_resume(struct step_helper *h, struct step_thread *t, int sig)
{
    struct step_code *code = &t->proc->code;

    if (!t->recording) {
        go(t, PTRACE_CONT, STEP_RUN_FREE, sig);
        return;
    }
    t->insn = *step_code_at(code, t->ip, t->mode);
    if (sig && step_signal_action(t->tid, sig) == STEP_SIG_CAUGHT) {
        go_to_handler(t, sig);
    } else if (t->at_restart || (t->insn.kind == STEP_SYSCALL && !step_code_changed(code, t->ip, t->mode))) {
        go(t, PTRACE_SYSCALL, STEP_RUN_TO_SYSCALL, sig);
    } else if (!sig && run_to_break(h, t)) {
        go(t, PTRACE_CONT, STEP_RUN_TO_BREAK, 0);
    } else if (!sig && !t->own_tf && run_through(h, t)) {
        go(t, PTRACE_CONT, STEP_RUN_UNSEEN, 0);
    } else {
        if ((t->ip & ~0xfffull) == vsyscall_page)
            note_vsyscall(t);
        if (sig)
            t->check = true;
        go(t, PTRACE_SINGLESTEP, STEP_RUN_STEP, sig);
    }
}
