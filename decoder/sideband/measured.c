/* Waits that a trigger measured and no context switch tells: where the target is stepped the recorder knows
 * the switches in system calls only, and a thread that lost its CPU would be told as running. */
#include "base/bisect.h"
#include "decoder/sideband/sideband_impl.h"

#include <stdlib.h>
#include <string.h>

struct measured {
    struct dec_thread *thread;

    struct dec_offcpu wait;
};

typedef ST_VEC(struct measured) measured_list;

/* The wait, on the perf clock. An ongoing record tells the part that lay before it. False: it tells of none.
 */
static bool wait_of(const struct dec_stall_sample *s, struct dec_offcpu *wait)
{
    const struct st_stall_record *r = &s->record;
    uint64_t offset = s->time - r->now_ktime;

    *wait = (struct dec_offcpu){.start = r->start_ktime + offset,
                                .end = r->end_ktime ? r->end_ktime + offset : s->time,
                                .preempted = !r->state};
    return r->kind == ST_STALL_OFFCPU && wait->start < wait->end;
}

/* Whether a part of it is among the thread's, which are in the order of time. */
static bool is_known(const struct dec_thread *t, const struct dec_offcpu *wait)
{
    size_t first = st_bisect(i, t->offcpu.n, t->offcpu.at[i].end <= wait->start);

    return first < t->offcpu.n && t->offcpu.at[first].start < wait->end;
}

static int find_unknown(const struct dec_sideband *sb, measured_list *list)
{
    for (size_t i = 0; i < sb->stalls.n; i++) {
        const struct dec_stall_sample *s = &sb->stalls.at[i];
        struct measured m;

        if (!wait_of(s, &m.wait))
            continue;
        m.thread = dec_sideband_thread(sb, (int32_t)s->record.tid, -1, m.wait.start);
        if (m.thread && !is_known(m.thread, &m.wait) && st_vec_push(list, m))
            return -1;
    }
    return 0;
}

/* By thread and start; of those that begin together the longest comes first, which is the whole wait. */
static int by_thread(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread->index < y->thread->index ? -1 : 1;
    if (x->wait.start != y->wait.start)
        return x->wait.start < y->wait.start ? -1 : 1;
    return x->wait.end > y->wait.end ? -1 : x->wait.end < y->wait.end;
}

static int by_start(const void *a, const void *b)
{
    const struct dec_offcpu *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* Waits that overlap one before them are left out. */
static int add_waits(struct dec_thread *t, const struct measured *list, size_t n)
{
    uint64_t reach = 0;

    for (size_t i = 0; i < n; i++) {
        if (list[i].wait.start < reach)
            continue;
        reach = list[i].wait.end;
        if (st_vec_push(&t->offcpu, list[i].wait))
            return -1;
    }
    qsort(t->offcpu.at, t->offcpu.n, sizeof(struct dec_offcpu), by_start);
    return 0;
}

/* Off its CPU a thread does not run: both lists are in the order of time. */
static int cut_slices(struct dec_thread *t)
{
    struct dec_slice *whole = t->slices.at;
    size_t n = t->slices.n, w = 0;
    int rc = 0;

    memset(&t->slices, 0, sizeof(t->slices));
    for (size_t i = 0; i < n && !rc; i++) {
        struct dec_slice s = whole[i];

        while (w < t->offcpu.n && t->offcpu.at[w].end <= s.start)
            w++;
        for (size_t k = w; !rc && k < t->offcpu.n && t->offcpu.at[k].start < s.end; k++) {
            struct dec_slice before = {s.start, t->offcpu.at[k].start, s.cpu};

            if (before.start < before.end)
                rc = st_vec_push(&t->slices, before);
            s.start = t->offcpu.at[k].end;
        }
        if (!rc && s.start < s.end)
            rc = st_vec_push(&t->slices, s);
    }
    free(whole);
    return rc;
}

int sb_add_measured_waits(struct sb_context *c, bool *changed)
{
    measured_list list = {0};
    int rc = find_unknown(c->sb, &list);
    size_t n;

    *changed = list.n > 0;
    if (list.n)
        qsort(list.at, list.n, sizeof(struct measured), by_thread);
    for (size_t i = 0; i < list.n && !rc; i += n) {
        for (n = 1; i + n < list.n && list.at[i + n].thread == list.at[i].thread;)
            n++;
        rc = add_waits(list.at[i].thread, list.at + i, n);
        if (!rc)
            rc = cut_slices(list.at[i].thread);
    }
    st_vec_free(&list);
    return rc;
}
