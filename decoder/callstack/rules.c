/* Calls, returns and jumps: which frame a branch leads to. */
#include "decoder/callstack/stack_impl.h"

const struct dec_function *stk_function(struct dec_stack *s, uint64_t address)
{
    return s->config.function(s->config.ctx, s->now, address);
}

static bool holds(const struct dec_function *function, uint64_t address)
{
    return address >= function->start && address < function->end;
}

static bool is_entry(const struct dec_function *function, uint64_t address)
{
    return function->role != DEC_ROLE_UNKNOWN && address == function->start;
}

long stk_find_function(const struct dec_stack *s, size_t n, const struct dec_function *function)
{
    for (size_t i = n; i-- > 0;)
        if (dec_same_family(s->frames.at[i].function, function) && s->frames.at[i].kind != FRAME_SIGNAL &&
            s->frames.at[i].kind != FRAME_KERNEL && s->frames.at[i].kind != FRAME_INNER)
            return (long)i;
    return -1;
}

long stk_find_return(const struct dec_stack *s, uint64_t address)
{
    for (size_t i = s->frames.n; i-- > 0;)
        if (s->frames.at[i].ret == address)
            return (long)i;
    return -1;
}

int stk_island(struct dec_stack *s, uint64_t address, uint32_t flags, bool switched)
{
    const struct dec_function *function = stk_function(s, address);
    struct frame f = {.function = function, .kind = FRAME_BASE, .partial = {.switched = switched}};

    return function ? stk_push(s, &f, function->symbol, flags) : -1;
}

static int ensure_base(struct dec_stack *s, const struct dec_event *e)
{
    return s->frames.n ? 0 : stk_island(s, e->from, TDB_CALL_NO_CALL, false);
}

static uint64_t behind(struct dec_stack *s, const struct dec_event *e)
{
    unsigned length = DEC_LENGTH(e->flags);

    if (!length && s->config.length)
        length = s->config.length(s->config.ctx, s->now, e->from);
    return length ? e->from + length : 0;
}

/* A call into the function that calls. Over a few bytes only, it pushes an address to return elsewhere (a
 * retpoline), or to fill the return stack buffer. */
static int call_within(struct dec_stack *s, const struct dec_event *e, uint64_t ret)
{
    if (e->to > ret && e->to - ret < 16) {
        s->skipped = true;
        return 0;
    }
    return stk_push_inner(s, ret);
}

int stk_call(struct dec_stack *s, const struct dec_event *e)
{
    struct frame f = {.ret = behind(s, e), .kind = FRAME_CALL};
    const struct frame *top;

    if (ensure_base(s, e))
        return -1;
    if ((e->flags & DEC_ZERO_CALL) || (f.ret && f.ret == e->to))
        return 0;
    top = stk_top(s);
    if (!e->to) { /* out of what is traced */
        f.function = top->function;
        f.kind = FRAME_KERNEL;
        return stk_push(s, &f, s->config.pseudo[DEC_PSEUDO_UNTRACED], 0);
    }
    f.function = stk_function(s, e->to);
    if (!f.function)
        return -1;
    if (f.function->role == DEC_ROLE_RETURN_THUNK)
        return 0; /* it drops the address that the call pushed */
    if (!f.ret && f.function == top->function && f.function->role == DEC_ROLE_UNKNOWN)
        return 0; /* from and to code of which nothing is known: no return would be found to belong to it */
    if (dec_same_family(f.function, top->function) && !is_entry(f.function, e->to) && !f.function->guessed)
        return call_within(s, e, f.ret);
    return stk_push(s, &f, f.function->symbol, 0);
}

static bool is_unwinder(const struct frame *f)
{
    return f->function->role == DEC_ROLE_UNWINDER || f->function->role == DEC_ROLE_RESUMER;
}

/* Whether the thread is about to leave for a caller: a C++ exception, longjmp (glibc's has a part without a
 * name). */
static bool unwinding(const struct dec_stack *s)
{
    size_t n = s->frames.n;

    return is_unwinder(&s->frames.at[n - 1]) || (n > 1 && is_unwinder(&s->frames.at[n - 2]));
}

/* Leaves all frames above index i, and that one too if it `returns`. A landing pad may stand right behind the
 * call that threw: that is no return. */
static int unwind_to(struct dec_stack *s, size_t i, bool returns)
{
    uint32_t flags = unwinding(s) && i + 1 < s->frames.n ? TDB_CALL_NO_RETURN : 0;

    if (stk_unwind(s, i + 1, true))
        return -1;
    if (!returns)
        return 0;
    s->counts.unwound += flags != 0;
    return stk_pop(s, flags);
}

/* Index of the caller that the unwinder leaves for, in `function`; -1: it is not known. */
static long landing_frame(const struct dec_stack *s, const struct dec_function *function)
{
    size_t unwinder = s->frames.n - 1;

    if (!is_unwinder(&s->frames.at[unwinder]))
        unwinder--;
    if (s->frames.at[unwinder].function->role == DEC_ROLE_RESUMER && unwinder > 0)
        unwinder--;
    return stk_find_function(s, unwinder, function);
}

/* A landing pad at the beginning of a function's cold part, which has a symbol of its own. */
static bool lands_in_part(const struct dec_stack *s, const struct dec_function *function)
{
    long i = is_unwinder(&s->frames.at[s->frames.n - 1]) ? landing_frame(s, function) : -1;

    return i >= 0 && s->frames.at[i].function != function;
}

/* Leaves an unwinder for an address. 1: done, 0: none of the known callers is there, -1: no memory. */
static int land(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_function(s, address);
    long i;

    if (!function)
        return -1;
    if (is_entry(function, address) && !lands_in_part(s, function))
        return 0;
    i = landing_frame(s, function);
    if (i < 0)
        return 0;
    return unwind_to(s, (size_t)i, false) ? -1 : 1;
}

/* A return to the first instruction of a function: a retpoline, or the first switch to a new stack. */
static int return_into_entry(struct dec_stack *s, const struct dec_function *function)
{
    struct frame f = {.function = function, .kind = FRAME_BASE, .partial = {.switched = true}};

    if (stk_top(s)->kind == FRAME_INNER)
        return stk_tail(s, function);
    s->counts.switches++;
    return stk_push(s, &f, function->symbol, TDB_CALL_TAIL);
}

/* Leaves for a function that called everything that is known of this partial stack. */
static int unwind_past_base(struct dec_stack *s, const struct dec_function *function)
{
    size_t base = s->frames.n - 1, thrower = is_unwinder(&s->frames.at[base]) ? base : base - 1;
    /* Or the unwinder was called on another stack, in a function that the switch to it jumped to. */
    int done = thrower > 1 ? stk_unpark_function(s, thrower - 1, function) : 0;

    if (done)
        return done < 0 ? -1 : 0;
    while (base > 0 && s->frames.at[base].kind != FRAME_BASE)
        base--;
    if (stk_unwind(s, base + 1, true))
        return -1;
    stk_row(s, stk_top(s)->row)->call.flags |= TDB_CALL_NO_RETURN;
    s->counts.unwound++;
    return stk_base_returned(s, function, 0);
}

/* A branch into the middle of a function that is not the one the thread was in. */
static int stray(struct dec_stack *s, uint64_t address, const struct dec_function *function)
{
    int done = stk_unpark(s, address);
    long i;

    if (done)
        return done < 0 ? -1 : 0;
    if (dec_same_family(function, stk_top(s)->function))
        return 0;
    done = stk_resumed(s, address, function);
    if (!done)
        done = stk_fiber_ended(s, function);
    if (done)
        return done < 0 ? -1 : 0;
    /* An exception's landing pad, longjmp: the function is a caller of this one. */
    i = stk_find_function(s, s->frames.n - 1, function);
    if (i >= 0)
        return unwind_to(s, (size_t)i, false);
    if (unwinding(s))
        return unwind_past_base(s, function);
    s->counts.strays++;
    return stk_island(s, address, TDB_CALL_NO_CALL, true);
}

/* The function that made the call behind which `address` stands. It may be the last of its instructions, so
 * that another begins at the address: a call that does not return, code that runs on from one symbol into the
 * next (glibc's _start into _dl_start_user). */
static const struct dec_function *caller_at(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_function(s, address);

    if (function && is_entry(function, address) && s->config.call_before &&
        s->config.call_before(s->config.ctx, s->now, address))
        return stk_function(s, address - 1);
    return function;
}

/* The outermost frame of a partial stack returns. */
static int return_from_base(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = caller_at(s, address);
    int done;
    long i;

    if (!function)
        return -1;
    i = stk_find_function(s, s->frames.n - 1, function);
    if (stk_top(s)->partial.switched) {
        done = stk_settle(s, address);
        if (!done)
            done = stk_unpark(s, address);
        if (done)
            return done < 0 ? -1 : 0;
        if (function->role == DEC_ROLE_FIBER_STARTER && s->frames.n > 1) {
            return stk_pop(s, 0); /* the fiber is over */
        }
    }
    if (i < 0)
        return stk_base_returned(s, function, address);
    return stk_pop(s, 0) ? -1 : unwind_to(s, (size_t)i, false);
}

static int return_unmatched(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function;

    if (stk_top(s)->kind == FRAME_HANDLER) {
        return stk_pop(s, 0);
    }
    function = stk_function(s, address);
    if (!function)
        return -1;
    if (stk_top(s)->function->role == DEC_ROLE_INDIRECT_THUNK)
        return stk_tail(s, function);
    if (s->skipped && is_entry(function, address))
        return stk_tail(s, function);
    if (stk_top(s)->kind == FRAME_BASE)
        return return_from_base(s, address);
    if (is_entry(function, address))
        return return_into_entry(s, function);
    return stray(s, address, function);
}

int stk_return(struct dec_stack *s, const struct dec_event *e)
{
    struct frame *top;
    int done;
    long i;

    if (ensure_base(s, e))
        return -1;
    top = stk_top(s);
    if (!e->to) /* out of what is traced */
        return top->kind == FRAME_CALL ? stk_pop(s, 0) : 0;
    if (top->ret == e->to && top->function->role != DEC_ROLE_RESUMER) {
        return stk_pop(s, 0);
    }
    done = unwinding(s) ? land(s, e->to) : stk_resumed(s, e->to, NULL);
    if (done)
        return done < 0 ? -1 : 0;
    i = stk_find_return(s, e->to);
    return i >= 0 ? unwind_to(s, (size_t)i, true) : return_unmatched(s, e->to);
}

/* An indirect jump into the middle of another function: longjmp, a stack switched by a jump. */
static int jump_far_off(struct dec_stack *s, const struct dec_event *e, const struct dec_function *function)
{
    int done = unwinding(s) ? land(s, e->to) : 0;
    long i;

    if (done)
        return done < 0 ? -1 : 0;
    i = stk_find_return(s, e->to);
    if (i >= 0 && !unwinding(s) && stk_park_jumped(s, (size_t)i))
        return -1;
    if (i >= 0)
        return unwind_to(s, (size_t)i, true);
    done = stk_unpark(s, e->to);
    if (!done && !unwinding(s))
        done = stk_unpark_caller(s, e->to);
    if (done)
        return done < 0 ? -1 : 0;
    i = stk_find_function(s, s->frames.n - 1, function);
    if (i >= 0)
        return unwind_to(s, (size_t)i, false);
    return unwinding(s) ? unwind_past_base(s, function) : 0;
}

static int jump_to_entry(struct dec_stack *s, const struct dec_function *function)
{
    switch (stk_top(s)->function->role) {
    case DEC_ROLE_FIBER_PERFORMER:
        return stk_perform(s, function);
    case DEC_ROLE_FIBER_RESUMER:
        return stk_continue(s, function);
    default:
        return stk_tail(s, function);
    }
}

int stk_jump(struct dec_stack *s, const struct dec_event *e)
{
    const struct dec_function *function;
    const struct frame *top;

    if (ensure_base(s, e))
        return -1;
    top = stk_top(s);
    if (!e->to || holds(top->function, e->to))
        return 0;
    function = stk_function(s, e->to);
    if (!function)
        return -1;
    if (dec_same_family(function, top->function) || function->role == DEC_ROLE_RETURN_THUNK)
        return 0;
    if (is_entry(function, e->to) && !((e->flags & DEC_INDIRECT) && lands_in_part(s, function)))
        return jump_to_entry(s, function);
    return e->flags & DEC_INDIRECT ? jump_far_off(s, e, function) : 0;
}
