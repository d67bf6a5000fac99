/* Frames and the rows they become: push, pop, unwind, tail call, a caller that turns up late. */
#include "decoder/callstack/stack_impl.h"

#include <string.h>

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

int stk_failed(const struct dec_stack *s, struct st_error *err)
{
    if (!s->error.code)
        return st_nomem(err, "the calls of a thread");
    if (err)
        *err = s->error;
    return s->error.code;
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

/* The parent of a partial stack's outermost rows: 1 + the handle of a row, or 0. */
static int new_parent(struct dec_stack *s, uint32_t handle, uint32_t first, uint32_t flags)
{
    return st_vec_push(&s->parents, (struct shared_parent){handle, first, flags & TDB_CALL_INTERPOLATED});
}

int stk_push(struct dec_stack *s, const struct frame *frame, uint32_t symbol, uint32_t flags)
{
    uint32_t parent = s->frames.n ? stk_innermost(s) + 1 : 0;
    struct frame f = *frame;

    f.inlined = (uint32_t)s->inlined.n;
    f.row = (uint32_t)s->nrows;
    f.cpu_start = stk_cpu(s);
    f.cpu_children = 0;
    f.work = s->work;
    f.partial = (struct partial_stack){
        s->now, f.cpu_start, s->work, f.row, (uint32_t)s->parents.n, frame->partial.switched};
    if (st_vec_reserve(&s->frames, 1))
        return -1;
    if (f.kind == FRAME_BASE) {
        if (new_parent(s, parent, f.row, flags | inexact(s)))
            return -1;
        parent = (ROW_SHARED | f.partial.parent) + 1;
    }
    if (stk_new_row(s, symbol, parent, flags))
        return -1;
    s->frames.at[s->frames.n++] = f;
    s->counts.reconstructed += (flags & TDB_CALL_NO_CALL) != 0;
    return 0;
}

int stk_finish_row(struct dec_stack *s, uint32_t handle, const struct since *since, uint32_t flags,
                   uint64_t *cpu)
{
    struct row *row = stk_row(s, handle);

    *cpu = stk_cpu(s) - since->cpu_start;
    row->call.duration = s->now - row->call.start;
    row->call.self = *cpu - since->cpu_children;
    if (s->work.cycles)
        row->work = (struct tdb_work){s->work.instructions - since->work.instructions,
                                      s->work.cycles - since->work.cycles};
    row->call.flags |= flags | inexact(s);
    return stk_row_ended(s, handle);
}

/* Fills the row of a frame that ends now. `cpu` becomes its CPU time, children included. */
static int finish_row(struct dec_stack *s, const struct frame *f, uint32_t flags, uint64_t *cpu)
{
    const struct since since = {f->cpu_start, f->cpu_children, f->work};

    return stk_finish_row(s, f->row, &since, flags, cpu);
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

int stk_pop(struct dec_stack *s, uint32_t flags)
{
    struct frame f;
    uint64_t cpu;

    if (stk_top(s)->kind == FRAME_INNER) {
        pop_inner(s);
        return 0;
    }
    if (stk_close_inlined(s, stk_top(s)->inlined, flags))
        return -1;
    f = *stk_top(s);
    if (finish_row(s, &f, flags, &cpu))
        return -1;
    s->frames.n--;
    if (f.kind == FRAME_BASE)
        cpu = stk_cpu(s) - f.partial.cpu_start;
    stk_add_child(s, cpu);
    return 0;
}

int stk_unwind(struct dec_stack *s, size_t keep, bool park)
{
    if (park && stk_park(s, keep))
        return -1;
    while (s->frames.n > keep) {
        uint8_t kind = stk_top(s)->kind;
        bool left = kind != FRAME_KERNEL && kind != FRAME_SIGNAL && kind != FRAME_INNER;

        s->counts.unwound += left;
        if (stk_pop(s, left ? TDB_CALL_NO_RETURN : 0))
            return -1;
    }
    return 0;
}

/* A thunk in place of an indirect branch: what it leads to takes its place, as if there were no thunk. */
static bool absorb(struct dec_stack *s, const struct dec_function *function)
{
    struct frame *f = stk_top(s);

    if (f->function->role != DEC_ROLE_INDIRECT_THUNK || f->row + 1 != s->nrows || f->kind == FRAME_INNER)
        return false;
    f->function = function;
    stk_row(s, f->row)->call.symbol = function->symbol;
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

    return stk_pop(s, 0) ? -1 : stk_push(s, &f, function->symbol, 0);
}

int stk_tail(struct dec_stack *s, const struct dec_function *function)
{
    struct frame *f = stk_top(s);
    uint32_t row = (uint32_t)s->nrows;
    uint64_t cpu;

    if (f->kind == FRAME_INNER)
        return tail_of_inner(s, function);
    if (absorb(s, function))
        return 0;
    if (stk_close_inlined(s, f->inlined, 0) ||
        stk_new_row(s, function->symbol, stk_row(s, f->row)->call.parent, TDB_CALL_TAIL))
        return -1;
    if (f->kind == FRAME_BASE && s->parents.at[f->partial.parent].first == f->row)
        s->parents.at[f->partial.parent].flags |= inexact(s);
    if (finish_row(s, f, 0, &cpu))
        return -1;
    if (f->kind != FRAME_BASE) {
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

int stk_insert_row(struct dec_stack *s, const struct tdb_span *call, const struct partial_stack *partial)
{
    struct inserted row = {.row.call = *call, .before = partial->row};

    row.row.call.start = partial->start;
    return s->inserted.n >= ROW_INSERTED - 1 ? -1 : st_vec_push(&s->inserted, row);
}

int stk_base_returned(struct dec_stack *s, const struct dec_function *function, uint64_t address)
{
    struct frame *f = stk_top(s);
    struct partial_stack partial = f->partial;
    const struct shared_parent tops = s->parents.at[partial.parent];
    uint32_t innermost = (uint32_t)s->inserted.n | ROW_INSERTED, handle;
    struct tdb_span call = {.symbol = function->symbol, .flags = TDB_CALL_NO_CALL | tops.flags};
    uint64_t of_tops = stk_cpu(s) - partial.cpu_start, cpu;

    if (stk_close_inlined(s, f->inlined, 0) || stk_insert_inlined(s, function, address, &partial, call.flags))
        return -1;
    handle = (uint32_t)s->inserted.n | ROW_INSERTED;
    call.parent = (ROW_SHARED | (uint32_t)s->parents.n) + 1;
    if (stk_insert_row(s, &call, &partial) || new_parent(s, tops.handle, handle, call.flags) ||
        finish_row(s, f, 0, &cpu))
        return -1;
    s->parents.at[partial.parent].handle = innermost + 1;
    partial.parent = (uint32_t)s->parents.n - 1;
    *f = (struct frame){.function = function,
                        .cpu_start = partial.cpu_start,
                        .work = partial.work,
                        .partial = partial,
                        .row = handle,
                        .kind = FRAME_BASE,
                        .ran = true,
                        .inlined = f->inlined};
    stk_add_child(s, of_tops);
    s->counts.reconstructed++;
    return 0;
}

/* Open inlined calls were added at the end, from index `first` on: they belong before those from `to` on. */
static void move_inlined(struct dec_stack *s, size_t to, size_t first)
{
    size_t n = s->inlined.n - first;

    for (size_t i = 0; i < n; i++) {
        struct inlined one = s->inlined.at[first + i];

        memmove(&s->inlined.at[to + i + 1], &s->inlined.at[to + i], (first - to) * sizeof(one));
        s->inlined.at[to + i] = one;
    }
}

int stk_base_called(struct dec_stack *s, size_t base, const struct dec_function *function,
                    const struct parked_frame *called)
{
    struct frame b = s->frames.at[base], caller = {.function = function, .kind = FRAME_BASE, .ran = true};
    const struct shared_parent tops = s->parents.at[b.partial.parent];
    uint32_t innermost = (uint32_t)s->inserted.n | ROW_INSERTED;
    size_t inlined = s->inlined.n;
    struct tdb_span call = {.symbol = function->symbol, .flags = TDB_CALL_NO_CALL | tops.flags};

    if (st_vec_reserve(&s->frames, 1) || stk_insert_inlined(s, function, called->ret, &b.partial, call.flags))
        return -1;
    caller.row = (uint32_t)s->inserted.n | ROW_INSERTED;
    call.parent = (ROW_SHARED | (uint32_t)s->parents.n) + 1;
    if (stk_insert_row(s, &call, &b.partial) || new_parent(s, tops.handle, caller.row, call.flags))
        return -1;
    s->parents.at[b.partial.parent].handle = innermost + 1;
    caller.partial = b.partial;
    caller.partial.parent = (uint32_t)s->parents.n - 1;
    caller.cpu_start = b.partial.cpu_start;
    caller.work = b.partial.work;
    caller.inlined = b.inlined;
    for (size_t i = base; i < s->frames.n; i++)
        s->frames.at[i].inlined += (uint32_t)(s->inlined.n - inlined);
    move_inlined(s, b.inlined, inlined);
    s->frames.at[base].ret = called->ret;
    s->frames.at[base].alt = called->alt;
    s->frames.at[base].kind = called->kind;
    memmove(&s->frames.at[base + 1], &s->frames.at[base], (s->frames.n - base) * sizeof(b));
    s->frames.at[base] = caller;
    s->frames.n++;
    s->counts.reconstructed++;
    return 0;
}
