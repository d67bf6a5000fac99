/* Records of processes that are not known to be the target's, for as long as they may turn out to be: the
 * rings of the CPUs are read one after the other, and what a process did on one CPU may be read before the
 * record on another that tells whose child it is; or it comes into the target a moment later. */
#ifndef ST_RECORDER_SIDEBAND_STRANGERS_H
#define ST_RECORDER_SIDEBAND_STRANGERS_H

#include "base/error.h"
#include "base/vec.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct rec_stranger {
    uint64_t time;

    size_t at; /* in words */

    bool old; /* it was there at the last review */
};

struct rec_strangers {
    ST_VEC(uint64_t) words; /* the records */

    ST_VEC(struct rec_stranger) list;
};

/* Keeps a copy. Of more than some MiB the newest are left out. 0 or ST_ENOMEM. */
int rec_strangers_keep(struct rec_strangers *strangers, const struct perf_event_header *record,
                       struct st_error *err);

/* Calls fn for each in the order of their times. 1: it is the target's, and goes; 0: it stays, if it is new,
 * until the next review; else an error, which is returned. */
typedef int rec_stranger_fn(void *ctx, const struct perf_event_header *record, struct st_error *err);
int rec_strangers_review(struct rec_strangers *strangers, rec_stranger_fn *fn, void *ctx,
                         struct st_error *err);

/* Safe on a zeroed struct. */
void rec_strangers_free(struct rec_strangers *strangers);

#endif
