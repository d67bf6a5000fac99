/* Which functions that were inlined a run of instructions goes through.
 *
 * A compiler mixes the instructions of what it inlined with those around them. Within a run (from where a
 * branch led to the next branch) each place that a function was inlined at counts once: from its first to
 * its last instruction there, and what stands between is taken for its own, unless it is of another one that
 * was inlined beside it. Where two are mixed with each other, each has the piece with most of its
 * instructions; the piece that the run ends in always counts, as a call may end it, and the one that goes on
 * behind a call. */
#ifndef ST_DECODER_DWARF_INLINE_RUNS_H
#define ST_DECODER_DWARF_INLINE_RUNS_H

#include "decoder/dwarf/inlines.h"

struct dec_inline_piece {
    uint32_t at; /* instructions of the run before it */

    uint32_t node; /* DEC_NO_INLINE: of the function itself */
};

struct dec_inline_pieces {
    const struct dec_inline_piece *at; /* the first is at 0; neighbours differ */

    uint32_t n;

    uint32_t instructions; /* of the run; 0: not counted, as there is one piece */

    struct dec_inline_piece plain; /* that one piece; not for users */
};

/* The length of an instruction of the image; 0: not known. */
typedef unsigned dec_inline_length_fn(void *ctx, uint64_t address);

/* Of the run over the instructions of [start, end). before: what the instruction before the run was of, where
 * the run goes on behind a call that returned (DEC_NO_INLINE: it does not, or of the function itself). The
 * pieces live as long as both `pieces` and the tree. 0 or -1 (no memory). */
int dec_inline_pieces_of(struct dec_inline_tree *tree, uint64_t start, uint64_t end, uint32_t before,
                         dec_inline_length_fn *length, void *ctx, struct dec_inline_pieces *pieces);

/* The rule above: labels[i] is the node of instruction i, and becomes the one that it counts for. goes_on:
 * the first one stands for what was before the run. 0 or -1. */
int dec_inline_smooth(const struct dec_inline_tree *tree, uint32_t *labels, size_t n, bool goes_on);

#endif
