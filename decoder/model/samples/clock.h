/* A thread's clock that stands still while it has no CPU. */
#ifndef ST_DECODER_MODEL_SAMPLES_CLOCK_H
#define ST_DECODER_MODEL_SAMPLES_CLOCK_H

#include "decoder/callstack/stack.h"

struct dec_run_clock {
    const struct dec_offcpu *offcpu; /* the caller's: sorted, disjoint */

    size_t n;

    uint64_t *off_before; /* for each interval: time off the CPU before it, ns */
};

/* 0, or -1 (no memory). */
int dec_run_clock_set(struct dec_run_clock *clock, const struct dec_offcpu *offcpu, size_t n);
void dec_run_clock_free(struct dec_run_clock *clock);

/* Index of the first interval that begins at `time` or later. */
size_t dec_run_clock_interval(const struct dec_run_clock *clock, uint64_t time);

/* What the clock shows at a time: the time less that off the CPU before it, ns. */
uint64_t dec_run_clock_at(const struct dec_run_clock *clock, uint64_t time);

/* The first moment at which the clock shows `cpu`. */
uint64_t dec_run_clock_moment(const struct dec_run_clock *clock, uint64_t cpu);

#endif
