/* Which records of a source's rings belong into a snapshot. */
#include "recorder/perf/record_filter.h"
#include "recorder/perf/record.h"

#include <stdlib.h>

static int by_tid(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return x < y ? -1 : x > y;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int by_owner(const void *a, const void *b)
{
    const struct rec_filter_own *x = a, *y = b;

    return x->tid != y->tid ? by_tid(&x->tid, &y->tid) : by_id(&x->id, &y->id);
}

void rec_filter_sort(struct rec_filter *f)
{
    if (f->late.n)
        qsort(f->late.at, f->late.n, sizeof(f->late.at[0]), by_tid);
    if (f->own.n)
        qsort(f->own.at, f->own.n, sizeof(f->own.at[0]), by_owner);
    if (f->any.n)
        qsort(f->any.at, f->any.n, sizeof(f->any.at[0]), by_id);
}

static bool holds(const void *key, const void *at, size_t n, size_t size,
                  int (*order)(const void *, const void *))
{
    return n && bsearch(key, at, n, size, order);
}

bool rec_filter_keeps(const struct rec_filter *f, const struct perf_event_header *record)
{
    const struct rec_sample_head *sample = (const struct rec_sample_head *)record;
    struct rec_filter_own own;

    if (!f->late.n || record->type != PERF_RECORD_SAMPLE || record->size < sizeof(*sample))
        return true;
    own = (struct rec_filter_own){.tid = (pid_t)sample->tid, .id = sample->id};
    return !holds(&own.tid, f->late.at, f->late.n, sizeof(f->late.at[0]), by_tid) ||
           holds(&own, f->own.at, f->own.n, sizeof(f->own.at[0]), by_owner) ||
           holds(&own.id, f->any.at, f->any.n, sizeof(f->any.at[0]), by_id);
}

void rec_filter_free(struct rec_filter *f)
{
    st_vec_free(&f->late);
    st_vec_free(&f->own);
    st_vec_free(&f->any);
}
