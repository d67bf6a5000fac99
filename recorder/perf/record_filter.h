/* Which records of a source's rings belong into a snapshot, as a table that goes with the snapshot. */
#ifndef ST_RECORDER_PERF_RECORD_FILTER_H
#define ST_RECORDER_PERF_RECORD_FILTER_H

#include "base/vec.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_filter_own {
    pid_t tid;

    uint64_t id;
};

/* Zeroed: all belong. Of a thread that inherited events and got some of its own besides, only samples of the
 * latter do. */
struct rec_filter {
    ST_VEC(pid_t) late; /* such threads */

    ST_VEC(struct rec_filter_own) own; /* the ids of their events */

    ST_VEC(uint64_t) any; /* of events whose samples belong whatever thread they name */
};

/* To be called once all is in, before the first record is looked at. */
void rec_filter_sort(struct rec_filter *filter);

/* Whether a record (as REC_SAMPLE_TYPE lays out samples) belongs. */
bool rec_filter_keeps(const struct rec_filter *filter, const struct perf_event_header *record);

/* Safe on a zeroed one. */
void rec_filter_free(struct rec_filter *filter);

#endif
