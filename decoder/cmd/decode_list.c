/* Keeps the branches of several rings until all are there, then merges them by time: in memory, and beyond a
 * budget in a file. */
#include "decoder/cmd/decode_list.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An event as it waits. */
struct waiting {
    struct dec_event event;

    int32_t pid, tid;

    uint32_t detail; /* 1 + the index of it; 0: none */
};

struct ring {
    struct st_spool waiting;

    struct st_spool_reader reader;

    struct waiting next; /* to list */

    bool has_next;
};

struct decode_list {
    struct dec_dump dump;

    const struct dec_sideband *sb;

    struct ring *rings;

    size_t nrings;

    bool calls;

    ST_VEC(struct dec_event) kept; /* of one batch */

    ST_VEC(char *) details; /* of gaps */

    struct st_error error; /* why an event could not be kept */
};

static const struct dec_space *space_of(void *ctx, int32_t pid, int32_t tid, uint64_t time)
{
    const struct dec_sideband *sb = ctx;
    const struct dec_thread *thread = tid > 0 ? dec_sideband_thread(sb, tid, -1, time) : NULL;

    (void)pid;
    return thread ? thread->process->space : sb->kernel;
}

int decode_list_new(FILE *out, const struct dec_sideband *sb, bool raw_time, bool calls,
                    struct st_spill *spill, struct decode_list **list, struct st_error *err)
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
    for (size_t i = 0; i < l->nrings; i++)
        l->rings[i].waiting.spill = spill;
    *list = l;
    return 0;
}

void decode_list_free(struct decode_list *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nrings; i++) {
        st_spool_close(&l->rings[i].reader);
        st_spool_clear(&l->rings[i].waiting);
        st_vec_free(&l->rings[i].waiting.chunks);
    }
    for (size_t i = 0; i < l->details.n; i++)
        free(l->details.at[i]);
    st_vec_free(&l->details);
    st_vec_free(&l->kept);
    free(l->rings);
    free(l);
}

static bool wanted(const struct decode_list *l, const struct dec_event *e)
{
    if (e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN))
        return false;
    return !l->calls || (e->kind != DEC_COND_JUMP && e->kind != DEC_JUMP && e->kind != DEC_FAR_JUMP &&
                         e->kind != DEC_PTWRITE && e->kind != DEC_POWER);
}

/* 1 + the index of a gap's text, which most gaps of a kind share with the one before; 0: no memory. */
static uint32_t keep_detail(struct decode_list *l, const char *detail)
{
    char *copy;

    if (l->details.n && !strcmp(l->details.at[l->details.n - 1], detail))
        return (uint32_t)l->details.n;
    copy = strdup(detail);
    if (copy && !st_vec_push(&l->details, copy))
        return (uint32_t)l->details.n;
    free(copy);
    return 0;
}

static int keep(struct decode_list *l, const struct dec_stream_info *info, const char *detail)
{
    struct st_spool *spool = &l->rings[info->ring].waiting;
    uint32_t text = detail ? keep_detail(l, detail) : 0;

    if (detail && !text)
        return st_nomem(&l->error, "the listing");
    for (size_t i = 0; i < l->kept.n; i++) {
        struct waiting w = {.event = l->kept.at[i],
                            .pid = info->pid,
                            .tid = info->tid,
                            .detail = i + 1 == l->kept.n ? text : 0};
        struct st_spool_place place;
        uint8_t *to = st_spool_room(spool, sizeof(w), &place, &l->error);

        if (!to)
            return l->error.code ? l->error.code : ST_ENOMEM;
        memcpy(to, &w, sizeof(w));
        st_spool_wrote(spool, sizeof(w));
    }
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
        return keep(l, info, detail);
    return dec_dump_branches(&l->dump, info, l->kept.at, l->kept.n, detail);
}

const struct st_error *decode_list_error(const struct decode_list *l)
{
    return &l->error;
}

/* Reads the ring's next event, if there is one. */
static int advance(struct ring *r, struct st_error *err)
{
    int rc = r->reader.at == r->reader.end ? st_spool_next(&r->reader, err) : 0;

    r->has_next = !rc && r->reader.at != r->reader.end;
    if (r->has_next) {
        memcpy(&r->next, r->reader.at, sizeof(r->next));
        r->reader.at += sizeof(r->next);
    }
    return rc;
}

static int begin(struct ring *r, struct st_error *err)
{
    int rc;

    r->reader.spool = &r->waiting;
    if (!r->waiting.chunks.n)
        return 0;
    rc = st_spool_seek(&r->reader, (struct st_spool_place){0}, err);
    return rc ? rc : advance(r, err);
}

/* The ring whose next event is the earliest; of equal ones the first. NULL: nothing is left. */
static struct ring *earliest(struct decode_list *l)
{
    struct ring *found = NULL;

    for (size_t i = 0; i < l->nrings; i++) {
        struct ring *r = &l->rings[i];

        if (r->has_next && (!found || r->next.event.time < found->next.event.time))
            found = r;
    }
    return found;
}

int decode_list_end(struct decode_list *l, struct st_error *err)
{
    struct ring *r;
    int rc = 0;

    for (size_t i = 0; i < l->nrings && !rc; i++)
        rc = begin(&l->rings[i], err);
    while (!rc && (r = earliest(l))) {
        const struct waiting *w = &r->next;
        const struct dec_stream_info info = {.pid = w->pid, .tid = w->tid, .ring = (uint32_t)(r - l->rings)};

        if (dec_dump_branches(&l->dump, &info, &w->event, 1, w->detail ? l->details.at[w->detail - 1] : NULL))
            break;
        rc = advance(r, err);
    }
    if (!rc && (fflush(l->dump.out) || ferror(l->dump.out)))
        return st_fail_errno(err, ST_EFAIL, "cannot write the listing");
    return rc;
}
