/* Calls of functions that were inlined: they begin and end with the instructions of theirs that run, and
 * with the frame that holds them. */
#include "decoder/callstack/stack_impl.h"

#include "decoder/dwarf/inline_runs.h"

void stk_note_place(struct dec_stack *s, const struct dec_event *e)
{
    switch ((enum dec_kind)e->kind) {
    case DEC_PTWRITE:
        break;
    case DEC_GAP:
    case DEC_DISABLE:
        s->at = 0;
        break;
    default:
        s->at = e->to;
        s->goes_on = e->kind == DEC_RETURN || e->kind == DEC_FAR_RETURN || e->kind == DEC_ENABLE;
    }
}

/* Behind the last instruction that ran before the event is known to have happened; 0: none. It counts where
 * that instruction begins. */
static uint64_t end_of_run(const struct dec_event *e)
{
    switch ((enum dec_kind)e->kind) {
    case DEC_ENABLE:
    case DEC_GAP:
    case DEC_PTWRITE:
        return 0;
    case DEC_ASYNC:
        return e->from;
    case DEC_DISABLE:
        return e->flags & DEC_ASYNC_DISABLE ? e->from : 0;
    default:
        return e->from + 1;
    }
}

static int close_one(struct dec_stack *s, uint32_t flags)
{
    const struct inlined *in = &s->inlined.at[s->inlined.n - 1];
    const struct since since = {in->cpu_start, in->cpu_children, in->work};
    uint64_t cpu;

    if (stk_finish_row(s, in->row, &since, flags, &cpu))
        return -1;
    s->inlined.n--;
    stk_add_child(s, cpu);
    return 0;
}

int stk_close_inlined(struct dec_stack *s, size_t keep, uint32_t flags)
{
    int rc = 0;

    while (s->inlined.n > keep && !rc)
        rc = close_one(s, flags);
    return rc;
}

static int open_one(struct dec_stack *s, const struct dec_function *function, uint32_t node, uint32_t flags)
{
    struct inlined in = {.tree = function->inlined,
                         .node = node,
                         .row = (uint32_t)s->nrows,
                         .cpu_start = stk_cpu(s),
                         .work = s->work};
    uint32_t symbol = s->config.inlined(s->config.ctx, function, node);

    if (symbol == UINT32_MAX || st_vec_reserve(&s->inlined, 1) ||
        stk_new_row(s, symbol, stk_innermost(s) + 1, TDB_CALL_INLINED | flags))
        return -1;
    s->inlined.at[s->inlined.n++] = in;
    return 0;
}

/* From the outermost node to this one. Returns how many. */
static size_t path_to(const struct dec_inline_tree *tree, uint32_t node, uint32_t path[DEC_INLINE_DEPTH])
{
    size_t n = node == DEC_NO_INLINE ? 0 : tree->nodes[node].depth + 1;

    for (size_t i = n; i-- > 0; node = tree->nodes[node].parent)
        path[i] = node;
    return n;
}

/* From here on the instructions of `node` run: what it is in too stays open. */
static int go_to(struct dec_stack *s, const struct dec_function *function, uint32_t node, uint32_t flags)
{
    const struct dec_inline_tree *tree = function->inlined;
    size_t base = stk_top(s)->inlined, keep = 0, n;
    uint32_t path[DEC_INLINE_DEPTH];

    n = path_to(tree, node, path);
    while (keep < n && base + keep < s->inlined.n && s->inlined.at[base + keep].tree == tree &&
           s->inlined.at[base + keep].node == path[keep])
        keep++;
    if (stk_close_inlined(s, base + keep, 0))
        return -1;
    for (; keep < n; keep++)
        if (open_one(s, function, path[keep], flags))
            return -1;
    return 0;
}

struct where {
    struct dec_stack *s;

    const struct dec_function *function;
};

static unsigned length_of(void *ctx, uint64_t address)
{
    const struct where *w = ctx;
    struct dec_stack *s = w->s;

    return s->config.length
               ? s->config.length(s->config.ctx, s->now, address - w->function->own + w->function->start)
               : 0;
}

/* The moment and the work at which so many of a run's instructions had run. */
static void move_to(struct dec_stack *s, const struct dec_event *e, uint64_t from,
                    const struct tdb_work *work, uint32_t done, uint32_t all)
{
    double part = (double)done / (double)all;

    if (done == 0)
        return;
    s->exact = false;
    if (e->time > from)
        stk_advance(s, from + (uint64_t)(part * (double)(e->time - from)));
    if (dec_has_counts(e->kind)) {
        uint64_t instructions = DEC_INSTRUCTIONS(e->arg);

        s->work.instructions = work->instructions + (done < instructions ? done : instructions);
        s->work.cycles = work->cycles + (uint64_t)(part * (double)DEC_CYCLES(e->arg));
    }
}

static int go_along(struct dec_stack *s, const struct dec_event *e, const struct dec_function *function,
                    const struct dec_inline_pieces *pieces)
{
    const struct tdb_work work = s->work;
    struct frame *top = stk_top(s);
    uint32_t first =
        !top->ran && s->at != function->start ? stk_row(s, top->row)->call.flags & TDB_CALL_NO_CALL : 0;
    uint64_t from = s->now;

    for (uint32_t i = 0; i < pieces->n; i++) {
        move_to(s, e, from, &work, pieces->at[i].at, pieces->instructions);
        if (go_to(s, function, pieces->at[i].node, i == 0 ? first : 0))
            return -1;
    }
    s->work = work;
    top->ran = true;
    return 0;
}

/* The function whose instructions run: the top frame's, or a part that was split off it. NULL with 0:
 * another, which only the event tells of. */
static int running(struct dec_stack *s, const struct dec_function **function)
{
    const struct dec_function *of_top = stk_top(s)->function;

    *function = of_top;
    if (s->at >= of_top->start && s->at < of_top->end)
        return 0;
    *function = stk_function(s, s->at);
    if (!*function)
        return -1;
    if (!dec_same_family(*function, of_top))
        *function = NULL;
    return 0;
}

int stk_run_inlined(struct dec_stack *s, const struct dec_event *e)
{
    uint64_t end = end_of_run(e);
    const struct dec_function *function;
    struct dec_inline_pieces pieces;
    uint32_t before = DEC_NO_INLINE;
    uint64_t shift;
    struct where where;

    if (!s->frames.n || end <= s->at)
        return 0;
    if (running(s, &function))
        return -1;
    if (!function || !function->inlined)
        return function ? stk_close_inlined(s, stk_top(s)->inlined, 0) : 0;
    if (s->goes_on && s->inlined.n > stk_top(s)->inlined &&
        s->inlined.at[s->inlined.n - 1].tree == function->inlined)
        before = s->inlined.at[s->inlined.n - 1].node;
    shift = function->own - function->start;
    where = (struct where){s, function};
    if (dec_inline_pieces_of(function->inlined, s->at + shift,
                             (end < function->end ? end : function->end) + shift, before, length_of, &where,
                             &pieces))
        return -1;
    return go_along(s, e, function, &pieces);
}

int stk_reopen_inlined(struct dec_stack *s, uint64_t address)
{
    const struct dec_function *function = stk_top(s)->function;

    if (!s->config.inlined || !function->inlined || !address)
        return 0;
    stk_top(s)->ran = true;
    return go_to(s, function, dec_inline_at(function->inlined, address - 1 - function->start + function->own),
                 TDB_CALL_NO_CALL);
}

int stk_insert_inlined(struct dec_stack *s, const struct dec_function *function, uint64_t address,
                       const struct partial_stack *partial, uint32_t flags)
{
    uint32_t path[DEC_INLINE_DEPTH], handle = (uint32_t)s->inserted.n;
    size_t n = 0;

    if (s->config.inlined && function->inlined && address)
        n = path_to(function->inlined,
                    dec_inline_at(function->inlined, address - 1 - function->start + function->own), path);
    if (st_vec_reserve(&s->inlined, n))
        return -1;
    for (size_t i = 0; i < n; i++) { /* outermost first; handles ascend inwards */
        struct inlined in = {.tree = function->inlined,
                             .node = path[i],
                             .row = (handle + (uint32_t)(n - 1 - i)) | ROW_INSERTED,
                             .cpu_start = partial->cpu_start,
                             .work = partial->work};

        s->inlined.at[s->inlined.n++] = in;
    }
    for (size_t i = n; i-- > 0; handle++) {
        struct tdb_span call = {.symbol = s->config.inlined(s->config.ctx, function, path[i]),
                                .parent = ((handle + 1) | ROW_INSERTED) + 1,
                                .flags = flags | TDB_CALL_INLINED};

        if (call.symbol == UINT32_MAX || stk_insert_row(s, &call, partial))
            return -1;
    }
    return 0;
}
