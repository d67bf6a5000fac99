/* What the rings held at one moment, copied, so that the recording can go on. */
#ifndef ST_RECORDER_SNAPSHOT_CAPTURE_H
#define ST_RECORDER_SNAPSHOT_CAPTURE_H

#include "base/error.h"
#include "base/vec.h"
#include "recorder/perf/clock.h"
#include "recorder/sources/source.h"

struct rec_capture {
    struct rec_freeze how;

    uint64_t resumed; /* perf clock; 0: it was not */

    struct rec_moment moment; /* after the freeze */

    ST_VEC(struct rec_ring) rings; /* part[0] is our copy of both parts, part[1] is empty */

    ST_VEC(struct rec_switch) switches; /* with own_switches */
};

/* A time in which nothing was recorded, for an earlier snapshot. perf clock ns. */
struct rec_pause {
    uint64_t stopped; /* since when at the earliest */

    uint64_t done; /* since when certainly */

    uint64_t resumed; /* 0: not before the next freeze */
};

/* Freezes the source, the rings of `first` before the others; nothing is copied yet. On error it goes on, and
 * the capture holds nothing but when rings may have been stopped. */
int rec_capture_freeze(struct rec_capture *capture, const struct rec_source_ops *ops,
                       struct rec_source *source, struct rec_first first, struct rec_clock *clock,
                       struct st_error *err);

/* Copies, and lets the source go on. On error it goes on all the same (unless that is what failed), and the
 * capture holds nothing but when it stopped and resumed. */
int rec_capture_copy(struct rec_capture *capture, const struct rec_source_ops *ops, struct rec_source *source,
                     struct rec_clock *clock, struct st_error *err);

/* Safe on a zeroed struct. */
void rec_capture_free(struct rec_capture *capture);

#endif
