/* The side-band in memory: what the kernel told since arming, kept within bounds however long that is.
 *
 * State (mmap, comm, fork, exit, lost, ...) is kept until it outgrows its bound, and then compacted: the
 * older half of the threads and processes that ended is dropped, and of a mapping that was made again only
 * the last. Events (context switches) and samples (stall records) are dropped oldest first. */
#ifndef ST_RECORDER_RECORD_STORE_H
#define ST_RECORDER_RECORD_STORE_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct rec_store;

/* Bytes each kind may take before it is compacted or dropped; 0: the default. */
struct rec_store_bounds {
    size_t state;

    size_t events;

    size_t samples;
};

/* A record and its time. The memory is the store's, until the next rec_store_add. */
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

/* All records in the order of their times, as an array of *n that the caller frees. ST_ENOMEM. */
int rec_store_sorted(const struct rec_store *store, struct rec_stored **sorted, size_t *n,
                     struct st_error *err);

/* The time of the newest event or sample that was dropped for room; 0: none was. */
uint64_t rec_store_events_dropped(const struct rec_store *store);
uint64_t rec_store_samples_dropped(const struct rec_store *store);

/* Bytes held now. */
size_t rec_store_bytes(const struct rec_store *store);

/* NULL is allowed. */
void rec_store_close(struct rec_store *store);

#endif
