/* Builds tiles: the calls of a thread at every zoom, long ones by themselves, short ones counted by bucket.
 */
#include "tracedb/tiles.h"

#include "tracedb/bulk.h"
#include "tracedb/calls.h"
#include "tracedb/tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 1000,
    SCREEN_CALLS = 16384, /* that are read for a screen of this many columns */
    SCREEN_COLUMNS = 256,
    LEAST_LEVEL = 2,
    MOST_LEVELS = 24,
    SPECIAL_ROWS = 2, /* TDB_DEPTH_OFFCPU and TDB_DEPTH_SLICE */
};

/* Short calls of one bucket. */
struct dense {
    int64_t bucket, calls, busy, symbol, weight;
};

/* One depth: the tile that is being filled. */
struct row {
    bool touched; /* it has something in that tile */

    int64_t last_bucket;

    struct dense dense; /* not yet in `data`; calls is 0 when there is none */

    ST_VEC(uint8_t) data;
};

/* One level of one thread. */
struct builder {
    const struct tdb_thread *thread;

    int level;

    int64_t tile; /* number of the one that is being filled; -1: none */

    ST_VEC(struct row) rows; /* [depth + SPECIAL_ROWS] */

    ST_VEC(size_t) touched; /* rows */

    tdb_tile_fn *fn;

    void *ctx;

    uint8_t *record; /* one that is being made */

    size_t record_room;

    struct st_error *err;
};

static int put(struct builder *b, struct row *r, uint64_t value)
{
    if (st_vec_reserve(&r->data, 10))
        return st_nomem(b->err, "the summaries");
    for (; value > 0x7f; value >>= 7)
        r->data.at[r->data.n++] = (uint8_t)(value | 0x80);
    r->data.at[r->data.n++] = (uint8_t)value;
    return 0;
}

/* A block begins with how many buckets it is behind the one before it, and whether it is dense. */
static int put_head(struct builder *b, struct row *r, int64_t bucket, bool dense)
{
    int64_t before = r->data.n ? r->last_bucket : b->tile << TDB_TILE_BITS;

    r->last_bucket = bucket;
    return put(b, r, (uint64_t)(bucket - before) << 1 | dense);
}

static int flush_dense(struct builder *b, struct row *r)
{
    struct dense d = r->dense;
    int rc;

    if (!d.calls)
        return 0;
    r->dense.calls = 0;
    rc = put_head(b, r, d.bucket, true);
    if (!rc)
        rc = put(b, r, (uint64_t)d.calls);
    if (!rc)
        rc = put(b, r, (uint64_t)d.busy);
    return rc ? rc : put(b, r, (uint64_t)d.symbol);
}

/* The function that took most of a bucket: the majority vote of Boyer and Moore, weighed by time. */
static void vote(struct dense *d, int64_t symbol, int64_t ns)
{
    ns = ns ? ns : 1;
    if (symbol == d->symbol) {
        d->weight += ns;
    } else if (ns > d->weight) {
        d->symbol = symbol;
        d->weight = ns - d->weight;
    } else {
        d->weight -= ns;
    }
}

static int add_dense(struct builder *b, struct row *r, int64_t bucket, const struct tdb_block *c)
{
    if (r->dense.calls && r->dense.bucket != bucket) {
        int rc = flush_dense(b, r);

        if (rc)
            return rc;
    }
    if (!r->dense.calls)
        r->dense = (struct dense){.bucket = bucket};
    r->dense.calls++;
    r->dense.busy += c->duration;
    vote(&r->dense, c->symbol_id, c->duration);
    return 0;
}

static int add_single(struct builder *b, struct row *r, int64_t bucket, const struct tdb_block *c)
{
    int rc = flush_dense(b, r);

    if (!rc)
        rc = put_head(b, r, bucket, false);
    if (!rc)
        rc = put(b, r, (uint64_t)(c->start - (bucket << b->level)));
    if (!rc)
        rc = put(b, r, (uint64_t)c->duration);
    if (!rc)
        rc = put(b, r, (uint64_t)c->symbol_id);
    if (!rc)
        rc = put(b, r, (uint64_t)c->id);
    return rc ? rc : put(b, r, c->flags);
}

static int make_rows(struct builder *b, int depth)
{
    size_t wanted = (size_t)depth + SPECIAL_ROWS + 1;

    if (wanted > b->rows.n && st_vec_reserve(&b->rows, wanted - b->rows.n))
        return st_nomem(b->err, "the summaries");
    while (b->rows.n < wanted)
        b->rows.at[b->rows.n++] = (struct row){0};
    return 0;
}

/* ---- rows of the table ---- */

static int put_tile(struct builder *b, size_t row)
{
    const struct row *r = &b->rows.at[row];
    size_t room = sizeof(struct tdb_record) + 16 + r->data.n, n;
    struct tdb_record record;

    if (room > b->record_room) {
        uint8_t *larger = realloc(b->record, 2 * room);

        if (!larger)
            return st_nomem(b->err, "the summaries");
        b->record = larger;
        b->record_room = 2 * room;
    }
    record.ntypes = record.nvalues = 0;
    tdb_record_number(&record, b->thread->id);
    tdb_record_number(&record, b->level);
    tdb_record_number(&record, b->tile);
    tdb_record_number(&record, (int64_t)row - SPECIAL_ROWS);
    n = tdb_record_put(&record, r->data.n, b->record);
    memcpy(b->record + n, r->data.at, r->data.n);
    return b->fn(b->ctx, b->record, n + r->data.n, b->err);
}

static int by_row(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* In the order of the key: a screen's tiles, of all depths, stand side by side. */
static int put_tiles(struct builder *b)
{
    int rc = 0;

    if (b->touched.n > 1)
        qsort(b->touched.at, b->touched.n, sizeof(b->touched.at[0]), by_row);
    for (size_t i = 0; i < b->touched.n && !rc; i++) {
        struct row *r = &b->rows.at[b->touched.at[i]];

        rc = flush_dense(b, r);
        if (!rc)
            rc = put_tile(b, b->touched.at[i]);
        r->data.n = 0;
        r->touched = false;
    }
    b->touched.n = 0;
    return rc;
}

/* ---- what goes into them, in the order of starts ---- */

static int touch(struct builder *b, int depth, struct row **row)
{
    size_t at = (size_t)(depth + SPECIAL_ROWS);

    if (at >= b->rows.n && make_rows(b, depth))
        return ST_ENOMEM;
    *row = &b->rows.at[at];
    if ((*row)->touched)
        return 0;
    (*row)->touched = true;
    return st_vec_push(&b->touched, at) ? st_nomem(b->err, "the summaries") : 0;
}

static int add(struct builder *b, int depth, const struct tdb_block *c)
{
    int64_t bucket = c->start >> b->level;
    struct row *r;
    int rc = 0;

    if (b->tile != bucket >> TDB_TILE_BITS) {
        rc = put_tiles(b);
        b->tile = bucket >> TDB_TILE_BITS;
    }
    if (!rc)
        rc = touch(b, depth, &r);
    if (rc)
        return rc;
    return c->duration >> b->level ? add_single(b, r, bucket, c) : add_dense(b, r, bucket, c);
}

/* Stretches of one row, and which comes next. */
struct stretches {
    const struct tdb_stretch *at;

    size_t i, n;

    int depth;
};

/* Adds those that begin before `until`. */
static int add_stretches(struct builder *b, struct stretches *s, int64_t until)
{
    int rc = 0;

    for (; s->i < s->n && !rc && s->at[s->i].start < until; s->i++) {
        const struct tdb_stretch *from = &s->at[s->i];
        struct tdb_block block = {
            .start = from->start < 0 ? 0 : from->start, .id = from->id, .flags = from->flags};

        block.duration = from->end > block.start ? from->end - block.start : 0;
        rc = add(b, s->depth, &block);
    }
    return rc;
}

/* Both rows of stretches together, tile by tile. */
static int add_both(struct builder *b, struct stretches both[2], int64_t until)
{
    int rc = 0;

    while (!rc) {
        int64_t next = until;

        for (int k = 0; k < 2; k++)
            if (both[k].i < both[k].n && both[k].at[both[k].i].start < next)
                next = both[k].at[both[k].i].start;
        if (next == until)
            break;
        next = next < 0 ? 0 : next;
        for (int k = 0; k < 2 && !rc; k++)
            rc = add_stretches(b, &both[k], next + 1);
    }
    return rc;
}

static int add_call(struct builder *b, size_t i, const struct tdb_span *c)
{
    struct tdb_block block = {.start = (int64_t)(c->start - b->thread->origin),
                              .duration = (int64_t)c->duration,
                              .symbol_id = (int64_t)c->symbol + 1,
                              .id = b->thread->before + (int64_t)i + 1,
                              .flags = c->flags};

    return add(b, (int)c->depth, &block);
}

static int add_level(struct builder *b)
{
    const struct tdb_thread *t = b->thread;
    struct stretches both[2] = {{t->offcpu.at, 0, t->offcpu.n, TDB_DEPTH_OFFCPU},
                                {t->slices.at, 0, t->slices.n, TDB_DEPTH_SLICE}};
    struct tdb_calls_reader r = {0};
    struct tdb_call c = {0};
    int rc = t->n ? tdb_calls_open(&r, t->calls, 0, b->err) : 0, more = 0;

    b->tile = -1;
    for (size_t i = 0; t->n && !rc && (more = tdb_calls_next(&r, &c, b->err)) > 0; i++) {
        rc = add_both(b, both, (int64_t)(c.span.start - t->origin));
        if (!rc)
            rc = add_call(b, i, &c.span);
    }
    tdb_calls_close(&r);
    if (more < 0)
        rc = more;
    if (!rc)
        rc = add_both(b, both, INT64_MAX);
    return rc ? rc : put_tiles(b);
}

static void free_builder(struct builder *b)
{
    for (size_t i = 0; i < b->rows.n; i++)
        st_vec_free(&b->rows.at[i].data);
    st_vec_free(&b->rows);
    st_vec_free(&b->touched);
    free(b->record);
}

int tdb_build_tiles(const struct tdb_thread *t, tdb_tile_fn *fn, void *ctx, struct st_error *err)
{
    struct builder b = {.thread = t, .fn = fn, .ctx = ctx, .err = err};
    int rc = 0;

    for (int i = 0; i < t->levels && !rc; i++) {
        b.level = t->first_level + i * TDB_LEVEL_STEP;
        rc = add_level(&b);
    }
    free_builder(&b);
    return rc;
}

/* ---- levels ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int start_at(struct tdb_calls_reader *r, size_t index, uint64_t *start, struct st_error *err)
{
    struct tdb_call c = {0};
    int rc = tdb_calls_seek(r, index, err);

    if (!rc)
        rc = tdb_calls_next(r, &c, err);
    *start = c.span.start;
    return rc < 0 ? rc : 0;
}

/* How long it takes to make SCREEN_CALLS calls where the thread is busiest; sampled evenly over its calls. */
static int densest(const struct tdb_thread *t, uint64_t *time, struct st_error *err)
{
    size_t reach = t->n > SCREEN_CALLS ? SCREEN_CALLS : t->n - 1;
    uint64_t samples[SAMPLES], first = 0, last = 0;
    struct tdb_calls_reader r;
    int rc = tdb_calls_open(&r, t->calls, 0, err);

    for (size_t i = 0; i < SAMPLES && !rc; i++) {
        size_t at = (size_t)((double)(t->n - 1 - reach) * (double)i / SAMPLES);

        rc = start_at(&r, at, &first, err);
        if (!rc)
            rc = start_at(&r, at + reach, &last, err);
        samples[i] = last - first;
    }
    tdb_calls_close(&r);
    if (rc)
        return rc;
    qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
    *time = samples[SAMPLES / 100];
    return 0;
}

/* The finest level. A screen of a finer zoom shows so few calls that they are read one by one. */
static int choose_first(const struct tdb_thread *t, int *first, struct st_error *err)
{
    uint64_t time;
    int rc = densest(t, &time, err);

    *first = LEAST_LEVEL;
    while (!rc && *first < 60 && time / SCREEN_COLUMNS >> (*first + TDB_LEVEL_STEP))
        *first += TDB_LEVEL_STEP;
    return rc;
}

int tdb_choose_levels(struct tdb_thread *t, int64_t trace_end, struct st_error *err)
{
    int rc = 0;

    t->levels = 0;
    if (t->n + t->slices.n < TDB_TILE_CALLS)
        return 0;
    t->first_level = 12; /* threads of which only the scheduling is known */
    if (t->n)
        rc = choose_first(t, &t->first_level, err);
    if (rc)
        return rc;
    t->levels = 1;
    /* Up to the level whose tile holds the whole trace. */
    while (t->levels < MOST_LEVELS &&
           trace_end >> (t->first_level + (t->levels - 1) * TDB_LEVEL_STEP + TDB_TILE_BITS - 1))
        t->levels++;
    return 0;
}
