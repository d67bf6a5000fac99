/* A queue of records in chunks of memory: added at the end, dropped from the front a chunk at a time. */
#ifndef ST_RECORDER_SIDEBAND_RECORD_LOG_H
#define ST_RECORDER_SIDEBAND_RECORD_LOG_H

#include "base/vec.h"
#include "recorder/sideband/record_store.h"

#include <stdatomic.h>
#include <stdbool.h>

struct rec_chunk {
    struct rec_chunk *next;

    atomic_uint holders; /* the log, and views of it */

    size_t used;

    size_t room;

    uint64_t newest; /* time */

    uint64_t bytes[]; /* entries: time, seq, record padded to 8 */
};

struct rec_log {
    struct rec_chunk *first, *last;

    size_t bytes; /* of all chunks' rooms */

    size_t n;

    uint64_t dropped; /* newest time that was dropped */
};

/* 0 or -1 when memory ran out. */
int rec_log_add(struct rec_log *log, const struct perf_event_header *record, uint64_t time, uint64_t seq);

/* Drops whole chunks from the front until at most `bytes` are held; the last chunk stays. */
void rec_log_trim(struct rec_log *log, size_t bytes);

/* Holds the log's chunks as they are now: appended to `view`. 0, or -1 when memory ran out. */
int rec_log_hold(const struct rec_log *log, struct rec_view *view);

/* Lets a chunk go: the last of its holders frees it. */
void rec_chunk_drop(struct rec_chunk *chunk);

/* The records as an array; 0 or -1. The caller frees it. */
int rec_log_list(const struct rec_log *log, struct rec_stored **list);

/* Appends the records in the first `used` bytes of a chunk to a list that has room. Returns how many. */
size_t rec_chunk_fill(const struct rec_chunk *chunk, size_t used, struct rec_stored *list);

void rec_log_free(struct rec_log *log);

/* A copy of `log` without the records whose `drop` is true (one flag a record, in order). 0 or -1 with *to
 * empty. */
int rec_log_filter(const struct rec_log *log, const bool *drop, struct rec_log *to);

/* recorder/sideband/store_compact.c: marks which of the n state records, in order of arrival, say nothing any
 * more. 0 or -1. */
int rec_store_mark_stale(const struct rec_stored *list, size_t n, bool *drop);

#endif
