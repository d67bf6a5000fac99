/* Records of processes that may turn out to be the target's. */
#include "recorder/sideband/strangers.h"
#include "recorder/perf/record.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 1 << 20 };

int rec_strangers_keep(struct rec_strangers *s, const struct perf_event_header *record, struct st_error *err)
{
    size_t words = (record->size + sizeof(uint64_t) - 1) / sizeof(uint64_t), at = s->words.n;

    if (at + words > MOST_WORDS)
        return 0;
    if (st_vec_reserve(&s->words, words) ||
        st_vec_push(&s->list, (struct rec_stranger){.time = rec_record_time(record), .at = at}))
        return st_nomem(err, "records of processes");
    memcpy(s->words.at + at, record, record->size);
    s->words.n += words;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct rec_stranger *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
    const struct rec_stranger *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static const struct perf_event_header *record_at(const struct rec_strangers *s, size_t at)
{
    return (const struct perf_event_header *)(const void *)(s->words.at + at);
}

/* Closes the holes that others have left. */
static void pack(struct rec_strangers *s)
{
    size_t to = 0;

    if (s->list.n)
        qsort(s->list.at, s->list.n, sizeof(s->list.at[0]), by_place);
    for (size_t i = 0; i < s->list.n; i++) {
        size_t words = (record_at(s, s->list.at[i].at)->size + sizeof(uint64_t) - 1) / sizeof(uint64_t);

        memmove(s->words.at + to, s->words.at + s->list.at[i].at, words * sizeof(uint64_t));
        s->list.at[i].at = to;
        to += words;
    }
    s->words.n = to;
}

int rec_strangers_review(struct rec_strangers *s, rec_stranger_fn *fn, void *ctx, struct st_error *err)
{
    size_t kept = 0;
    int rc = 0;

    if (s->list.n)
        qsort(s->list.at, s->list.n, sizeof(s->list.at[0]), by_time);
    for (size_t i = 0; i < s->list.n; i++) {
        struct rec_stranger one = s->list.at[i];

        if (rc >= 0)
            rc = fn(ctx, record_at(s, one.at), err);
        if (rc == 1 || one.old)
            continue;
        one.old = true;
        s->list.at[kept++] = one;
    }
    s->list.n = kept;
    pack(s);
    return rc < 0 ? rc : 0;
}

void rec_strangers_free(struct rec_strangers *s)
{
    st_vec_free(&s->words);
    st_vec_free(&s->list);
}
