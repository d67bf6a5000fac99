/* The end of a segment: rows get their order, depth and parents, and go out. */
#include "decoder/stack_impl.h"

#include <stdlib.h>

/* The order of the calls: start, outer before inner. A caller that turned up later is the outer one. */
struct order {
    uint32_t *rows; /* handle's index -> position */

    uint32_t *inserted;

    struct tdb_span *calls;

    struct tdb_work *work; /* NULL: none */

    size_t n;
};

static void free_order(struct order *o)
{
    free(o->rows);
    free(o->inserted);
    free(o->calls);
    free(o->work);
}

static int new_order(const struct dec_stack *s, struct order *o)
{
    bool counted = s->works[0].n || s->works[1].n;

    *o = (struct order){.n = s->rows.n + s->inserted.n};
    o->rows = calloc(s->rows.n + 1, sizeof(*o->rows));
    o->inserted = calloc(s->inserted.n + 1, sizeof(*o->inserted));
    o->calls = calloc(o->n + 1, sizeof(*o->calls));
    if (counted)
        o->work = calloc(o->n + 1, sizeof(*o->work));
    if (o->rows && o->inserted && o->calls && (o->work || !counted))
        return 0;
    free_order(o);
    return -1;
}

/* Inserted rows by the place they stand at, the latest (outermost) of a place first. A list a place, threaded
 * through o->inserted: islands nest, so the places do not come in ascending order. */
static void number(const struct dec_stack *s, struct order *o, uint32_t *first)
{
    uint32_t at = 0;

    for (size_t i = 0; i < s->rows.n; i++)
        first[i] = NO_ROW;
    for (size_t i = 0; i < s->inserted.n; i++) {
        uint32_t *head = &first[s->inserted.at[i].before];

        o->inserted[i] = *head;
        *head = (uint32_t)i;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        for (uint32_t j = first[i]; j != NO_ROW;) {
            uint32_t next = o->inserted[j];

            o->inserted[j] = at++;
            j = next;
        }
        o->rows[i] = at++;
    }
}

static uint32_t position(const struct order *o, uint32_t handle)
{
    return handle & ROW_INSERTED ? o->inserted[handle & ~ROW_INSERTED] : o->rows[handle];
}

static void put(const struct dec_stack *s, const struct order *o, const struct row *row, uint32_t at)
{
    struct tdb_span *call = &o->calls[at];

    *call = (struct tdb_span){row->start, row->duration, row->self, row->symbol, 0, 0, row->flags};
    if (row->parent != NO_ROW)
        call->parent = (uint32_t)s->base + position(o, row->parent) + 1;
}

static void put_works(const struct dec_stack *s, const struct order *o)
{
    for (size_t i = 0; i < s->works[0].n && i < s->rows.n; i++)
        o->work[o->rows[i]] = s->works[0].at[i];
    for (size_t i = 0; i < s->works[1].n && i < s->inserted.n; i++)
        o->work[o->inserted[i]] = s->works[1].at[i];
}

/* Depth, and whether an ancestor is the same function. */
static int relate(const struct dec_stack *s, struct tdb_span *calls, size_t n)
{
    ST_VEC(uint32_t) path = {0};
    ST_VEC(uint32_t) active = {0}; /* by symbol: how often it is on the path */
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++) {
        struct tdb_span *c = &calls[i];

        while (path.n && (uint32_t)s->base + path.at[path.n - 1] + 1 != c->parent)
            active.at[calls[path.at[--path.n]].symbol]--;
        while (active.n <= c->symbol && !rc)
            rc = st_vec_push(&active, 0);
        if (rc || st_vec_push(&path, (uint32_t)i)) {
            rc = -1;
            break;
        }
        c->depth = (uint32_t)path.n - 1;
        if (active.at[c->symbol]++)
            c->flags |= TDB_CALL_RECURSIVE;
    }
    st_vec_free(&path);
    st_vec_free(&active);
    return rc;
}

static void point_offcpu(struct dec_stack *s, const struct order *o)
{
    for (; s->offcpu_first < s->offcpu_next; s->offcpu_first++) {
        uint32_t *call = &s->config.offcpu[s->offcpu_first].call;

        if (*call)
            *call = (uint32_t)s->base + position(o, *call - 1) + 1;
    }
}

static int deliver(struct dec_stack *s, struct st_error *err)
{
    struct order o;
    uint32_t *first = calloc(s->rows.n + 1, sizeof(*first));
    int rc = 0;

    if (!first || new_order(s, &o)) {
        free(first);
        return st_nomem(err, "the calls of a segment");
    }
    number(s, &o, first);
    free(first);
    for (size_t i = 0; i < s->rows.n; i++)
        put(s, &o, &s->rows.at[i], o.rows[i]);
    for (size_t i = 0; i < s->inserted.n; i++)
        put(s, &o, &s->inserted.at[i], o.inserted[i]);
    if (o.work)
        put_works(s, &o);
    if (relate(s, o.calls, o.n))
        rc = st_nomem(err, "the calls of a segment");
    point_offcpu(s, &o);
    if (!rc)
        rc = s->config.segment(s->config.ctx, o.calls, o.work, o.n, err);
    s->base += o.n;
    s->counts.calls += o.n;
    free_order(&o);
    return rc;
}

int stk_end_segment(struct dec_stack *s, struct st_error *err)
{
    int rc = 0;

    if (!s->open)
        return 0;
    while (s->frames.n)
        stk_pop(s, TDB_CALL_NO_RETURN);
    if (s->rows.n)
        rc = deliver(s, err);
    s->rows.n = 0;
    s->inserted.n = 0;
    s->works[0].n = 0;
    s->works[1].n = 0;
    s->tops.n = 0;
    s->offcpu_first = s->offcpu_next;
    stk_drop_parked(s);
    s->open = false;
    s->outside = false;
    s->at = 0;
    return rc;
}
