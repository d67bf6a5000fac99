/* Fibers of OCaml 5: performing an effect leaves a fiber's stack for the one that it was started or continued
 * from. */
#include "decoder/callstack/stack_impl.h"

/* The first frame of the fiber that the thread is on; 0: it is on none that is known. */
static size_t fiber_base(const struct dec_stack *s)
{
    for (size_t i = s->frames.n; i-- > 1;) {
        if (s->frames.at[i].kind == FRAME_BASE)
            return s->frames.at[i].partial.switched ? i : 0;
        if (s->frames.at[i - 1].function->role == DEC_ROLE_FIBER_STARTER)
            return i;
    }
    return 0;
}

static int leave_fiber(struct dec_stack *s, size_t base)
{
    return stk_park_frames(s, base) || stk_unwind(s, base, false) ? -1 : 0;
}

/* The segment began on the fiber: what is around it is not known. */
static int leave_first_fiber(struct dec_stack *s, const struct dec_function *handler)
{
    if (leave_fiber(s, 0))
        return -1;
    return stk_island(s, handler->start, TDB_CALL_NO_CALL, false);
}

int stk_perform(struct dec_stack *s, const struct dec_function *handler)
{
    size_t base = fiber_base(s);

    if (handler->role == DEC_ROLE_FIBER_UNHANDLED)
        return stk_tail(s, handler);
    s->counts.switches++;
    if (!base)
        return leave_first_fiber(s, handler);
    return leave_fiber(s, base) || stk_tail(s, handler) ? -1 : 0;
}

int stk_continue(struct dec_stack *s, const struct dec_function *closure)
{
    if (stk_tail(s, closure))
        return -1;
    stk_top(s)->resumes = true;
    return 0;
}

int stk_resumed(struct dec_stack *s, uint64_t address, const struct dec_function *function)
{
    size_t n = s->frames.n;
    int done;

    if (n > 1 && stk_top(s)->function->role == DEC_ROLE_UNWINDER && function)
        n--; /* an exception is what it goes on with */
    if (!n || !s->frames.at[n - 1].resumes)
        return 0;
    s->frames.at[n - 1].resumes = false;
    done = stk_unpark(s, address);
    return done || !function ? done : stk_unpark_function(s, n, function);
}

int stk_fiber_ended(struct dec_stack *s, const struct dec_function *function)
{
    size_t base = function->role == DEC_ROLE_FIBER_STARTER ? fiber_base(s) : 0;

    if (!base)
        return 0;
    return stk_unwind(s, base, false) ? -1 : 1;
}
