/* A thread's clock that stands still while it has no CPU. */
#include "decoder/model/samples/clock.h"
#include "base/bisect.h"

#include <stdlib.h>

int dec_run_clock_set(struct dec_run_clock *clock, const struct dec_offcpu *offcpu, size_t n)
{
    uint64_t sum = 0;

    *clock = (struct dec_run_clock){.offcpu = offcpu, .n = n, .off_before = calloc(n + 1, sizeof(sum))};
    if (!clock->off_before)
        return -1;
    for (size_t i = 0; i < n; i++) {
        clock->off_before[i] = sum;
        sum += offcpu[i].end - offcpu[i].start;
    }
    clock->off_before[n] = sum;
    return 0;
}

void dec_run_clock_free(struct dec_run_clock *clock)
{
    free(clock->off_before);
}

size_t dec_run_clock_interval(const struct dec_run_clock *clock, uint64_t time)
{
    return st_bisect(i, clock->n, clock->offcpu[i].start < time);
}

uint64_t dec_run_clock_at(const struct dec_run_clock *clock, uint64_t time)
{
    size_t i = dec_run_clock_interval(clock, time);
    uint64_t off = clock->off_before[i];

    if (i && clock->offcpu[i - 1].end > time)
        off -= clock->offcpu[i - 1].end - time;
    return time - off;
}

uint64_t dec_run_clock_moment(const struct dec_run_clock *clock, uint64_t cpu)
{
    size_t first = st_bisect(i, clock->n, clock->offcpu[i].start - clock->off_before[i] < cpu);

    return cpu + clock->off_before[first];
}
