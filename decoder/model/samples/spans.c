/* System calls that were measured: by every entry and exit (--syscalls), or by a trigger. */
#include "decoder/model/samples/spans.h"
#include "base/bisect.h"

#include <stdlib.h>

struct edge {
    uint64_t time;

    int32_t tid;

    bool exit;
};

typedef ST_VEC(struct edge) edges;

static int by_tid(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

static int by_start(const void *a, const void *b)
{
    const struct dec_measured *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->span.start < y->span.start ? -1 : x->span.start > y->span.start;
}

static int of_points(const struct dec_sideband *sb, dec_measured_calls *calls)
{
    edges e = {0};
    int rc = 0;

    for (size_t i = 0; i < sb->points.n && !rc; i++) {
        const struct dec_point *p = &sb->points.at[i];

        if (p->kind == DEC_POINT_ENTRY || p->kind == DEC_POINT_EXIT)
            rc = st_vec_push(&e, (struct edge){p->time, p->tid, p->kind == DEC_POINT_EXIT});
    }
    if (e.n)
        qsort(e.at, e.n, sizeof(e.at[0]), by_tid);
    for (size_t i = 1; i < e.n && !rc; i++)
        if (e.at[i].tid == e.at[i - 1].tid && e.at[i].exit && !e.at[i - 1].exit)
            rc = st_vec_push(
                calls, (struct dec_measured){.tid = e.at[i].tid, .span = {e.at[i - 1].time, e.at[i].time}});
    st_vec_free(&e);
    return rc;
}

static int of_stalls(const struct dec_sideband *sb, dec_measured_calls *calls)
{
    int rc = 0;

    for (size_t i = 0; i < sb->stalls.n && !rc; i++) {
        const struct st_stall_record *r = &sb->stalls.at[i].record;
        uint64_t offset = sb->stalls.at[i].time - r->now_ktime;

        if (r->kind == ST_STALL_SYSCALL && r->end_ktime > r->start_ktime)
            rc = st_vec_push(calls,
                             (struct dec_measured){.tid = (int32_t)r->tid,
                                                   .span = {r->start_ktime + offset, r->end_ktime + offset}});
    }
    return rc;
}

int dec_measured_find(const struct dec_sideband *sb, dec_measured_calls *calls)
{
    size_t n = 0;

    if (of_points(sb, calls) || of_stalls(sb, calls))
        return -1;
    if (calls->n)
        qsort(calls->at, calls->n, sizeof(calls->at[0]), by_start);
    for (size_t i = 0; i < calls->n; i++)
        if (!n || calls->at[n - 1].tid != calls->at[i].tid ||
            calls->at[n - 1].span.end <= calls->at[i].span.start)
            calls->at[n++] = calls->at[i];
    calls->n = n;
    return 0;
}

const struct dec_measured *dec_measured_at(const dec_measured_calls *calls, int32_t tid, uint64_t time)
{
    size_t first = st_bisect(
        i, calls->n, calls->at[i].tid < tid || (calls->at[i].tid == tid && calls->at[i].span.start <= time));

    if (!first || calls->at[first - 1].tid != tid || calls->at[first - 1].span.end <= time)
        return NULL;
    return &calls->at[first - 1];
}
