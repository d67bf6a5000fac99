/* From the CPU's time stamp counter to the perf clock and back, as perf converts (tools/perf/util/tsc.c; the
 * kernel's include/uapi/linux/perf_event.h, struct perf_event_mmap_page: time_mult, time_shift, time_zero).
 */
#ifndef ST_DECODER_PT_CLOCK_H
#define ST_DECODER_PT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct dec_clock {
    uint64_t mult;

    uint64_t zero;

    uint16_t shift;

    bool known; /* false: no conversion was recorded; dec_clock_ns then gives the TSC itself */
};

uint64_t dec_clock_ns(const struct dec_clock *clock, uint64_t tsc);

/* The inverse, rounded down; UINT64_MAX and 0 stay what they are. */
uint64_t dec_clock_tsc(const struct dec_clock *clock, uint64_t ns);

#endif
