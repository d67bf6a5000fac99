/* Rings of trace decoded by several threads at once, into the model. */
#ifndef ST_DECODER_CMD_DECODE_RINGS_H
#define ST_DECODER_CMD_DECODE_RINGS_H

#include "decoder/model/model.h"

struct decode_rings {
    struct dec_sideband *sb;

    struct dec_model *model;

    unsigned threads;

    /* Decodes a ring to emit(emit_ctx, ...) and adds to *counts. Called by several threads at once. */
    int (*decode)(void *ctx, size_t ring, dec_emit_fn *emit, void *emit_ctx, struct dec_flow_counts *counts,
                  struct st_error *err);

    void *ctx;
};

/* Whether that is quicker than one thread that decodes while another makes calls: there are several rings,
 * none of them is most of the trace, and `memory` bytes are enough for those that are at work. */
bool decode_rings_pays(const struct dec_sideband *sb, unsigned threads, uint64_t memory);

/* All rings; adds to *counts. The model has then what it had if they had come one after the other. What
 * decode or the model returned, of the first ring that failed; ST_ENOMEM. */
int decode_rings_run(const struct decode_rings *rings, struct dec_flow_counts *counts, struct st_error *err);

#endif
