/* What the formats that draw share: how many rows each thread takes, and short calls put together, so that
 * the picture's size is bounded by its width and not by the trace. */
#ifndef ST_VIEWER_EXPORT_PICTURE_H
#define ST_VIEWER_EXPORT_PICTURE_H

#include "base/vec.h"
#include "viewer/export/export.h"

enum { VW_LEVELS = 48 };

struct vw_measure {
    int64_t *rows; /* of each thread of x->thread_list: deepest call in the range + 1; malloc'd */

    int64_t calls;

    int64_t blocks[VW_LEVELS]; /* how many blocks there are when calls under 2^i ns are put together */
};

/* Walks the calls once. ST_ENOMEM and what vw_export_walk returns; m->rows is then NULL. */
int vw_picture_measure(struct vw_export *x, struct vw_measure *m, struct st_error *err);

/* A call, or several short ones of one depth that stand together: their longest speaks for them. */
struct vw_block {
    int64_t start, end, longest_ns, calls;

    int depth;

    struct vw_export_symbol *symbol;
};

struct vw_blocks {
    int64_t least; /* shorter calls are put together, in stretches of at most twice so long */

    /* Receives the blocks; of each depth in the order of time. */
    int (*put)(void *ctx, const struct vw_block *b, struct st_error *err);

    void *ctx;

    ST_VEC(struct vw_block) pending; /* one a depth; calls is 0 where there is none */
};

int vw_blocks_add(struct vw_blocks *b, const struct vw_export_call *c, struct st_error *err);

/* Hands out what is still pending; the depths begin anew. */
int vw_blocks_flush(struct vw_blocks *b, struct st_error *err);

/* 0 to 359, the same for one module in every trace. */
int vw_picture_hue(const char *module);

#endif
