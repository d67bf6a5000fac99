/* Summaries of a trace for viewers: what a screen shows at any zoom is read from an amount of data bounded by
 * the screen. docs/schema.md, "Tiles". */
#ifndef ST_TRACEDB_TILES_H
#define ST_TRACEDB_TILES_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TDB_TILE_BITS = 8,     /* a tile of level L holds 2^8 buckets of 2^L ns */
    TDB_LEVEL_STEP = 2,    /* from one level of a thread to the next */
    TDB_DEPTH_OFFCPU = -1, /* rows of tiles that are no calls: off-CPU spans ... */
    TDB_DEPTH_SLICE = -2,  /* ... and slices on a CPU */
    TDB_TILE_CALLS = 4096, /* threads with fewer calls and spans have no tiles */
};

struct tdb_thread; /* tracedb/bulk.h */

/* Chooses the levels of a thread's tiles (none for a thread with few calls and slices). `trace_end` is the
 * latest start of all threads. ST_EFAIL, ST_ENOMEM: the calls could not be read. */
int tdb_choose_levels(struct tdb_thread *t, int64_t trace_end, struct st_error *err);

/* Gives the rows of the table `tile` of one thread to fn, as records in the order of its key. Takes memory
 * for one tile of each depth. ST_ENOMEM, ST_EFAIL (the calls could not be read), and what fn returns. */
typedef int tdb_tile_fn(void *ctx, const uint8_t *record, size_t size, struct st_error *err);
int tdb_build_tiles(const struct tdb_thread *t, tdb_tile_fn *fn, void *ctx, struct st_error *err);

/* What a tile holds: a call of at least a bucket's length, or all shorter ones that began in one bucket. */
struct tdb_block {
    bool dense;

    int64_t start, duration; /* dense: the bucket */

    int64_t symbol_id; /* dense: of the function that took most; 0 in rows that are no calls */

    /* Of one call (or span) */
    int64_t id;

    uint32_t flags; /* off-CPU: 1 preempted */

    /* Dense */
    int64_t calls, busy_ns;
};

/* Calls fn for each block of a tile in the order of time. Non-zero from fn ends it and is returned.
 * ST_EBADFILE: the data are no tile. */
typedef int tdb_block_fn(void *ctx, const struct tdb_block *b);
int tdb_read_tile(const void *data, size_t size, int level, int64_t number, tdb_block_fn *fn, void *ctx,
                  struct st_error *err);

#endif
