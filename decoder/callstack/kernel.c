/* Into the kernel and out of it: system calls, interrupts, signals, exec. In a user-only trace the kernel's
 * part is one pseudo frame; where the kernel is traced the same rules hold with its real frames. */
#include "decoder/callstack/stack_impl.h"

enum {
    EXEC_SLACK = 100000 /* ns that the trace's clock may lie behind the side-band's */
};

static bool in_kernel(uint64_t address)
{
    return address >> 63;
}

static int push_kernel(struct dec_stack *s, const struct dec_function *function, uint32_t symbol,
                       uint64_t ret, uint64_t alt)
{
    struct frame f = {.function = function, .ret = ret, .alt = alt, .kind = FRAME_KERNEL};

    return stk_push(s, &f, symbol, 0);
}

static int push_pseudo(struct dec_stack *s, enum dec_pseudo pseudo, uint64_t ret, uint64_t alt)
{
    return push_kernel(s, stk_top(s)->function, s->config.pseudo[pseudo], ret, alt);
}

static int enter_handler(struct dec_stack *s, const struct dec_function *function, uint64_t ret, uint64_t alt)
{
    struct frame f = {.function = stk_top(s)->function, .ret = ret, .alt = alt, .kind = FRAME_SIGNAL};
    struct frame handler = {.function = function, .kind = FRAME_HANDLER};

    if (stk_push(s, &f, s->config.pseudo[DEC_PSEUDO_SIGNAL], 0))
        return -1;
    return stk_push(s, &handler, function->symbol, 0);
}

/* DEC_FAR_CALL, DEC_ASYNC. */
int stk_enter(struct dec_stack *s, const struct dec_event *e)
{
    unsigned length = DEC_LENGTH(e->flags);
    bool async = e->kind == DEC_ASYNC;
    const struct dec_function *function;
    uint64_t ret;

    if (!s->frames.n && stk_island(s, e->from, TDB_CALL_NO_CALL, false))
        return -1;
    if (!length && !async && s->config.length)
        length = s->config.length(s->config.ctx, s->now, e->from);
    ret = async ? e->from : e->from + length;
    if (!e->to)
        return push_pseudo(s, async || length == 1 ? DEC_PSEUDO_INTERRUPT : DEC_PSEUDO_SYSCALL, ret, e->from);
    if (e->flags & DEC_TX_ABORT)
        return stk_jump(s, e);
    function = stk_function(s, e->to);
    if (!function)
        return -1;
    if (!in_kernel(e->to) && async)
        return enter_handler(s, function, ret, e->from);
    return push_kernel(s, function, function->symbol, ret, e->from);
}

int stk_disable(struct dec_stack *s, const struct dec_event *e)
{
    s->outside = true;
    if (!(e->flags & DEC_ASYNC_DISABLE) || in_kernel(e->from))
        return 0;
    if (!s->frames.n && stk_island(s, e->from, TDB_CALL_NO_CALL, false))
        return -1;
    return push_pseudo(s, DEC_PSEUDO_INTERRUPT, e->from, e->from);
}

/* The innermost entry into the kernel or a handler that goes on at this address. */
static long find_entry(const struct dec_stack *s, uint64_t address)
{
    for (size_t i = s->frames.n; i-- > 0;) {
        const struct frame *f = &s->frames.at[i];

        if ((f->kind == FRAME_KERNEL || f->kind == FRAME_SIGNAL) && (f->ret == address || f->alt == address))
            return (long)i;
    }
    return -1;
}

static bool kernel_side(const struct frame *f)
{
    return f->kind == FRAME_KERNEL || (f->kind != FRAME_SIGNAL && in_kernel(f->function->start));
}

static bool only_kernel(const struct dec_stack *s)
{
    for (size_t i = 0; i < s->frames.n; i++)
        if (!kernel_side(&s->frames.at[i]))
            return false;
    return s->frames.n > 0;
}

/* Back in user code, but not where the kernel was entered: drops the kernel's frames. Sets *entry to the
 * frame of the entry (its kind FRAME_KERNEL), if it was seen. */
static int leave_kernel(struct dec_stack *s, struct frame *entry)
{
    size_t n = s->frames.n;

    while (n > 0 && kernel_side(&s->frames.at[n - 1])) {
        n--;
        if (s->frames.at[n].kind == FRAME_KERNEL)
            *entry = s->frames.at[n];
    }
    if (n == s->frames.n)
        return 0;
    if (stk_unwind(s, n + 1, false))
        return -1;
    return stk_pop(s, 0); /* it is this one that returns to user code */
}

bool stk_take_exec(struct dec_stack *s)
{
    bool found = false;

    while (s->exec_next < s->config.nexecs && s->config.execs[s->exec_next] <= s->now + EXEC_SLACK) {
        s->exec_next++;
        found = true;
    }
    return found;
}

/* An exec that lies well behind did not show in the trace. */
static void forget_old_execs(struct dec_stack *s)
{
    while (s->exec_next < s->config.nexecs && s->config.execs[s->exec_next] + EXEC_SLACK < s->now)
        s->exec_next++;
}

int stk_new_image(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_function(s, address);

    if (!function)
        return -1;
    return stk_island(s, address, address == function->start ? 0 : TDB_CALL_NO_CALL, false);
}

/* The branch explains nothing: finds the frame that fits, or begins a partial stack. */
static int place(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_function(s, address);
    long i;

    if (!function)
        return -1;
    if (dec_same_family(function, stk_top(s)->function))
        return 0;
    i = stk_find_return(s, address);
    if (i >= 0) {
        if (stk_unwind(s, (size_t)i + 1, true))
            return -1;
        return stk_pop(s, 0);
    }
    i = address == function->start ? -1 : stk_find_function(s, s->frames.n, function);
    if (i >= 0)
        return stk_unwind(s, (size_t)i + 1, true);
    s->counts.strays++;
    return stk_island(s, address, address == function->start ? 0 : TDB_CALL_NO_CALL, false);
}

/* The kernel frames of a partial stack that began in the kernel end in a return to user code: their caller.
 */
static int first_user_frame(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_function(s, address);
    size_t base = s->frames.n - 1;

    if (!function)
        return -1;
    while (base > 0 && s->frames.at[base].kind != FRAME_BASE)
        base--;
    if (stk_unwind(s, base + 1, false))
        return -1;
    return stk_base_returned(s, function, 0);
}

/* The trace goes on in the kernel, at another place: the thread was off its CPU. */
static int back_in_kernel(struct dec_stack *s, uint64_t address)
{
    for (size_t i = s->frames.n; i-- > 0 && kernel_side(&s->frames.at[i]);)
        if (s->frames.at[i].function->role == DEC_ROLE_SCHEDULER && s->frames.at[i].kind != FRAME_INNER) {
            if (stk_unwind(s, i + 1, false))
                return -1;
            break;
        }
    return s->frames.n ? place(s, address) : stk_new_image(s, address);
}

static int resume_elsewhere(struct dec_stack *s, uint64_t address)
{
    struct frame entry = {.kind = FRAME_CALL};
    const struct dec_function *function;

    if (in_kernel(address))
        return back_in_kernel(s, address);
    if (stk_take_exec(s))
        return stk_unwind(s, 0, false) ? -1 : stk_new_image(s, address);
    if (only_kernel(s))
        return first_user_frame(s, address);
    if (leave_kernel(s, &entry))
        return -1;
    function = stk_function(s, address);
    if (!function)
        return -1;
    if (!s->frames.n)
        return stk_island(s, address, TDB_CALL_NO_CALL, false);
    if (entry.kind == FRAME_KERNEL && address == function->start)
        return enter_handler(s, function, entry.ret, entry.alt);
    return place(s, address);
}

int stk_resume(struct dec_stack *s, uint64_t address)
{
    long i = find_entry(s, address);

    s->outside = false;
    if (i < 0)
        return resume_elsewhere(s, address);
    if (!in_kernel(address))
        forget_old_execs(s);
    if (stk_unwind(s, (size_t)i + 1, false))
        return -1;
    return stk_pop(s, 0);
}

int stk_leave(struct dec_stack *s)
{
    struct frame entry;

    s->outside = true;
    return leave_kernel(s, &entry);
}
