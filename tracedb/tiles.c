/* Builds tiles: the calls of a thread at every zoom, long ones by themselves, short ones counted by bucket.
 */
#include "tracedb/tiles.h"

#include "tracedb/bulk.h"
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

/* A finished tile: where it stands in its row's data. */
struct piece {
    int64_t number;

    size_t row, at, n;
};

/* One depth: the tile that is being filled, and those before it. */
struct row {
    int64_t tile; /* number; -1: none */

    int64_t last_bucket;

    struct dense dense; /* not yet in `data`; calls is 0 when there is none */

    ST_VEC(uint8_t) data; /* of all its tiles */

    size_t begin; /* of the one that is being filled */
};

/* One level of one thread. */
struct builder {
    const struct tdb_thread *thread;

    int level;

    ST_VEC(struct row) rows; /* [depth + SPECIAL_ROWS] */

    ST_VEC(struct piece) pieces; /* of all rows */

    struct tdb_tree *tree;

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
    int64_t before = r->data.n > r->begin ? r->last_bucket : r->tile << TDB_TILE_BITS;

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

static int flush_tile(struct builder *b, struct row *r)
{
    struct piece piece = {.number = r->tile, .row = (size_t)(r - b->rows.at), .at = r->begin};
    int rc = flush_dense(b, r);

    if (rc || r->data.n == r->begin)
        return rc;
    piece.n = r->data.n - r->begin;
    if (st_vec_push(&b->pieces, piece))
        return st_nomem(b->err, "the summaries");
    r->begin = r->data.n;
    return 0;
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
        b->rows.at[b->rows.n++] = (struct row){.tile = -1};
    return 0;
}

static int add(struct builder *b, int depth, const struct tdb_block *c)
{
    int64_t bucket = c->start >> b->level;
    int rc = (size_t)(depth + SPECIAL_ROWS) < b->rows.n ? 0 : make_rows(b, depth);
    struct row *r;

    if (rc)
        return rc;
    r = &b->rows.at[depth + SPECIAL_ROWS];
    if (r->tile != bucket >> TDB_TILE_BITS) {
        rc = flush_tile(b, r);
        r->tile = bucket >> TDB_TILE_BITS;
    }
    if (rc)
        return rc;
    return c->duration >> b->level ? add_single(b, r, bucket, c) : add_dense(b, r, bucket, c);
}

static int add_calls(struct builder *b)
{
    const struct tdb_thread *t = b->thread;
    int rc = 0;

    for (size_t i = 0; i < t->n && !rc; i++) {
        const struct tdb_span *c = &t->calls[i];
        struct tdb_block block = {.start = (int64_t)(c->start - t->origin),
                                  .duration = (int64_t)c->duration,
                                  .symbol_id = (int64_t)c->symbol + 1,
                                  .id = t->before + (int64_t)i + 1,
                                  .flags = c->flags};

        rc = add(b, (int)c->depth, &block);
    }
    return rc;
}

static int add_stretches(struct builder *b, int depth, const struct tdb_stretch *at, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++) {
        struct tdb_block block = {
            .start = at[i].start < 0 ? 0 : at[i].start, .id = at[i].id, .flags = at[i].flags};

        block.duration = at[i].end > block.start ? at[i].end - block.start : 0;
        rc = add(b, depth, &block);
    }
    return rc;
}

/* ---- rows of the table ---- */

static int put_tile(struct builder *b, const struct piece *p)
{
    size_t room = sizeof(struct tdb_record) + 16 + p->n, n;
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
    tdb_record_number(&record, p->number);
    tdb_record_number(&record, (int64_t)p->row - SPECIAL_ROWS);
    n = tdb_record_put(&record, p->n, b->record);
    memcpy(b->record + n, b->rows.at[p->row].data.at + p->at, p->n);
    return tdb_tree_add(b->tree, 0, b->record, n + p->n, b->err);
}

/* The order of the key: a screen's tiles, of all depths, stand side by side. */
static int by_key(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void clear_level(struct builder *b)
{
    for (size_t i = 0; i < b->rows.n; i++) {
        struct row *r = &b->rows.at[i];

        r->tile = -1;
        r->data.n = r->begin = 0;
        r->dense.calls = 0;
    }
    b->pieces.n = 0;
}

static int put_level(struct builder *b)
{
    int rc = 0;

    for (size_t i = 0; i < b->rows.n && !rc; i++)
        rc = flush_tile(b, &b->rows.at[i]);
    if (!rc && b->pieces.n)
        qsort(b->pieces.at, b->pieces.n, sizeof(b->pieces.at[0]), by_key);
    for (size_t i = 0; i < b->pieces.n && !rc; i++)
        rc = put_tile(b, &b->pieces.at[i]);
    clear_level(b);
    return rc;
}

static void free_builder(struct builder *b)
{
    for (size_t i = 0; i < b->rows.n; i++)
        st_vec_free(&b->rows.at[i].data);
    st_vec_free(&b->rows);
    st_vec_free(&b->pieces);
    free(b->record);
}

int tdb_build_tiles(const struct tdb_thread *t, struct tdb_tree *tree, struct st_error *err)
{
    struct builder b = {.thread = t, .tree = tree, .err = err};
    int rc = 0;

    for (int i = 0; i < t->levels && !rc; i++) {
        b.level = t->first_level + i * TDB_LEVEL_STEP;
        rc = add_calls(&b);
        if (!rc)
            rc = add_stretches(&b, TDB_DEPTH_OFFCPU, t->offcpu.at, t->offcpu.n);
        if (!rc)
            rc = add_stretches(&b, TDB_DEPTH_SLICE, t->slices.at, t->slices.n);
        if (!rc)
            rc = put_level(&b);
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

/* How long it takes to make SCREEN_CALLS calls where the thread is busiest; sampled evenly over its calls. */
static uint64_t densest(const struct tdb_thread *t)
{
    size_t reach = t->n > SCREEN_CALLS ? SCREEN_CALLS : t->n - 1;
    uint64_t samples[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = (size_t)((double)(t->n - 1 - reach) * (double)i / SAMPLES);

        samples[i] = t->calls[at + reach].start - t->calls[at].start;
    }
    qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
    return samples[SAMPLES / 100];
}

/* The finest level. A screen of a finer zoom shows so few calls that they are read one by one. */
static int choose_first(const struct tdb_thread *t)
{
    uint64_t columns = densest(t) / SCREEN_COLUMNS;
    int level = LEAST_LEVEL;

    while (level < 60 && columns >> (level + TDB_LEVEL_STEP))
        level += TDB_LEVEL_STEP;
    return level;
}

void tdb_choose_levels(struct tdb_thread *t, int64_t trace_end)
{
    t->levels = 0;
    if (t->n + t->slices.n < TDB_TILE_CALLS)
        return;
    t->first_level = t->n ? choose_first(t) : 12; /* threads of which only the scheduling is known */
    t->levels = 1;
    /* Up to the level whose tile holds the whole trace. */
    while (t->levels < MOST_LEVELS &&
           trace_end >> (t->first_level + (t->levels - 1) * TDB_LEVEL_STEP + TDB_TILE_BITS - 1))
        t->levels++;
}
