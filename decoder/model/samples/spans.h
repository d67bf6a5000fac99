/* System calls whose begin and end were measured, whatever samples tell of them. */
#ifndef ST_DECODER_MODEL_SAMPLES_SPANS_H
#define ST_DECODER_MODEL_SAMPLES_SPANS_H

#include "decoder/sideband/sideband.h"

struct dec_measured_span {
    uint64_t start, end; /* perf clock, ns */
};

struct dec_measured {
    int32_t tid;

    struct dec_measured_span span;
};

/* By thread, then by time; those of a thread are disjoint. */
typedef ST_VEC(struct dec_measured) dec_measured_calls;

/* Appends those of a recording to the empty vector. 0, or -1 (no memory). */
int dec_measured_find(const struct dec_sideband *sb, dec_measured_calls *calls);

/* The system call that a thread was in; NULL: none that was measured. */
const struct dec_measured *dec_measured_at(const dec_measured_calls *calls, int32_t tid, uint64_t time);

#endif
