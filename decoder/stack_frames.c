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

uint32_t stk_innermost(struct dec_stack *s)
{
    const struct frame *top = stk_top(s);

    return s->inlined.n > top->inlined ? s->inlined.at[s->inlined.n - 1].row : top->row;
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

int stk_new_row(struct dec_stack *s, uint32_t symbol, uint32_t parent, uint32_t flags)
{
    struct row row = {.start = s->now, .symbol = symbol, .parent = parent, .flags = flags | inexact(s)};

    if (s->rows.n >= ROW_INSERTED - 1 || note_work(s, 0, s->rows.n + 1))
        return -1;
    return st_vec_push(&s->rows, row);
}

int stk_push(struct dec_stack *s, const struct frame *frame, uint32_t symbol, uint32_t flags)
{
    uint32_t parent = s->frames.n ? stk_innermost(s) : NO_ROW;
    struct frame f = *frame;

    f.inlined = (uint32_t)s->inlined.n;
    f.row = (uint32_t)s->rows.n;
    f.cpu_start = stk_cpu(s);
    f.cpu_children = 0;
    f.work = s->work;
    f.island =
        (struct island){s->now, f.cpu_start, s->work, f.row, (uint32_t)s->tops.n, frame->island.switched};
    if (st_vec_reserve(&s->frames, 1) || st_vec_reserve(&s->tops, 1))
        return -1;
    if (stk_new_row(s, symbol, parent, flags))
        return -1;
    s->frames.at[s->frames.n++] = f;
    if (f.kind == FRAME_BASE)
        s->tops.at[s->tops.n++] = f.row;
    s->counts.reconstructed += (flags & TDB_CALL_NO_CALL) != 0;
    return 0;
}

static void finish_work(struct dec_stack *s, uint32_t handle, const struct tdb_work *since)
{
    int side = (handle & ROW_INSERTED) != 0;
    uint32_t at = handle & ~ROW_INSERTED;

    if (at < s->works[side].n)
        s->works[side].at[at] =
            (struct tdb_work){s->work.instructions - since->instructions, s->work.cycles - since->cycles};
}

uint64_t stk_finish_row(struct dec_stack *s, uint32_t handle, const struct since *since, uint32_t flags)
{
    struct row *row = stk_row(s, handle);
    uint64_t cpu = stk_cpu(s) - since->cpu_start;

    row->duration = s->now - row->start;
    row->self = cpu - since->cpu_children;
    finish_work(s, handle, &since->work);
    row->flags |= flags | inexact(s);
    return cpu;
}

/* Fills the row of a frame that ends now. Returns its CPU time, children included. */
static uint64_t finish_row(struct dec_stack *s, const struct frame *f, uint32_t flags)
{
    const struct since since = {f->cpu_start, f->cpu_children, f->work};

    return stk_finish_row(s, f->row, &since, flags);
}

void stk_add_child(struct dec_stack *s, uint64_t cpu)
{
    struct frame *top = stk_top(s);

    if (top && s->inlined.n > top->inlined)
        s->inlined.at[s->inlined.n - 1].cpu_children += cpu;
    else if (top)
        top->cpu_children += cpu;
}

/* What was called from within the frame's function is what the function called, whatever is open in it. */
static void pop_inner(struct dec_stack *s)
{
    uint64_t cpu = s->frames.at[--s->frames.n].cpu_children;

    s->frames.at[s->frames.n - 1].cpu_children += cpu;
}

void stk_pop(struct dec_stack *s, uint32_t flags)
{
    struct frame f;
    uint64_t cpu;

    if (stk_top(s)->kind == FRAME_INNER) {
        pop_inner(s);
        return;
    }
    stk_close_inlined(s, stk_top(s)->inlined, flags);
    f = *stk_top(s);
    cpu = finish_row(s, &f, flags);
    s->frames.n--;
    if (f.kind == FRAME_BASE) {
        s->tops.n = f.island.tops;
        cpu = stk_cpu(s) - f.island.cpu_start;
    }
    stk_add_child(s, cpu);
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
    stk_close_inlined(s, f->inlined, 0);
    if (st_vec_reserve(&s->tops, 1) ||
        stk_new_row(s, function->symbol, stk_row(s, f->row)->parent, TDB_CALL_TAIL))
        return -1;
    cpu = finish_row(s, f, 0);
    if (f->kind == FRAME_BASE) {
        s->tops.at[s->tops.n++] = row;
    } else {
        s->frames.n--; /* it is its caller's child */
        stk_add_child(s, cpu);
        s->frames.n++;
    }
    f->function = function;
    f->row = row;
    f->cpu_start = stk_cpu(s);
    f->cpu_children = 0;
    f->work = s->work;
    f->ran = false;
    return 0;
}

int stk_insert_row(struct dec_stack *s, const struct row *row)
{
    return s->inserted.n >= ROW_INSERTED - 1 || st_vec_push(&s->inserted, *row) ||
                   note_work(s, 1, s->inserted.n)
               ? -1
               : 0;
}

int stk_base_returned(struct dec_stack *s, const struct dec_function *function, uint64_t address)
{
    struct frame *f = stk_top(s);
    const struct island island = f->island;
    uint32_t innermost = (uint32_t)s->inserted.n | ROW_INSERTED, handle;
    uint32_t first = s->tops.at[island.tops];
    struct row row = {.start = island.start,
                      .symbol = function->symbol,
                      .parent = stk_row(s, first)->parent,
                      .before = island.row,
                      .flags = TDB_CALL_NO_CALL | (stk_row(s, first)->flags & TDB_CALL_INTERPOLATED)};
    uint64_t cpu = stk_cpu(s) - island.cpu_start;

    stk_close_inlined(s, f->inlined, 0);
    if (stk_insert_inlined(s, function, address, &island, row.flags))
        return -1;
    handle = (uint32_t)s->inserted.n | ROW_INSERTED;
    if (stk_insert_row(s, &row))
        return -1;
    finish_row(s, f, 0);
    for (size_t i = island.tops; i < s->tops.n; i++)
        stk_row(s, s->tops.at[i])->parent = innermost;
    s->tops.n = island.tops;
    s->tops.at[s->tops.n++] = handle;
    *f = (struct frame){.function = function,
                        .cpu_start = island.cpu_start,
                        .work = island.work,
                        .island = island,
                        .row = handle,
                        .kind = FRAME_BASE,
                        .ran = true,
                        .inlined = f->inlined};
    stk_add_child(s, cpu);
    s->counts.reconstructed++;
    return 0;
}
