/* Keeps the branches of several rings until all are there, then merges them by time. */
#include "decoder/decode_list.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Events of one thread that stand together in a ring. */
struct batch {
    struct dec_stream_info info;

    size_t at, n;

    char *detail; /* of the gap that ends it; malloc'd */
};

struct waiting {
    ST_VEC(struct dec_event) events;

    ST_VEC(struct batch) batches;

    size_t batch, event; /* next to list */
};

struct decode_list {
    struct dec_dump dump;

    const struct dec_sideband *sb;

    struct waiting *rings;

    size_t nrings;

    bool calls;

    ST_VEC(struct dec_event) kept; /* of one batch */
};

static const struct dec_space *space_of(void *ctx, int32_t pid, int32_t tid, uint64_t time)
{
    const struct dec_sideband *sb = ctx;
    const struct dec_thread *thread = tid > 0 ? dec_sideband_thread(sb, tid, -1, time) : NULL;

    (void)pid;
    return thread ? thread->process->space : sb->kernel;
}

int decode_list_new(FILE *out, const struct dec_sideband *sb, bool raw_time, bool calls,
                    struct decode_list **list, struct st_error *err)
{
    struct decode_list *l = calloc(1, sizeof(*l));

    if (!l)
        return st_nomem(err, "the listing");
    l->dump = (struct dec_dump){
        .out = out, .raw_time = raw_time, .space_of = space_of, .ctx = (void *)(uintptr_t)sb};
    l->sb = sb;
    l->calls = calls;
    l->nrings = sb->rings.n;
    l->rings = calloc(l->nrings + 1, sizeof(*l->rings));
    if (!l->rings) {
        free(l);
        return st_nomem(err, "the listing");
    }
    *list = l;
    return 0;
}

void decode_list_free(struct decode_list *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nrings; i++) {
        for (size_t j = 0; j < l->rings[i].batches.n; j++)
            free(l->rings[i].batches.at[j].detail);
        st_vec_free(&l->rings[i].batches);
        st_vec_free(&l->rings[i].events);
    }
    st_vec_free(&l->kept);
    free(l->rings);
    free(l);
}

static bool wanted(const struct decode_list *l, const struct dec_event *e)
{
    if (e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN))
        return false;
    return !l->calls || (e->kind != DEC_COND_JUMP && e->kind != DEC_JUMP && e->kind != DEC_FAR_JUMP &&
                         e->kind != DEC_PTWRITE);
}

static int keep(struct decode_list *l, const struct dec_stream_info *info, const struct dec_event *events,
                size_t n, const char *detail)
{
    struct waiting *w = &l->rings[info->ring];
    struct batch batch = {.info = *info, .at = w->events.n, .n = n, .detail = detail ? strdup(detail) : NULL};

    if ((detail && !batch.detail) || st_vec_reserve(&w->events, n) || st_vec_push(&w->batches, batch)) {
        free(batch.detail);
        return ST_ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        w->events.at[w->events.n++] = events[i];
    return 0;
}

int decode_list_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                     const char *detail)
{
    struct decode_list *l = ctx;

    l->kept.n = 0;
    if (st_vec_reserve(&l->kept, n))
        return ST_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (wanted(l, &events[i]))
            l->kept.at[l->kept.n++] = events[i];
    if (!l->kept.n)
        return 0;
    if (l->nrings > 1)
        return keep(l, info, l->kept.at, l->kept.n, detail);
    return dec_dump_branches(&l->dump, info, l->kept.at, l->kept.n, detail);
}

/* The ring whose next event is the earliest; of equal ones the first. NULL: nothing is left. */
static struct waiting *earliest(struct decode_list *l)
{
    struct waiting *found = NULL;

    for (size_t i = 0; i < l->nrings; i++) {
        struct waiting *w = &l->rings[i];

        if (w->event < w->events.n &&
            (!found || w->events.at[w->event].time < found->events.at[found->event].time))
            found = w;
    }
    return found;
}

int decode_list_end(struct decode_list *l, struct st_error *err)
{
    struct waiting *w;

    while ((w = earliest(l))) {
        const struct batch *b = &w->batches.at[w->batch];
        bool last = w->event + 1 == b->at + b->n;

        dec_dump_branches(&l->dump, &b->info, &w->events.at[w->event], 1, last ? b->detail : NULL);
        w->event++;
        w->batch += last;
    }
    if (fflush(l->dump.out) || ferror(l->dump.out))
        return st_fail_errno(err, ST_EFAIL, "cannot write the listing");
    return 0;
}
