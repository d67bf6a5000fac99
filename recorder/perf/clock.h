/* What time it is in the clock of the records, here and elsewhere called the perf clock. Perf's own clock the
 * kernel tells only in records, so we make it write one about ourselves; events can also have
 * CLOCK_MONOTONIC, the clock of BPF programs (rec_perf_use_monotonic). */
#ifndef ST_RECORDER_PERF_CLOCK_H
#define ST_RECORDER_PERF_CLOCK_H

#include "base/error.h"
#include "recorder/perf/ring.h"

#include <stdbool.h>
#include <stdint.h>

struct rec_clock {
    bool monotonic; /* nothing is open */

    int fd;

    struct rec_perf_ring ring;
};

/* One moment in three clocks, ns. */
struct rec_moment {
    uint64_t perf; /* the clock of the records */

    int64_t mono; /* CLOCK_MONOTONIC */

    int64_t wall; /* CLOCK_REALTIME */
};

/* Opens the clock for the calling thread. ST_ECANNOT or ST_EFAIL as perf_event_open refuses. Needs no
 * privilege where perf events are allowed for one's own processes. */
int rec_clock_open(struct rec_clock *clock, struct st_error *err);

/* As rec_clock_open, where events have perf's own clock; `monotonic`: theirs is CLOCK_MONOTONIC, as the
 * kernel has it. That cannot fail, and any thread may ask. */
int rec_clock_open_as(struct rec_clock *clock, bool monotonic, struct st_error *err);

/* Now; two system calls, none for CLOCK_MONOTONIC. To be called by the thread that opened it. ST_EFAIL if the
 * kernel wrote no record.
 */
int rec_clock_now(struct rec_clock *clock, uint64_t *ns, struct st_error *err);

/* The best of a few readings: mono and wall are within some microseconds of perf. */
int rec_clock_moment(struct rec_clock *clock, struct rec_moment *moment, struct st_error *err);

/* Safe on a closed clock; a zeroed struct counts as open on descriptor 0, so set fd to -1 first. */
void rec_clock_close(struct rec_clock *clock);

#endif
