/* SIGTRAP and the trap flag belong to the program and to stepping at once. A trap of ours that meets a
 * blocked or ignored SIGTRAP resets its handler to the default (kernel/signal.c, force_sig_info_to_task()):
 * so it is kept out of the real signal mask, and the program is shown the mask that it asked for. */
#include "recorder/sources/step/helper.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

enum {
    SIGTRAP_BIT = 1 << (SIGTRAP - 1),

    TF = 0x100, /* EFLAGS.TF */

    /* Above the stack pointer at a handler's first instruction: the return address, then struct ucontext:
     * flags, link, stack, struct sigcontext (17 registers, then the flags), the mask
     * (arch/x86/include/asm/sigframe.h and uapi/asm/{ucontext,sigcontext}.h). */
    FRAME_FLAGS = 8 + 8 + 8 + 24 + 17 * 8,
    FRAME_MASK = 8 + 8 + 8 + 24 + 256,
};

static bool get_mask(const struct step_thread *t, uint64_t *mask)
{
    return !ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(*mask), mask);
}

static void set_mask(const struct step_thread *t, uint64_t mask)
{
    ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask);
}

/* Takes SIGTRAP out of the mask. Returns whether it was there. */
static bool take_out(struct step_thread *t)
{
    uint64_t mask;

    if (!get_mask(t, &mask) || !(mask & SIGTRAP_BIT))
        return false;
    set_mask(t, mask & ~(uint64_t)SIGTRAP_BIT);
    return true;
}

/* Sets SIGTRAP in a mask in the program's memory. */
static void show_blocked(struct step_thread *t, uint64_t address)
{
    uint8_t low;

    if (!step_code_read(&t->proc->code, address, &low, sizeof(low)))
        return;
    low |= SIGTRAP_BIT;
    step_code_write(&t->proc->code, address, &low, sizeof(low));
}

void step_hide_trap_flag(struct step_thread *t, uint64_t address)
{
    uint16_t flags;

    if (t->own_tf || !step_code_read(&t->proc->code, address, &flags, sizeof(flags)) || !(flags & TF))
        return;
    flags &= (uint16_t)~TF;
    step_code_write(&t->proc->code, address, &flags, sizeof(flags));
}

void step_sigtrap_begin(struct step_thread *t)
{
    t->sigtrap_blocked = take_out(t);
    if (step_signal_action(t->tid, SIGTRAP) == STEP_SIG_IGNORED)
        t->proc->sigtrap_ignored = true;
}

void step_sigtrap_handler(struct step_thread *t, uint64_t sp)
{
    /* Where the kernel takes our trap flag for the program's it gets into the frame. */
    if (t->mode == PTENC_MODE_64)
        step_hide_trap_flag(t, sp + FRAME_FLAGS);
    t->own_tf = false;
    if (t->sigtrap_blocked && t->mode == PTENC_MODE_64)
        show_blocked(t, sp + FRAME_MASK);
    if (take_out(t))
        t->sigtrap_blocked = true;
}

/* rt_sigprocmask(how, set, oldset). */
static void after_sigprocmask(struct step_thread *t)
{
    bool was = t->sigtrap_blocked, in_mask = take_out(t);
    uint8_t set = 0;

    if (was && t->arg[2])
        show_blocked(t, t->arg[2]);
    if (!t->arg[1])
        return;
    step_code_read(&t->proc->code, t->arg[1], &set, sizeof(set));
    if (in_mask || (t->arg[0] == SIG_BLOCK && set & SIGTRAP_BIT))
        t->sigtrap_blocked = true;
    else if (t->arg[0] == SIG_SETMASK || (t->arg[0] == SIG_UNBLOCK && set & SIGTRAP_BIT))
        t->sigtrap_blocked = false;
}

/* rt_sigaction(sig, act, oldact): the handler is the first member of what the kernel is given. */
static void after_sigaction(struct step_thread *t)
{
    uint64_t action;

    if (t->arg[0] == SIGTRAP && t->arg[1] &&
        step_code_read(&t->proc->code, t->arg[1], &action, sizeof(action)))
        t->proc->sigtrap_ignored = action == (uint64_t)(uintptr_t)SIG_IGN;
}

void step_sigtrap_after(struct step_thread *t, const struct user_regs_struct *regs)
{
    int64_t result = (int64_t)regs->rax;

    if (t->mode == PTENC_MODE_64 && t->nr == SYS_rt_sigprocmask && !result)
        after_sigprocmask(t);
    else if (t->mode == PTENC_MODE_64 && t->nr == SYS_rt_sigreturn) {
        t->sigtrap_blocked = take_out(t);
        t->own_tf = regs->eflags & TF;
    } else if (take_out(t)) {
        t->sigtrap_blocked = true;
    }
    if (t->mode == PTENC_MODE_64 && t->nr == SYS_rt_sigaction && !result)
        after_sigaction(t);
}

void step_sigtrap_end(struct step_thread *t)
{
    uint64_t mask;

    if (t->sigtrap_blocked && get_mask(t, &mask))
        set_mask(t, mask | SIGTRAP_BIT);
}
