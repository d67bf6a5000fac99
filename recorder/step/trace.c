/* Traces: straight runs of instructions that are executed at one go instead of being stepped one by one. A trace follows direct
 * jumps and calls and ends where the program can go two ways or more; breakpoints stand at every address where it can come out. */
#include "recorder/step/helper.h"

#include <sys/ptrace.h>

enum {
    WORTH_A_RUN = 2, /* instructions; fewer are stepped */
};

static const uint64_t user_end = 1ull << 47;

bool step_trace_holds(const struct step_trace *tr, uint64_t ip)
{
    for (unsigned i = 0; i < tr->n; i++)
        if (tr->ip[i] == ip)
            return true;
    return false;
}

static void append(struct step_trace *tr, uint64_t ip, const struct step_insn *insn)
{
    tr->ip[tr->n] = ip;
    tr->insn[tr->n++] = *insn;
}

static uint64_t wrap(const struct step_thread *t, uint64_t ip)
{
    return t->mode == PTENC_MODE_32 ? (uint32_t)ip : ip;
}

/* Where a trace may go on: not into itself, nor where a run would not stop again. */
static bool is_open(const struct step_thread *t, uint64_t ip)
{
    return ip < user_end && !step_trace_holds(&t->trace, ip);
}

/* A conditional branch can be the trace's last instruction if both its ways lead out of it, or to its beginning. */
static bool end_with_branch(struct step_thread *t, uint64_t ip, const struct step_insn *insn)
{
    struct step_trace *tr = &t->trace;
    uint64_t next = wrap(t, ip + insn->length), to = wrap(t, next + (uint64_t)(int64_t)insn->displacement);
    bool loops = tr->n && to == tr->ip[0];

    if (!is_open(t, next) || next == ip || to == ip || (!loops && !is_open(t, to)))
        return false;
    append(tr, ip, insn);
    tr->exit[0] = next;
    tr->exit[1] = to;
    tr->nexits = next == to ? 1 : 2;
    return true;
}

/* Adds the instruction at *ip and moves *ip behind it. False: the trace ends before it. */
static bool extend(struct step_thread *t, uint64_t *ip, const struct step_insn *insn)
{
    uint64_t next = wrap(t, *ip + insn->length);

    switch ((enum step_kind)insn->kind) {
    case STEP_PLAIN:
    case STEP_REP:
    case STEP_PUSHF:
        break;
    case STEP_JUMP:
    case STEP_CALL:
        next = wrap(t, next + (uint64_t)(int64_t)insn->displacement);
        break;
    default:
        return false;
    }
    if (next == *ip || !is_open(t, next))
        return false;
    append(&t->trace, *ip, insn);
    *ip = next;
    return true;
}

/* The longest trace from t->ip. Returns the kind of the instruction that ended it. */
static enum step_kind build(struct step_thread *t)
{
    struct step_trace *tr = &t->trace;
    uint64_t ip = t->ip;
    const struct step_insn *insn;

    tr->n = 0;
    for (;;) {
        insn = step_code_at(&t->proc->code, ip, t->mode);
        if (insn->watched || tr->n == STEP_TRACE - 1 || (t->proc->nsequences && step_rseq_at(t, ip)))
            break;
        if (insn->kind == STEP_COND && end_with_branch(t, ip, insn))
            return STEP_COND;
        if (!extend(t, &ip, insn))
            break;
    }
    tr->exit[0] = ip;
    tr->nexits = 1;
    return insn->watched ? STEP_PLAIN : (enum step_kind)insn->kind;
}

enum step_run step_trace_begin(struct step_helper *h, struct step_thread *t)
{
    struct step_trace *tr = &t->trace;
    enum step_kind end;

    if (h->no_breaks || t->own_tf || t->in_sequence || t->ip >= user_end) {
        tr->n = 0;
        return STEP_RUN_STEP;
    }
    end = build(t);
    if (end == STEP_SYSCALL && tr->n) {
        t->insn = tr->insn[0];
        return STEP_RUN_TO_SYSCALL;
    }
    if ((tr->n >= WORTH_A_RUN || (tr->n && tr->insn[0].kind == STEP_REP)) &&
        step_set_breaks(h, t, tr->exit, tr->nexits)) {
        t->insn = tr->insn[0];
        return STEP_RUN_TO_BREAK;
    }
    tr->n = 0;
    return STEP_RUN_STEP;
}

/* Executed: the first n instructions of the trace, the last of which led to `to`. */
static void walk_first(struct step_helper *h, struct step_thread *t, unsigned n, uint64_t to)
{
    struct step_trace *tr = &t->trace;

    for (unsigned i = 0; i < n; i++) {
        t->insn = tr->insn[i];
        step_walk(h, t, i + 1 < n ? tr->ip[i + 1] : to);
    }
}

void step_trace_end(struct step_helper *h, struct step_thread *t, uint64_t ip)
{
    struct step_trace *tr = &t->trace;
    unsigned done = tr->n;

    for (unsigned i = 1; i < tr->n; i++)
        if (tr->ip[i] == ip)
            done = i;
    /* Back at the beginning: was it executed, or is it about to be? */
    if (tr->n && ip == tr->ip[0] && (!step_trace_loops(tr) || step_at_rest(t) != t->broke))
        done = 0;
    walk_first(h, t, done, ip);
    tr->n = 0;
}
