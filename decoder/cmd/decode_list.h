/* `decode --dump branches|calls` of a recording: the rings' branches in one order, that of their times. */
#ifndef ST_DECODER_CMD_DECODE_LIST_H
#define ST_DECODER_CMD_DECODE_LIST_H

#include "decoder/cmd/dump.h"
#include "decoder/sideband/sideband.h"

#include "base/spool.h"

struct decode_list;

/* Lists to `out`; with `calls` only what enters and leaves functions. What waits takes memory of `spill`
 * (the caller's, freed after the list), then its file. ST_ENOMEM. */
int decode_list_new(FILE *out, const struct dec_sideband *sb, bool raw_time, bool calls,
                    struct st_spill *spill, struct decode_list **list, struct st_error *err);

/* A dec_emit_fn with `ctx` the list. One ring is listed at once, several wait for decode_list_end. */
dec_emit_fn decode_list_emit;

/* Why decode_list_emit failed; code 0: writing the listing did. */
const struct st_error *decode_list_error(const struct decode_list *list);

/* Lists what waited. ST_EFAIL: writing failed, or reading what waited in the file. */
int decode_list_end(struct decode_list *list, struct st_error *err);

void decode_list_free(struct decode_list *list);

#endif
