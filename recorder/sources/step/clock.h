/* The perf clock, read often and cheaply: CLOCK_MONOTONIC_RAW plus an offset that is measured again and
 * again. */
#ifndef ST_RECORDER_SOURCES_STEP_CLOCK_H
#define ST_RECORDER_SOURCES_STEP_CLOCK_H

#include "recorder/perf/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct step_clock {
    struct rec_clock perf;

    bool has_perf; /* else the offset is 0: there is no perf clock to agree with */

    int64_t offset; /* perf - raw */

    uint64_t measured; /* raw time of the last measurement */

    uint64_t last; /* the newest time that was told */
};

/* For the calling thread. Where perf events are refused the clock runs without an offset. */
void step_clock_open(struct step_clock *clock);

/* Now, ns, never less than before. Now and then it takes some 10 us, to measure the offset. */
uint64_t step_clock_now(struct step_clock *clock);

void step_clock_close(struct step_clock *clock);

#endif
