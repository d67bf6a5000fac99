/* The stepping helper: a process of its own that does all the ptrace, so that the target survives the death
 * of `arm`.
 *
 *   arm (source.c)  --- commands over a socket --->  helper (helper.c)  --- ptrace --->  the target's threads
 *        <---------- rings in shared memory (shared.h) ----------'
 *
 * One loop: wait for a thread to stop (stop.c), tell the encoder what the instruction did that it just
 * executed (walk.c), let it go on (resume.c). A freeze is a command that the helper answers before it steps
 * on. When the socket closes, the helper detaches (detach.c): every thread goes on as if it had never been
 * stepped. */
#ifndef ST_RECORDER_SOURCES_STEP_HELPER_H
#define ST_RECORDER_SOURCES_STEP_HELPER_H

#include "base/target.h"
#include "recorder/sources/step/clock.h"
#include "recorder/sources/step/code.h"
#include "recorder/sources/step/ptenc.h"
#include "recorder/sources/step/shared.h"
#include "recorder/sources/step/switches.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define HASH_NONFATAL_OOM 1 /* a failed HASH_ADD leaves hh.tbl NULL */
#include <uthash.h>

/* How a thread was last resumed, so what its next stop can be. */
enum step_run {
    STEP_RUN_FREE, /* not recorded: before start(), a command before its exec, a thread without a ring */
    STEP_RUN_STEP, /* one instruction */
    STEP_RUN_TO_SYSCALL, /* stands at a system call instruction, stops at the kernel's entry */
    STEP_RUN_IN_SYSCALL, /* in the kernel, stops at the exit */
    STEP_RUN_TO_BREAK,   /* a repeated string instruction, stops behind it */
    STEP_RUN_UNSEEN,     /* a restartable sequence, stops where it is left */
    STEP_RUN_STOPPED,    /* group-stop (SIGSTOP and its like) */
};

enum {
    STEP_BREAKS = 4,     /* debug registers */
    STEP_SEQUENCES = 64, /* restartable sequences a process */
};

/* A restartable sequence. */
struct step_sequence {
    uint64_t before; /* the instruction that arms it; from there on the thread must not be stopped */

    uint64_t exit[STEP_BREAKS];

    unsigned nexits;
};

struct step_proc {
    pid_t pid;

    unsigned threads;

    bool sigtrap_ignored; /* by the program's wish; the kernel cannot know it while we step (sigtrap.c) */

    uint32_t rseq_watch; /* steps for which restartable sequences are still looked for */

    unsigned nsequences;

    struct step_sequence sequences[STEP_SEQUENCES];

    struct step_code code;

    UT_hash_handle hh;
};

struct step_thread {
    pid_t tid;

    struct step_proc *proc;

    enum step_run run;

    bool recording; /* it is stepped and has a slot */

    /* The instruction that runs next in user code. Whether user code runs is ptenc_enabled(&enc): after a
     * system call or a signal that is known only when an instruction has been executed. */
    uint64_t ip;

    struct step_insn insn; /* as it was decoded when the thread was last resumed */

    enum ptenc_mode mode;

    bool at_restart; /* the kernel will execute the system call at ip anew, before any other user code */

    int64_t remade; /* the number of the system call that we made to restart, so that it can be undone; -1:
                       none */

    bool check; /* the next SIGTRAP may be something else than a step: ask for its siginfo */

    bool own_tf; /* the program set the trap flag itself */

    bool pops_tf; /* the POPF or IRET at ip sets it */

    bool tf_stuck; /* the kernel takes our trap flag for the program's */

    bool break_set;

    bool sigtrap_blocked; /* the program blocks SIGTRAP, we took it out of its mask */

    bool interrupted; /* a PTRACE_INTERRUPT of ours is under way */

    long nr; /* of the system call it is in */

    uint64_t arg[6];

    uint64_t
        entered; /* when, perf clock ns; a system call that we made to restart counts from its first entry */

    bool timeout_changed; /* step_remake() shortened the time-out in a register */

    uint64_t rseq; /* the address of its rseq area, once it was looked for */

    uint64_t rseq_abort; /* != 0: it stands in a sequence and goes on at this address */

    uint64_t vsyscall_return; /* != 0: ip is in the vsyscall page, this is where it returns */

    uint32_t since_time; /* instructions since the clock was last read */

    struct ptenc enc;

    struct step_slot *slot;

    struct step_switches switches;

    UT_hash_handle hh;
};

struct step_helper {
    int sock;

    pid_t arm;

    const struct st_target *target;

    pid_t command; /* waits for its exec; 0 when none or done */

    struct step_shared *shared;

    struct ptenc_config encoding;

    struct step_clock clock;

    struct step_thread *threads;

    struct step_thread *last; /* the one that stopped last */

    struct step_proc *procs;

    bool started; /* stepping */

    uint64_t start_deadline; /* != 0: start() waits for its answer, at most until then (perf clock ns) */

    bool ended; /* it was told that every thread has ended */

    bool leaving; /* detaching */

    bool no_breaks; /* the machine has no hardware breakpoints to give */
};

/* A hook for tests: called for every instruction that was executed. Set before the source is opened. */
extern void (*step_executed)(pid_t tid, uint64_t ip);

/* ---- helper.c ---- */

/* The helper's life; never returns. */
_Noreturn void step_helper_main(struct step_helper *h);

/* ---- thread.c: who is traced ---- */

/* NULL: unknown. */
struct step_thread *step_thread_find(struct step_helper *h, pid_t tid);

/* A thread that is attached to. 0, ST_EFAIL (it is gone), ST_ENOMEM. */
int step_thread_add(struct step_helper *h, pid_t tid, struct step_thread **thread, struct st_error *err);

/* It has ended or was detached from: ends its ring, frees it. */
void step_thread_remove(struct step_helper *h, struct step_thread *t);

/* It is stopped at ip and is stepped from now on. Without a free slot it is not, and counted. */
void step_thread_record(struct step_helper *h, struct step_thread *t);

/* Its process has a new program. `former` is the tid that called exec; its history goes on under the
 * process's own id. */
void step_thread_exec(struct step_helper *h, struct step_thread *t, pid_t former);

/* ---- attach.c ---- */

/* Seizes every thread of the target, without stopping them. On error those seized so far stay so. */
int step_attach(struct step_helper *h, struct st_error *err);

/* A process came into the target: the same for its threads, which are asked to stop if stepping has begun.
 * ST_ECANNOT: refused. */
int step_attach_joined(struct step_helper *h, pid_t pid, struct st_error *err);

/* Asks every thread to stop, to be stepped from there. */
void step_attach_start(struct step_helper *h);

/* ---- stop.c ---- */

/* Whether a SIGTRAP with that si_code is how the kernel tells of a step over the breakpoint of a uprobe
 * (arch/x86/kernel/uprobes.c sends it by send_sig()). */
bool step_is_probe_trap(const struct step_thread *t, int code);

/* A thread changed its state (wait(2)): handles it and resumes the thread. */
void step_on_wait(struct step_helper *h, pid_t tid, int status);

/* A thread that ran to a breakpoint has stopped, there or on the way: finds out where, and takes the
 * breakpoints back. */
void step_catch_up(struct step_helper *h, struct step_thread *t);

/* ---- syscall.c ---- */

void step_on_entry(struct step_helper *h, struct step_thread *t);
void step_on_exit(struct step_helper *h, struct step_thread *t);

/* A system call that was stepped over as one instruction. */
void step_over_syscall(struct step_helper *h, struct step_thread *t);

/* Takes over the position from the registers; notices a system call that the kernel will restart. */
void step_take_position(struct step_thread *t, const struct user_regs_struct *regs);

/* The thread is stopped on its way out of a system call that something woke which the program must not notice
 * (an ignored signal, our own PTRACE_INTERRUPT). If that made it fail with EINTR: makes it restart. */
void step_remake(struct step_thread *t, uint64_t now);

/* A signal with a handler comes after all: EINTR it is. */
void step_unmake(struct step_thread *t);

/* Puts back a time-out that step_remake() shortened: the program finds the register as it left it. */
void step_restore_timeout(struct step_thread *t);

/* ---- walk.c ---- */

/* Whether executing t->insn at t->ip can lead to `to`. */
bool step_leads_to(const struct step_thread *t, uint64_t to);

/* The instruction at t->ip was executed and led to `to`. */
void step_walk(struct step_helper *h, struct step_thread *t, uint64_t to);

/* User code was left before the instruction at t->ip. */
void step_leave(struct step_helper *h, struct step_thread *t);

/* ---- resume.c ---- */

/* Lets a stopped thread go on, with signal `sig` (0: none) in the way that stops it next time where something
 * is to be seen. */
void step_resume(struct step_helper *h, struct step_thread *t, int sig);

/* Takes the breakpoints back, if any are set. The thread is stopped. */
void step_clear_break(struct step_thread *t);

/* ---- rseq.c ---- */

/* Something that no instruction explains happened to the thread. */
void step_rseq_suspect(struct step_thread *t);

/* While proc->rseq_watch: the thread went from `before` to t->ip; learns whether that armed a sequence. */
void step_rseq_look(struct step_thread *t, uint64_t before);

/* The sequence that the instruction at ip arms, or NULL. */
const struct step_sequence *step_rseq_at(const struct step_thread *t, uint64_t ip);

/* ---- signal.c ---- */

enum step_action {
    STEP_SIG_CAUGHT,
    STEP_SIG_IGNORED,
    STEP_SIG_DEFAULT, /* not ignored: ends or stops the process */
};

/* What the thread's process does with a signal. */
enum step_action step_signal_action(pid_t tid, int sig);

/* Signals that are pending for the thread or its process, not blocked, and have a handler. */
bool step_signal_due(pid_t tid);

/* Whether a signal is pending for the thread itself and not blocked. */
bool step_signal_pending(pid_t tid, int sig);

/* ---- sigtrap.c ---- */

/* The thread is stopped and will be stepped from now on. */
void step_sigtrap_begin(struct step_thread *t);

/* Takes our trap flag out of flags that were written to memory: the program must not see it, nor set it again
 * with POPF. */
void step_hide_trap_flag(struct step_thread *t, uint64_t address);

/* It is at the first instruction of a signal handler, its stack pointer is sp. */
void step_sigtrap_handler(struct step_thread *t, uint64_t sp);

/* It is at the exit of system call t->nr. */
void step_sigtrap_after(struct step_thread *t, const struct user_regs_struct *regs);

/* It will not be stepped any more. */
void step_sigtrap_end(struct step_thread *t);

/* ---- detach.c ---- */

/* Lets every thread go on without us; waits for all of them but those the kernel holds for long, which need
 * nothing undone. */
void step_detach_all(struct step_helper *h);

/* ---- small ones ---- */

bool step_get_regs(const struct step_thread *t, struct user_regs_struct *regs);
void step_set_regs(const struct step_thread *t, const struct user_regs_struct *regs);

#endif
