/* The ring of a perf event: mapped, and read record by record. */
#ifndef ST_RECORDER_PERF_RING_H
#define ST_RECORDER_PERF_RING_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stddef.h>

struct rec_perf_ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */

    size_t bytes; /* of data, a power of two */
};

/* Maps the ring of the event `fd`. `bytes` (a power of two, at least a page) is halved as long as the
 * locked-memory limit refuses it. ST_ECANNOT when not even a page is allowed, ST_EFAIL otherwise. The
 * descriptor stays the caller's. */
int rec_perf_ring_map(struct rec_perf_ring *ring, int fd, size_t bytes, struct st_error *err);

/* Whether this process may have the smallest ring there is: 0, or the error of rec_perf_ring_map() or
 * rec_perf_refused(). */
int rec_perf_ring_probe(struct st_error *err);

/* Receives a whole record; it is valid during the call only. Non-zero stops the drain (the record counts as
 * read). */
typedef int rec_perf_record_fn(void *ctx, const struct perf_event_header *record, struct st_error *err);

/* Delivers what is in the ring and gives the room back to the kernel. Returns 0, the callback's non-zero
 * result, or ST_EFAIL for a record whose size cannot be (the ring is then emptied). */
int rec_perf_ring_drain(struct rec_perf_ring *ring, rec_perf_record_fn *fn, void *ctx, struct st_error *err);

/* Unmaps. Safe on a zeroed struct. */
void rec_perf_ring_unmap(struct rec_perf_ring *ring);

#endif
