/* The end of a segment: rows get their order, depth and parents, and go out. */
#include "base/bisect.h"
#include "decoder/callstack/stack_impl.h"

#include <stdlib.h>

enum { BATCH = 256 };

/* The order of the calls: start, outer before inner. A caller that turned up later is the outer one: inserted
 * rows by the place they stand at, the latest (outermost) of a place first. */
struct order {
    uint32_t *sorted; /* indexes of inserted rows */

    uint32_t *places; /* inserted row -> its place among them */
};

/* A call that others may be in. */
struct ancestor {
    uint32_t index, symbol;
};

/* The calls on their way out. */
struct delivery {
    struct dec_stack *s;

    struct order order;

    size_t next; /* inserted row, as sorted */

    size_t done; /* calls */

    ST_VEC(struct ancestor) path;

    struct tdb_span calls[BATCH];

    struct tdb_work work[BATCH];

    size_t n;

    struct st_error *err;
};

static int by_place(const void *a, const void *b, void *arg)
{
    const struct dec_stack *s = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t at = s->inserted.at[x].before, other = s->inserted.at[y].before;

    if (at != other)
        return at < other ? -1 : 1;
    return (x < y) - (x > y);
}

static int make_order(struct dec_stack *s, struct order *o)
{
    size_t n = s->inserted.n;

    if (!n)
        return 0;
    o->sorted = malloc(n * sizeof(*o->sorted));
    o->places = malloc(n * sizeof(*o->places));
    if (!o->sorted || !o->places)
        return -1;
    for (size_t i = 0; i < n; i++)
        o->sorted[i] = (uint32_t)i;
    qsort_r(o->sorted, n, sizeof(*o->sorted), by_place, s);
    for (size_t i = 0; i < n; i++)
        o->places[o->sorted[i]] = (uint32_t)i;
    return 0;
}

/* How many inserted rows stand before a row. */
static uint32_t inserted_before(const struct dec_stack *s, const struct order *o, uint32_t row)
{
    size_t first = st_bisect(i, s->inserted.n, s->inserted.at[o->sorted[i]].before <= row);

    return (uint32_t)first;
}

static uint32_t position(const struct dec_stack *s, const struct order *o, uint32_t handle)
{
    if (handle & ROW_INSERTED)
        return s->inserted.at[handle & ~ROW_INSERTED].before + o->places[handle & ~ROW_INSERTED];
    return handle + inserted_before(s, o, handle);
}

/* A parent as rows have it -> 1 + its position; 0: none. */
static uint32_t parent_position(const struct delivery *d, uint32_t parent)
{
    if (parent && ((parent - 1) & ROW_SHARED) == ROW_SHARED)
        parent = d->s->parents.at[(parent - 1) & ~ROW_SHARED].handle;
    return parent ? position(d->s, &d->order, parent - 1) + 1 : 0;
}

static int flush(struct delivery *d)
{
    struct dec_stack *s = d->s;
    int rc = 0;

    if (d->n)
        rc = s->config.segment(s->config.ctx, d->calls, s->work.cycles ? d->work : NULL, d->n, d->err);
    d->n = 0;
    return rc;
}

/* Depth, and whether an ancestor is the same function. `parent` is 1 + its position. 0 or -1. */
static int relate(struct delivery *d, struct tdb_span *c, uint32_t parent)
{
    struct dec_stack *s = d->s;

    while (d->path.n && d->path.at[d->path.n - 1].index + 1 != parent)
        s->active.at[d->path.at[--d->path.n].symbol]--;
    while (s->active.n <= c->symbol)
        if (st_vec_push(&s->active, 0))
            return -1;
    if (st_vec_push(&d->path, (struct ancestor){(uint32_t)d->done, c->symbol}))
        return -1;
    c->depth = (uint32_t)d->path.n - 1;
    if (s->active.at[c->symbol]++)
        c->flags |= TDB_CALL_RECURSIVE;
    return 0;
}

static int put(struct delivery *d, const struct tdb_span *call, const struct tdb_work *work)
{
    struct tdb_span *c = &d->calls[d->n];
    uint32_t parent = parent_position(d, call->parent);

    *c = *call;
    if (relate(d, c, parent))
        return st_nomem(d->err, "the calls of a segment");
    c->parent = parent ? (uint32_t)d->s->base + parent : 0;
    d->work[d->n++] = *work;
    d->done++;
    return d->n == BATCH ? flush(d) : 0;
}

/* A row, and the inserted ones that stand before it. */
static int put_row(struct delivery *d, size_t index, const struct tdb_span *call, const struct tdb_work *work)
{
    const struct dec_stack *s = d->s;
    int rc = 0;

    while (d->next < s->inserted.n && s->inserted.at[d->order.sorted[d->next]].before <= index && !rc) {
        const struct row *row = &s->inserted.at[d->order.sorted[d->next++]].row;

        rc = put(d, &row->call, &row->work);
    }
    return rc ? rc : put(d, call, work);
}

static int put_packed(struct delivery *d, struct st_spool_reader *reader, size_t block)
{
    struct tdb_call call = {0};
    int rc = st_spool_seek(reader, d->s->blocks.at[block].place, d->err);

    for (size_t i = block * ROWS; i < (block + 1) * ROWS && !rc; i++) {
        if (reader->at == reader->end)
            rc = st_spool_next(reader, d->err);
        if (rc)
            break;
        reader->at = tdb_unpack(reader->at, &call, (uint32_t)i, i % ROWS ? call.span.start : 0);
        rc = put_row(d, i, &call.span, &call.work);
    }
    return rc;
}

static int put_rows(struct delivery *d)
{
    struct st_spool_reader reader = {.spool = &d->s->packed};
    int rc = 0;

    for (size_t k = 0; k < d->s->blocks.n && !rc; k++) {
        const struct row_block *b = &d->s->blocks.at[k];

        if (!b->rows)
            rc = put_packed(d, &reader, k);
        for (size_t i = 0; b->rows && i < b->n && !rc; i++)
            rc = put_row(d, k * ROWS + i, &b->rows[i].call, &b->rows[i].work);
    }
    st_spool_close(&reader);
    return rc ? rc : flush(d);
}

static void point_offcpu(struct dec_stack *s, const struct order *o)
{
    for (; s->offcpu_first < s->offcpu_next; s->offcpu_first++) {
        uint32_t *call = &s->config.offcpu[s->offcpu_first].call;

        if (*call)
            *call = (uint32_t)s->base + position(s, o, *call - 1) + 1;
    }
}

static int deliver(struct dec_stack *s, struct st_error *err)
{
    struct delivery d = {.s = s, .err = err};
    int rc = make_order(s, &d.order) ? st_nomem(err, "the calls of a segment") : 0;

    if (!rc)
        rc = put_rows(&d);
    while (d.path.n)
        s->active.at[d.path.at[--d.path.n].symbol]--;
    if (!rc)
        point_offcpu(s, &d.order);
    s->base += d.done;
    s->counts.calls += d.done;
    free(d.order.sorted);
    free(d.order.places);
    st_vec_free(&d.path);
    return rc;
}

int stk_end_segment(struct dec_stack *s, struct st_error *err)
{
    int rc = 0;

    if (!s->open)
        return 0;
    while (s->frames.n && !rc)
        rc = stk_pop(s, TDB_CALL_NO_RETURN) ? stk_failed(s, err) : 0;
    if (s->nrows && !rc)
        rc = deliver(s, err);
    stk_clear_rows(s);
    s->offcpu_first = s->offcpu_next;
    stk_drop_parked(s);
    s->open = false;
    s->outside = false;
    s->at = 0;
    return rc;
}
