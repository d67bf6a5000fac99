/* What is missing: every loss becomes a row of the table `gap`. */
#ifndef ST_DECODER_MODEL_GAP_H
#define ST_DECODER_MODEL_GAP_H

#include "base/vec.h"
#include "decoder/event/event.h"
#include "decoder/sideband/sideband.h"

struct dec_gap_row {
    struct dec_thread *thread; /* NULL: not of one thread */

    int32_t cpu; /* -1: not of one CPU */

    uint32_t ring; /* DEC_NO_RING: not of one ring */

    uint64_t start, end;

    const char *reason;

    char *detail; /* malloc'd; NULL: nothing to say */

    bool open; /* nothing was decoded behind it yet */

    bool first; /* of its ring: what is before it is missing too */
};

#define DEC_NO_RING UINT32_MAX

struct dec_gaps {
    ST_VEC(struct dec_gap_row) rows;
};

/* Adds a gap; `detail` is copied (NULL: none). 0 or -1 (no memory). */
int dec_gap_add(struct dec_gaps *gaps, const struct dec_gap_row *row, const char *detail);

/* The decoding of the one ring goes on at `time`: ends the open gaps, which are the last. */
void dec_gap_close(struct dec_gaps *gaps, uint64_t time);

/* Everything is decoded. Gaps that are open last to `last`. */
void dec_gap_end(struct dec_gaps *gaps, uint64_t last);

void dec_gaps_free(struct dec_gaps *gaps);

#endif
