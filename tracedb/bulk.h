/* The calls of a trace as they go into the file: the table, its indexes and the tiles, each a B-tree of its
 * own, several at once. */
#ifndef ST_TRACEDB_BULK_H
#define ST_TRACEDB_BULK_H

#include "tracedb/tracedb.h"

#include "base/vec.h"

enum { TDB_TIME_CALLS = 64 /* from one row of `call_time` to the next */ };

/* A stretch of time of a thread that is no call: off the CPU, or on one. */
struct tdb_stretch {
    int64_t start, end, id;

    uint32_t flags;
};

/* What is written of one thread. */
struct tdb_thread {
    int64_t id;

    uint64_t origin; /* taken off the starts of its calls */

    const struct tdb_calls *calls; /* NULL: none */

    size_t n; /* of them */

    int64_t before; /* id of the last call of the threads before */

    ST_VEC(struct tdb_stretch) offcpu;

    ST_VEC(struct tdb_stretch) slices;

    int first_level, levels; /* of its tiles; levels 0: none */
};

/* Sorted by id. */
typedef ST_VEC(struct tdb_thread) tdb_threads;

/* The roots of the trees, from sqlite_schema. 0: the tree is not written. */
struct tdb_roots {
    uint32_t call, time, symbol, parent, tile;
};

/* As tdb_writer_threads, tdb_writer_sorts and tdb_writer_progress have them. */
struct tdb_bulk_options {
    unsigned workers;

    size_t sorts;

    tdb_progress_fn *progress; /* NULL: nobody asks */

    void *progress_ctx;
};

/* Writes into the file that no connection has open. ST_EFAIL, ST_ENOMEM. */
int tdb_write_bulk(int fd, const char *path, const struct tdb_roots *roots, const tdb_threads *threads,
                   const struct tdb_bulk_options *options, struct st_error *err);

#endif
