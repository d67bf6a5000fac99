/* Frames and the rows they become: push, pop, unwind, tail call, a caller that turns up late. */
#include "decoder/stack_impl.h"

uint64_t stk_cpu(const struct dec_stack *s)
{
    uint64_t off = s->offcpu_sum;

    if (s->offcpu_done < s->config.noffcpu) {
        const struct dec_offcpu *o = &s->config.offcpu[s->offcpu_done];

        if (o->start < s->now)
            off += s->now - o->start;
    }
    return s->now - off;
}

struct frame *stk_top(struct dec_stack *s)
{
    return s->frames.n ? &s->frames.at[s->frames.n - 1] : NULL;
}

struct row *stk_row(struct dec_stack *s, uint32_t handle)
{
    if (handle & ROW_INSERTED)
        return &s->inserted.at[handle & ~ROW_INSERTED];
    return &s->rows.at[handle];
}

static uint32_t inexact(const struct dec_stack *s)
{
    return s->exact ? 0 : TDB_CALL_INTERPOLATED;
}

/* Room for what ran during the first n rows (side 0) or inserted rows (1), once there are cycles. */
static int note_work(struct dec_stack *s, int side, size_t n)
{
    if (!s->work.cycles)
        return 0;
    if (st_vec_reserve(&s->works[side], n - s->works[side].n))
        return -1;
    while (s->works[side].n < n)
        s->works[side].at[s->works[side].n++] = (struct tdb_work){0};
    return 0;
}

/* A row at the end of the list. */
static int new_row(struct dec_stack *s, uint32_t symbol, uint32_t parent, uint32_t flags)
{
    struct row row = {.start = s->now, .symbol = symbol, .parent = parent, .flags = flags | inexact(s)};

    if (s->rows.n >= ROW_INSERTED - 1 || note_work(s, 0, s->rows.n + 1))
        return -1;
    return st_vec_push(&s->rows, row);
}

int stk_push(struct dec_stack *s, const struct frame *frame, uint32_t symbol, uint32_t flags)
{
    uint32_t parent = s->frames.n ? stk_top(s)->row : NO_ROW;
    struct frame f = *frame;

    f.row = (uint32_t)s->rows.n;
    f.cpu_start = stk_cpu(s);
    f.cpu_children = 0;
    f.work = s->work;
    f.island =
        (struct island){s->now, f.cpu_start, s->work, f.row, (uint32_t)s->tops.n, frame->island.switched};
    if (st_vec_reserve(&s->frames, 1) || st_vec_reserve(&s->tops, 1))
        return -1;
    if (new_row(s, symbol, parent, flags))
        return -1;
    s->frames.at[s->frames.n++] = f;
    if (f.kind == FRAME_BASE)
        s->tops.at[s->tops.n++] = f.row;
    s->counts.reconstructed += (flags & TDB_CALL_NO_CALL) != 0;
    return 0;
}

static void finish_work(struct dec_stack *s, const struct frame *f)
{
    int side = (f->row & ROW_INSERTED) != 0;
    uint32_t at = f->row & ~ROW_INSERTED;

    if (at < s->works[side].n)
        s->works[side].at[at] =
            (struct tdb_work){s->work.instructions - f->work.instructions, s->work.cycles - f->work.cycles};
}

/* Fills the row of a frame that ends now. Returns its CPU time, children included. */
static uint64_t finish_row(struct dec_stack *s, const struct frame *f, uint32_t flags)
{
    struct row *row = stk_row(s, f->row);
    uint64_t cpu = stk_cpu(s) - f->cpu_start;

    row->duration = s->now - row->start;
    row->self = cpu - f->cpu_children;
    finish_work(s, f);
    row->flags |= flags | inexact(s);
    return cpu;
}

void stk_pop(struct dec_stack *s, uint32_t flags)
{
    struct frame f = s->frames.at[s->frames.n - 1];
    uint64_t cpu = f.kind == FRAME_INNER ? f.cpu_children : finish_row(s, &f, flags);

    s->frames.n--;
    if (f.kind == FRAME_BASE) {
        s->tops.n = f.island.tops;
        cpu = stk_cpu(s) - f.island.cpu_start;
    }
    if (s->frames.n)
        stk_top(s)->cpu_children += cpu;
}

int stk_unwind(struct dec_stack *s, size_t keep, bool park)
{
    if (park && stk_park(s, keep))
        return -1;
    while (s->frames.n > keep) {
        uint8_t kind = stk_top(s)->kind;
        bool left = kind != FRAME_KERNEL && kind != FRAME_SIGNAL && kind != FRAME_INNER;

        s->counts.unwound += left;
        stk_pop(s, left ? TDB_CALL_NO_RETURN : 0);
    }
    return 0;
}

/* A thunk in place of an indirect branch: what it leads to takes its place, as if there were no thunk. */
static bool absorb(struct dec_stack *s, const struct dec_function *function)
{
    struct frame *f = stk_top(s);

    if (f->function->role != DEC_ROLE_INDIRECT_THUNK || f->row + 1 != s->rows.n || f->kind == FRAME_INNER)
        return false;
    f->function = function;
    s->rows.at[f->row].symbol = function->symbol;
    return true;
}

int stk_push_inner(struct dec_stack *s, uint64_t ret)
{
    struct frame f = *stk_top(s);

    f.ret = ret;
    f.alt = 0;
    f.cpu_children = 0;
    f.kind = FRAME_INNER;
    return st_vec_push(&s->frames, f);
}

/* A call within a function goes on in another one: that was called, then. */
static int tail_of_inner(struct dec_stack *s, const struct dec_function *function)
{
    struct frame f = {.function = function, .ret = stk_top(s)->ret, .kind = FRAME_CALL};

    stk_pop(s, 0);
    return stk_push(s, &f, function->symbol, 0);
}

int stk_tail(struct dec_stack *s, const struct dec_function *function)
{
    struct frame *f = stk_top(s);
    uint32_t row = (uint32_t)s->rows.n;
    uint64_t cpu;

    if (f->kind == FRAME_INNER)
        return tail_of_inner(s, function);
    if (absorb(s, function))
        return 0;
    if (st_vec_reserve(&s->tops, 1) ||
        new_row(s, function->symbol, stk_row(s, f->row)->parent, TDB_CALL_TAIL))
        return -1;
    cpu = finish_row(s, f, 0);
    if (f->kind == FRAME_BASE)
        s->tops.at[s->tops.n++] = row;
    else if (s->frames.n > 1)
        f[-1].cpu_children += cpu;
    f->function = function;
    f->row = row;
    f->cpu_start = stk_cpu(s);
    f->cpu_children = 0;
    f->work = s->work;
    return 0;
}

int stk_base_returned(struct dec_stack *s, const struct dec_function *function)
{
    struct frame *f = stk_top(s);
    const struct island island = f->island;
    uint32_t handle = (uint32_t)s->inserted.n | ROW_INSERTED;
    uint32_t first = s->tops.at[island.tops];
    struct row row = {.start = island.start,
                      .symbol = function->symbol,
                      .parent = stk_row(s, first)->parent,
                      .before = island.row,
                      .flags = TDB_CALL_NO_CALL | (stk_row(s, first)->flags & TDB_CALL_INTERPOLATED)};

    if (s->inserted.n >= ROW_INSERTED - 1 || st_vec_push(&s->inserted, row) || note_work(s, 1, s->inserted.n))
        return -1;
    finish_row(s, f, 0);
    for (size_t i = island.tops; i < s->tops.n; i++)
        stk_row(s, s->tops.at[i])->parent = handle;
    s->tops.n = island.tops;
    s->tops.at[s->tops.n++] = handle;
    *f = (struct frame){.function = function,
                        .cpu_start = island.cpu_start,
                        .cpu_children = stk_cpu(s) - island.cpu_start,
                        .work = island.work,
                        .island = island,
                        .row = handle,
                        .kind = FRAME_BASE};
    s->counts.reconstructed++;
    return 0;
}
