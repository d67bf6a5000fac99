/* Reads a tile. What it holds comes from a file, and may be anything. */
#include "tracedb/tiles.h"

/* What a block can hold, so that sums over a screen cannot overflow: 36 years. */
#define MOST_NS    (INT64_C(1) << 60)
#define MOST_CALLS (INT64_C(1) << 40)

/* What is left of a tile. */
struct reading {
    const uint8_t *at, *end;

    bool bad;
};

static int64_t get(struct reading *r)
{
    uint64_t value = 0;

    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        value |= (uint64_t)(*r->at & 0x7f) << shift;
        if (!(*r->at++ & 0x80)) {
            r->bad |= value > INT64_MAX;
            return (int64_t)(value & INT64_MAX);
        }
    }
    r->bad = true;
    return 0;
}

static void read_block(struct reading *r, int level, int64_t *bucket, struct tdb_block *b)
{
    int64_t head = get(r);

    *b = (struct tdb_block){.dense = head & 1};
    if (head >> 1 > 1 << TDB_TILE_BITS)
        r->bad = true;
    else
        *bucket += head >> 1;
    b->start = *bucket << level;
    if (b->dense) {
        b->duration = (int64_t)1 << level;
        b->calls = get(r);
        b->busy_ns = get(r);
        b->symbol_id = get(r);
        return;
    }
    b->start += get(r) & (((int64_t)1 << level) - 1);
    b->duration = get(r);
    b->symbol_id = get(r);
    b->id = get(r);
    b->flags = (uint32_t)get(r);
    b->calls = 1;
}

int tdb_read_tile(const void *data, size_t size, int level, int64_t number, tdb_block_fn *fn, void *ctx,
                  struct st_error *err)
{
    struct reading r = {data, (const uint8_t *)data + size, false};
    int64_t bucket;
    int rc = 0;

    r.bad = level < 0 || level > 62 - TDB_TILE_BITS || number < 0 ||
            number > INT64_MAX >> (level + TDB_TILE_BITS);
    bucket = r.bad ? 0 : number << TDB_TILE_BITS;
    while (!rc && !r.bad && r.at < r.end) {
        struct tdb_block b;

        read_block(&r, level, &bucket, &b);
        r.bad |= b.start > MOST_NS || b.duration > MOST_NS || b.calls > MOST_CALLS || b.busy_ns > MOST_NS;
        if (!r.bad)
            rc = fn(ctx, &b);
    }
    return r.bad ? st_fail(err, ST_EBADFILE, "the trace is damaged: tile %lld of level %d", (long long)number,
                           level)
                 : rc;
}
