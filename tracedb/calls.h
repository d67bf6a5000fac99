/* The calls of a thread on their way into the database: packed, in memory or in the spill's file, read in
 * order as often as wanted. */
#ifndef ST_TRACEDB_CALLS_H
#define ST_TRACEDB_CALLS_H

#include "tracedb/pack.h"

#include "base/spool.h"

enum { TDB_CALLS_BLOCK = 256 /* calls, at whose first one a reader can begin */ };

/* Begins as {.spool.spill = ...}. */
struct tdb_calls {
    struct st_spool spool;

    ST_VEC(struct st_spool_place) blocks;

    size_t n;

    uint64_t last, end; /* the latest start; the latest end */

    struct tdb_span first;

    uint32_t symbols, depths; /* one more than the highest */

    bool disorder; /* not sorted by start, or a parent behind its child */

    const uint32_t *ids; /* of symbols, as they are read: by what was added; NULL: the same. The caller's */
};

/* More calls, sorted by start, parents before their children. `work`: what ran during each; NULL: not known.
 * ST_ENOMEM; ST_EFAIL: the spill's file could not be written. */
int tdb_calls_add(struct tdb_calls *c, const struct tdb_span *spans, const struct tdb_work *work, size_t n,
                  struct st_error *err);

void tdb_calls_free(struct tdb_calls *c);

/* Of one thread; several may read the same calls when no more are added. */
struct tdb_calls_reader {
    const struct tdb_calls *calls;

    struct st_spool_reader spool;

    size_t next; /* call */

    uint64_t before;
};

/* Begins at a call; before the first use all of the reader is set. ST_EFAIL, ST_ENOMEM. */
int tdb_calls_open(struct tdb_calls_reader *r, const struct tdb_calls *c, size_t index, struct st_error *err);

/* Goes on at another call of the same. As tdb_calls_open. */
int tdb_calls_seek(struct tdb_calls_reader *r, size_t index, struct st_error *err);

void tdb_calls_close(struct tdb_calls_reader *r);

/* The next call. 1; 0: there is none any more; ST_EFAIL: the spill's file could not be read. */
static inline int tdb_calls_next(struct tdb_calls_reader *r, struct tdb_call *call, struct st_error *err)
{
    if (r->next == r->calls->n)
        return 0;
    if (r->spool.at == r->spool.end) {
        int rc = st_spool_next(&r->spool, err);

        if (rc)
            return rc;
    }
    if (r->next % TDB_CALLS_BLOCK == 0)
        r->before = 0;
    r->spool.at = tdb_unpack(r->spool.at, call, (uint32_t)r->next, r->before);
    r->before = call->span.start;
    if (r->calls->ids)
        call->span.symbol = r->calls->ids[call->span.symbol];
    r->next++;
    return 1;
}

#endif
