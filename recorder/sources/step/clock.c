/* The cheap perf clock. */
#include "recorder/sources/step/clock.h"

#include <time.h>

enum {
    MEASURE_EVERY = 200 * 1000 * 1000, /* ns: the clocks part by some 50 ns a second */
    READINGS = 4,
};

static uint64_t raw_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The reading that took least time is nearest to the truth. */
static void measure(struct step_clock *clock)
{
    uint64_t best = UINT64_MAX;

    clock->measured = raw_now();
    for (int i = 0; i < READINGS; i++) {
        uint64_t before = raw_now(), perf, took;

        if (rec_clock_now(&clock->perf, &perf, NULL))
            return;
        took = raw_now() - before;
        if (took >= best)
            continue;
        best = took;
        clock->offset = (int64_t)(perf - (before + took / 2));
    }
}

void step_clock_open(struct step_clock *clock)
{
    *clock = (struct step_clock){.perf.fd = -1};
    clock->has_perf = !rec_clock_open(&clock->perf, NULL);
    if (clock->has_perf)
        measure(clock);
}

uint64_t step_clock_now(struct step_clock *clock)
{
    uint64_t raw = raw_now(), now;

    if (clock->has_perf && raw - clock->measured > MEASURE_EVERY)
        measure(clock);
    now = raw + (uint64_t)clock->offset;
    if (now > clock->last)
        clock->last = now;
    return clock->last;
}

void step_clock_close(struct step_clock *clock)
{
    rec_clock_close(&clock->perf);
}
