/* `decode --dump branches|calls` of a recording: the rings' branches in one order, that of their times. */
#ifndef ST_DECODER_DECODE_LIST_H
#define ST_DECODER_DECODE_LIST_H

#include "decoder/dump.h"
#include "decoder/sideband.h"

struct decode_list;

/* Lists to `out`; with `calls` only what enters and leaves functions. ST_ENOMEM. */
int decode_list_new(FILE *out, const struct dec_sideband *sb, bool raw_time, bool calls,
                    struct decode_list **list, struct st_error *err);

/* A dec_emit_fn with `ctx` the list. One ring is listed at once, several wait for decode_list_end. */
dec_emit_fn decode_list_emit;

/* Lists what waited. ST_EFAIL: writing failed. */
int decode_list_end(struct decode_list *list, struct st_error *err);

void decode_list_free(struct decode_list *list);

#endif
