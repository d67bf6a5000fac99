/* The pieces of a ring's trace put together into runs of bytes without a break. */
#ifndef ST_DECODER_PT_PIECES_H
#define ST_DECODER_PT_PIECES_H

#include "decoder/pt/flow.h"

#include "base/vec.h"

struct pt_run {
    const uint8_t *bytes;

    size_t size;

    uint8_t *owned; /* to free; NULL: the bytes are those of one piece */

    enum dec_gap before; /* why it does not join the run before it; 0: it is the first */
};

typedef ST_VEC(struct pt_run) pt_runs;

/* Joins what follows on without a break; of snapshots, drops what an earlier one had already. Of the options,
 * `snapshot`, `threads` and `forget` matter. ST_ENOMEM: runs is empty. */
int pt_runs_join(const struct dec_flow_options *options, const struct dec_piece *pieces, size_t npieces,
                 pt_runs *runs, struct st_error *err);
void pt_runs_free(pt_runs *runs);

/* The first PSB packet at or behind `from` (SDM, Intel PT, "PSB Packet"); size: none. */
size_t pt_find_psb(const uint8_t *bytes, size_t size, size_t from);

#endif
