/* The side-band in memory: what the kernel told since arming, kept within bounds however long that is.
 *
 * State (mmap, comm, fork, exit, lost, ...) is kept until it outgrows its bound, and then compacted: the
 * older half of the threads and processes that ended is dropped, and of a mapping that was made again only
 * the last. Events (context switches) and samples (stall records) are dropped oldest first. */
#ifndef ST_RECORDER_SIDEBAND_RECORD_STORE_H
#define ST_RECORDER_SIDEBAND_RECORD_STORE_H

#include "base/error.h"
#include "base/vec.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct rec_store;
struct rec_chunk; /* recorder/sideband/record_log.h */

/* Bytes each kind may take before it is compacted or dropped; 0: the default. */
struct rec_store_bounds {
    size_t state;

    size_t events;

    size_t samples;
};

/* A record and its time. The memory is the view's. */
struct rec_stored {
    uint64_t time;

    uint64_t seq; /* order of arrival */

    const struct perf_event_header *record;
};

/* ST_ENOMEM. */
int rec_store_open(const struct rec_store_bounds *bounds, struct rec_store **store, struct st_error *err);

/* Copies the record in. `time` is its perf clock. On ST_ENOMEM the store is as it was. */
int rec_store_add(struct rec_store *store, const struct perf_event_header *record, uint64_t time,
                  struct st_error *err);

/* What the store held at one moment, shared with it and not copied: it stays as it is, whatever the store
 * gets or drops afterwards, and may be read in another thread. */
struct rec_view {
    ST_VEC(struct rec_view_chunk {
        struct rec_chunk *chunk;

        size_t used; /* bytes of it */
    })
    chunks;

    size_t n; /* records */

    uint64_t events_dropped,
        samples_dropped; /* the time of the newest that was dropped for room; 0: none was */
};

/* 0, or -1 when memory ran out, with an empty view. */
int rec_store_view(const struct rec_store *store, struct rec_view *view);

/* Its records in the order of their times, as an array of view->n that the caller frees. ST_ENOMEM. */
int rec_view_sorted(const struct rec_view *view, struct rec_stored **sorted, struct st_error *err);

/* Safe on a zeroed one; the store may have been closed. */
void rec_view_free(struct rec_view *view);

/* Bytes held now. */
size_t rec_store_bytes(const struct rec_store *store);

/* NULL is allowed. */
void rec_store_close(struct rec_store *store);

#endif
