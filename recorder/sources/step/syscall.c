/* System calls: out of user code at the entry, back at the exit, and those that are restarted. */
#include "recorder/sources/step/helper.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* What the kernel returns to itself for a system call that it may restart (include/linux/errno.h). */
enum {
    RESTART_FIRST = 512, /* ERESTARTSYS */
    RESTART_LAST = 516,  /* ERESTART_RESTARTBLOCK */

    USER32_CS = 0x23,
};

static int64_t result_of(const struct step_thread *t, const struct user_regs_struct *regs)
{
    return t->mode == PTENC_MODE_32 ? (int32_t)regs->rax : (int64_t)regs->rax;
}

static int64_t number_of(const struct step_thread *t, const struct user_regs_struct *regs)
{
    return t->mode == PTENC_MODE_32 ? (int32_t)regs->orig_rax : (int64_t)regs->orig_rax;
}

static enum ptenc_mode mode_of(const struct user_regs_struct *regs)
{
    return regs->cs == USER32_CS ? PTENC_MODE_32 : PTENC_MODE_64;
}

void step_take_position(struct step_thread *t, const struct user_regs_struct *regs)
{
    int64_t result;

    t->mode = mode_of(regs);
    result = -result_of(t, regs);
    t->at_restart = number_of(t, regs) >= 0 && result >= RESTART_FIRST && result <= RESTART_LAST;
    t->ip = t->at_restart ? regs->rip - STEP_SYSCALL_LENGTH : regs->rip;
}

/* ------------------------------------------------------------------ */
/* Failing with EINTR although nothing happened                        */

/* System calls that answer a wake-up without a signal with EINTR where they should go on waiting, and that
 * have done nothing yet when they do (signal(7): "Interruption of system calls and library functions by stop
 * signals", and those with a time-out set on the socket). */
static bool is_wait(long nr)
{
    switch (nr) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_splice:
    case SYS_sendfile:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    case SYS_futex:
    case SYS_futex_waitv:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_wait4:
    case SYS_waitid:
        return true;
    default:
        return false;
    }
}

/* The same for 32-bit programs (arch/x86/entry/syscalls/syscall_32.tbl), those with 64-bit times included. */
static bool is_wait_32(long nr)
{
    static const short waits[] = {
        3,   4,   145, 146, 180, 181, 333, 334, 378,
        379,           /* read, write, readv, writev, pread, pwrite, preadv, pwritev */
        187, 239, 313, /* sendfile, splice */
        102, 337, 345, 364, 369, 370, 371, 372, 417, /* socketcall, the messages, accept4, sendto, recvfrom */
        256, 319, 441,                               /* epoll_wait, epoll_pwait */
        82,  142, 168, 308, 309, 413, 414,           /* select, poll, pselect6, ppoll */
        117, 279, 280, 418, 419, 420,                /* ipc, mq_timedsend, mq_timedreceive, semtimedop */
        177, 421, 247, 416, 426,                     /* rt_sigtimedwait, io_getevents, io_uring_enter */
        240, 422, 449,                               /* futex */
        55,  221, 143,                               /* fcntl, flock */
        7,   114, 284,                               /* waitpid, wait4, waitid */
    };

    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        if (waits[i] == nr)
            return true;
    return false;
}

/* What is left of an epoll_wait's time-out, so that wake-ups do not prolong it. Zero must not become "for
 * ever". */
static int32_t rest_of(int32_t timeout_ms, uint64_t ns)
{
    uint64_t ms = ns / 1000000;

    if (timeout_ms <= 0)
        return timeout_ms;
    return ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int32_t)ms;
}

void step_remake(struct step_thread *t, uint64_t now)
{
    struct user_regs_struct regs;

    if (!step_get_regs(t, &regs))
        return;
    t->mode = mode_of(&regs);
    t->remade = number_of(t, &regs);
    if (result_of(t, &regs) != -EINTR ||
        !(t->mode == PTENC_MODE_32 ? is_wait_32(t->remade) : is_wait(t->remade))) {
        t->remade = -1;
        return;
    }
    if (now && t->mode == PTENC_MODE_64 && t->entered &&
        (t->remade == SYS_epoll_wait || t->remade == SYS_epoll_pwait)) {
        t->timeout_changed = true;
        regs.r10 = (uint32_t)rest_of((int32_t)t->arg[3], now - t->entered);
    }
    regs.rax = (uint64_t)t->remade;
    regs.rip -= STEP_SYSCALL_LENGTH;
    regs.orig_rax = (uint64_t)-1;
    step_set_regs(t, &regs);
    t->ip = regs.rip;
    t->at_restart = true;
}

void step_restore_timeout(struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!t->timeout_changed || !step_get_regs(t, &regs))
        return;
    t->timeout_changed = false;
    regs.r10 = t->arg[3];
    step_set_regs(t, &regs);
}

void step_unmake(struct step_thread *t)
{
    struct user_regs_struct regs;

    if (t->remade < 0)
        return;
    step_restore_timeout(t);
    if (!step_get_regs(t, &regs))
        return;
    if (regs.rip != t->ip || number_of(t, &regs) >= 0 || result_of(t, &regs) != t->remade) {
        /* One that is not stepped has gone on since. */
        t->remade = -1;
        return;
    }
    regs.rax = (uint64_t)-EINTR;
    regs.rip += STEP_SYSCALL_LENGTH;
    regs.orig_rax = (uint64_t)t->remade;
    step_set_regs(t, &regs);
    t->remade = -1;
    t->at_restart = false;
    t->ip = regs.rip;
}

/* ------------------------------------------------------------------ */
/* Entry and exit                                                      */

/* User code ended with the system call at t->ip. */
static void leave_user(struct step_helper *h, struct step_thread *t)
{
    uint64_t now = step_clock_now(&h->clock);

    ptenc_time(&t->enc, now);
    if (!ptenc_enabled(&t->enc))
        ptenc_enable(&t->enc, t->ip, t->mode);
    if (step_executed)
        step_executed(t->tid, t->ip);
    ptenc_disable(&t->enc);
    if (t->remade < 0)
        t->entered = now;
}

/* A thread that we let run free by mistake (the code changed under us, or a handler was set in that moment)
 * comes in sight again: what it did is missing. */
static void find_again(struct step_helper *h, struct step_thread *t, uint64_t ip)
{
    step_leave(h, t);
    t->ip = ip;
}

static void note_call(struct step_thread *t, const struct user_regs_struct *regs)
{
    t->nr = (long)number_of(t, regs);
    t->arg[0] = regs->rdi;
    t->arg[1] = regs->rsi;
    t->arg[2] = regs->rdx;
    if (!t->timeout_changed)
        t->arg[3] = regs->r10;
    t->arg[4] = regs->r8;
    t->arg[5] = regs->r9;
}

void step_on_entry(struct step_helper *h, struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!step_get_regs(t, &regs))
        return;
    /* SYSENTER's return address is not behind it. */
    if (t->mode == PTENC_MODE_64 && regs.rip != t->ip + STEP_SYSCALL_LENGTH)
        find_again(h, t, regs.rip - STEP_SYSCALL_LENGTH);
    leave_user(h, t);
    note_call(t, &regs);
    t->at_restart = false;
    t->remade = -1;
    step_switches_resume(&t->switches);
    t->run = STEP_RUN_IN_SYSCALL;
}

/* System calls after which other code may stand at an address. */
static void forget_code(struct step_thread *t, uint64_t result)
{
    struct step_code *code = &t->proc->code;

    if (t->mode == PTENC_MODE_32) {
        if (t->nr == 90 || t->nr == 91 || t->nr == 125 || t->nr == 163 ||
            t->nr == 192) /* mmap, munmap, ... */
            step_code_forget(code, 0, UINT64_MAX);
        return;
    }
    switch (t->nr) {
    case SYS_mmap:
        step_code_forget(code, result, result + t->arg[1]);
        break;
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_madvise:
        step_code_forget(code, t->arg[0], t->arg[0] + t->arg[1]);
        break;
    case SYS_mremap:
        step_code_forget(code, t->arg[0], t->arg[0] + t->arg[1]);
        step_code_forget(code, result, result + t->arg[2]);
        break;
    case SYS_shmat:
    case SYS_shmdt:
    case SYS_remap_file_pages:
        step_code_forget(code, 0, UINT64_MAX);
        break;
    default:
        break;
    }
}

static void leave_kernel(struct step_thread *t, const struct user_regs_struct *regs)
{
    step_switches_stop(&t->switches, t->slot);
    forget_code(t, regs->rax);
    step_restore_timeout(t);
    step_take_position(t, regs);
    step_sigtrap_after(t, regs);
    t->nr = -1;
}

void step_on_exit(struct step_helper *h, struct step_thread *t)
{
    struct user_regs_struct regs;

    (void)h;
    if (step_get_regs(t, &regs))
        leave_kernel(t, &regs);
}

void step_over_syscall(struct step_helper *h, struct step_thread *t)
{
    struct user_regs_struct regs;

    if (!step_get_regs(t, &regs))
        return;
    leave_user(h, t);
    t->at_restart = false;
    t->remade = -1;
    step_code_forget(&t->proc->code, 0, UINT64_MAX);
    leave_kernel(t, &regs);
}
