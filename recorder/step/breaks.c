/* Breakpoints in a thread's debug registers: nothing is written into the program's code. They stay set from one run to the next,
 * for loops come back to them; a thread that goes on from an address that has one does so with EFLAGS.RF (SDM volume 3,
 * "Instruction-Breakpoint Exception Condition"). */
#include "recorder/step/helper.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>

enum {
    ENABLE_ALL = 0x55, /* DR7: L0 to L3; zero type and length bits: on execution */

    RF = 0x10000, /* EFLAGS.RF */
};

static bool set_register(const struct step_thread *t, unsigned n, uint64_t value)
{
    size_t offset = offsetof(struct user, u_debugreg) + n * sizeof(((struct user *)0)->u_debugreg[0]);

    return !ptrace(PTRACE_POKEUSER, t->tid, offset, value);
}

bool step_has_break(const struct step_thread *t, uint64_t ip)
{
    for (unsigned i = 0; t->breaks_on && i < STEP_BREAKS; i++)
        if (t->breaks[i] == ip)
            return true;
    return false;
}

static bool is_wanted(const uint64_t *want, unsigned n, uint64_t ip)
{
    for (unsigned i = 0; i < n; i++)
        if (want[i] == ip)
            return true;
    return false;
}

static bool change(struct step_thread *t, unsigned n, uint64_t ip)
{
    if (t->breaks_on && !set_register(t, n, ip))
        return false;
    t->breaks[n] = ip;
    return true;
}

/* The register to give up: one that is in the way of the trace, else the one that was set longest ago. */
static unsigned victim(struct step_thread *t, const uint64_t *want, unsigned n)
{
    unsigned oldest;

    for (unsigned i = 0; i < STEP_BREAKS; i++)
        if (!is_wanted(want, n, t->breaks[i]) && step_trace_holds(&t->trace, t->breaks[i]))
            return i;
    do
        oldest = t->next_break++ % STEP_BREAKS;
    while (is_wanted(want, n, t->breaks[oldest]));
    return oldest;
}

static bool place(struct step_thread *t, const uint64_t *want, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!is_wanted(t->breaks, STEP_BREAKS, want[i]) && !change(t, victim(t, want, n), want[i]))
            return false;
    /* What is still in the way would stop the thread for nothing. */
    for (unsigned i = 0; i < STEP_BREAKS; i++)
        if (!is_wanted(want, n, t->breaks[i]) && step_trace_holds(&t->trace, t->breaks[i]) &&
            !change(t, i, want[0]))
            return false;
    return true;
}

static bool turn_on(struct step_thread *t)
{
    for (unsigned i = 0; i < STEP_BREAKS; i++)
        if (!set_register(t, i, t->breaks[i]))
            return false;
    return set_register(t, 7, ENABLE_ALL);
}

bool step_set_breaks(struct step_helper *h, struct step_thread *t, const uint64_t *want, unsigned n)
{
    bool ok;

    if (h->no_breaks)
        return false;
    if (!t->breaks_on)
        for (unsigned i = 0; i < STEP_BREAKS; i++)
            t->breaks[i] = want[0];
    ok = place(t, want, n);
    if (ok && !t->breaks_on)
        ok = t->breaks_on = turn_on(t);
    if (!ok && errno != ESRCH && errno != EINVAL)
        h->no_breaks = true;
    return ok;
}

void step_pass_break(struct step_thread *t)
{
    size_t offset = offsetof(struct user_regs_struct, eflags);
    long flags;

    if (!step_has_break(t, t->ip))
        return;
    errno = 0;
    flags = ptrace(PTRACE_PEEKUSER, t->tid, offset, 0);
    if (!errno && !(flags & RF))
        ptrace(PTRACE_POKEUSER, t->tid, offset, flags | RF);
}

bool step_at_rest(const struct step_thread *t)
{
    long flags;

    errno = 0;
    flags = ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user_regs_struct, eflags), 0);
    return errno || flags & RF;
}

void step_clear_breaks(struct step_thread *t)
{
    if (t->breaks_on)
        set_register(t, 7, 0);
    t->breaks_on = false;
}
