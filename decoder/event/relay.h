/* Events made by one thread and taken by another, in the same order and with the same batches in between:
 * decoding branches goes on while calls are made of those before. */
#ifndef ST_DECODER_EVENT_RELAY_H
#define ST_DECODER_EVENT_RELAY_H

#include "decoder/event/event.h"

#include <stdbool.h>

struct dec_relay_options {
    /* Gives events to emit(emit_ctx, ...), in a thread of its own. Non-zero is the result. */
    int (*produce)(void *ctx, dec_emit_fn *emit, void *emit_ctx, struct st_error *err);

    void *produce_ctx;

    /* Whether every event of a batch is wanted. Otherwise conditional jumps that were not taken are left out,
     * but for a batch's first and last event. NULL: they are. Called by the producing thread. */
    bool (*whole)(void *ctx, const struct dec_stream_info *info);

    void *whole_ctx;

    dec_emit_fn *consume; /* in the calling thread */

    void *consume_ctx;
};

/* Until all is produced and consumed, or either failed; the consumer's failure counts first. Batches may be
 * cut. What produce or consume returned; ST_ENOMEM. */
int dec_relay_run(const struct dec_relay_options *options, struct st_error *err);

#endif
