/* Rows and blocks of the formats that draw. */
#include "viewer/export/picture.h"

#include <stdlib.h>
#include <string.h>

static int measure_call(struct vw_export *x, const struct vw_export_call *c, struct st_error *err);
static int measure_thread(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err);

static const struct vw_export_ops measuring = {.thread_begin = measure_thread, .enter = measure_call};

/* Of one depth: where the block that is still growing began, for each level. */
struct growing {
    int64_t since[VW_LEVELS]; /* -1: none */
};

struct measuring {
    struct vw_measure *m;

    int64_t *row;

    ST_VEC(struct growing) depths;
};

static int measure_thread(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err)
{
    struct measuring *s = x->state;

    (void)err;
    s->row = &s->m->rows[t - x->thread_list];
    s->depths.n = 0;
    return 0;
}

/* Counts the call as vw_blocks_add would, with every `least` that is a power of two. */
static void count_blocks(struct vw_measure *m, struct growing *g, int64_t start, int64_t length)
{
    for (int i = 0; i < VW_LEVELS; i++) {
        int64_t least = (int64_t)1 << i;

        if (g->since[i] >= 0 && length < least && start - g->since[i] < least)
            continue;
        m->blocks[i]++;
        g->since[i] = length < least ? start : -1;
    }
}

static int measure_call(struct vw_export *x, const struct vw_export_call *c, struct st_error *err)
{
    struct measuring *s = x->state;
    struct growing none;

    memset(&none, 0xff, sizeof(none));
    while ((int64_t)s->depths.n <= c->depth)
        if (st_vec_push(&s->depths, none))
            return st_nomem(err, "the picture");
    s->m->calls++;
    if (c->depth >= *s->row)
        *s->row = (int64_t)c->depth + 1;
    count_blocks(s->m, &s->depths.at[c->depth < 0 ? 0 : c->depth], c->start, c->end - c->start);
    return 0;
}

int vw_picture_measure(struct vw_export *x, struct vw_measure *m, struct st_error *err)
{
    struct measuring s = {.m = m};
    void *state = x->state;
    int rc;

    *m = (struct vw_measure){.rows = calloc(x->all_threads + 1, sizeof(*m->rows))};
    if (!m->rows)
        return st_nomem(err, "the picture");
    x->state = &s;
    rc = vw_export_walk(x, &measuring, err);
    x->state = state;
    st_vec_free(&s.depths);
    if (rc) {
        free(m->rows);
        m->rows = NULL;
    }
    return rc;
}

static int put_pending(struct vw_blocks *b, int depth, struct st_error *err)
{
    struct vw_block block = b->pending.at[depth];

    if (!block.calls)
        return 0;
    b->pending.at[depth].calls = 0;
    return b->put(b->ctx, &block, err);
}

static void join(struct vw_block *p, const struct vw_block *more)
{
    p->end = more->end;
    p->calls++;
    if (more->longest_ns > p->longest_ns) {
        p->longest_ns = more->longest_ns;
        p->symbol = more->symbol;
    }
}

int vw_blocks_add(struct vw_blocks *b, const struct vw_export_call *c, struct st_error *err)
{
    struct vw_block block = {c->start, c->end, c->end - c->start, 1, c->depth < 0 ? 0 : c->depth, c->symbol};
    struct vw_block *p;
    int rc;

    while (b->pending.n <= (size_t)block.depth)
        if (st_vec_push(&b->pending, (struct vw_block){0}))
            return st_nomem(err, "the picture");
    p = &b->pending.at[block.depth];
    if (p->calls && block.longest_ns < b->least && block.start - p->start < b->least) {
        join(p, &block);
        return 0;
    }
    rc = put_pending(b, block.depth, err);
    if (rc)
        return rc;
    if (block.longest_ns >= b->least)
        return b->put(b->ctx, &block, err);
    *p = block;
    return 0;
}

int vw_blocks_flush(struct vw_blocks *b, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < b->pending.n; i++)
        rc = put_pending(b, (int)i, err);
    b->pending.n = 0;
    return rc;
}

int vw_picture_hue(const char *module)
{
    uint32_t h = 2166136261u;

    for (; *module; module++)
        h = (h ^ (unsigned char)*module) * 16777619u;
    return (int)(h % 360);
}
