/* Restartable sequences (rseq(2)). The kernel aborts a sequence whenever its thread was stopped within it, so
 * one that is stepped is aborted for ever. A sequence is found out by its first abort; from then on it runs
 * as a whole, to breakpoints at every way out, and what it executes is not seen. */
#include "recorder/sources/step/helper.h"

#include <linux/rseq.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>

enum {
    WATCH_STEPS =
        20000,     /* how long a process is looked at closely after something unexplained happened in it */
    LONGEST = 512, /* bytes of a sequence */
};

void step_rseq_suspect(struct step_thread *t)
{
    struct __ptrace_rseq_configuration config = {0};

    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(config), &config) <= 0 ||
        !config.rseq_abi_pointer)
        return;
    t->rseq = config.rseq_abi_pointer;
    t->proc->rseq_watch = WATCH_STEPS;
}

/* The sequence that the thread stands in, by its rseq area. */
static bool current_sequence(const struct step_thread *t, struct rseq_cs *cs)
{
    uint64_t at;

    return step_code_read(&t->proc->code, t->rseq + offsetof(struct rseq, rseq_cs), &at, sizeof(at)) && at &&
           step_code_read(&t->proc->code, at, cs, sizeof(*cs)) &&
           t->ip - cs->start_ip < cs->post_commit_offset && cs->post_commit_offset <= LONGEST;
}

/* Adds an address where the sequence can be left. False when there are more than breakpoints. */
static bool add_exit(struct step_sequence *s, uint64_t ip)
{
    for (unsigned i = 0; i < s->nexits; i++)
        if (s->exit[i] == ip)
            return true;
    if (s->nexits == STEP_BREAKS)
        return false;
    s->exit[s->nexits++] = ip;
    return true;
}

/* The end, the abort handler, and what its branches lead to. An indirect branch or a system call (forbidden
 * in it) is left alone. */
static bool find_exits(struct step_thread *t, struct step_sequence *s, const struct rseq_cs *cs)
{
    uint64_t end = cs->start_ip + cs->post_commit_offset, ip = cs->start_ip;
    bool ok = add_exit(s, end) && add_exit(s, cs->abort_ip);

    while (ok && ip < end) {
        const struct step_insn *insn = step_code_at(&t->proc->code, ip, t->mode);
        uint64_t next = ip + insn->length, to = next + (uint64_t)(int64_t)insn->displacement;

        if (insn->kind == STEP_BAD || insn->kind == STEP_SYSCALL || insn->kind == STEP_RET ||
            insn->kind == STEP_FAR || insn->kind == STEP_CALL || insn->kind == STEP_CALL_INDIRECT ||
            insn->kind == STEP_JUMP_INDIRECT)
            return false;
        if ((insn->kind == STEP_COND || insn->kind == STEP_JUMP) &&
            to - cs->start_ip >= cs->post_commit_offset)
            ok = add_exit(s, to);
        ip = next;
    }
    return ok;
}

/* The step from `before` to here armed a sequence: remembers it. */
static void learn(struct step_thread *t, uint64_t before, const struct rseq_cs *cs)
{
    struct step_sequence s = {.before = before};

    if (t->proc->nsequences < STEP_SEQUENCES && !step_rseq_at(t, before) && find_exits(t, &s, cs))
        t->proc->sequences[t->proc->nsequences++] = s;
}

void step_rseq_look(struct step_thread *t, uint64_t before)
{
    struct rseq_cs cs;

    t->proc->rseq_watch--;
    t->rseq_abort = 0;
    if (!t->rseq || !current_sequence(t, &cs))
        return;
    t->proc->rseq_watch = WATCH_STEPS;
    t->rseq_abort = cs.abort_ip;
    learn(t, before, &cs);
}

const struct step_sequence *step_rseq_at(const struct step_thread *t, uint64_t ip)
{
    for (unsigned i = 0; i < t->proc->nsequences; i++)
        if (t->proc->sequences[i].before == ip)
            return &t->proc->sequences[i];
    return NULL;
}
