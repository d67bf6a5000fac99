/* Threads that take one ring after the other. The rings of one target thread are one task, in their order:
 * they make calls on one stack. Each ring of a CPU is a task. */
#include "decoder/cmd/decode_rings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST = 64 /* threads */ };

struct ring {
    size_t index, order; /* order: the first ring of its task */

    int32_t tid; /* -1: a CPU's */

    uint64_t bytes; /* of all of its task */
};

typedef ST_VEC(struct ring) ring_list;

struct rings_work {
    const struct decode_rings *options;

    ring_list rings; /* task after task, those with most bytes first */

    ST_VEC(size_t) tasks; /* where each begins, and the end */

    atomic_size_t next; /* task */

    atomic_bool stop;
};

struct worker {
    struct rings_work *work;

    struct dec_model_feed *feed;

    struct dec_turns *turns;

    pthread_t thread;

    bool started;

    struct dec_flow_counts counts;

    size_t failed; /* the ring that did, where rc is not 0 */

    int rc;

    struct st_error err;
};

static int by_thread(const void *a, const void *b)
{
    const struct ring *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_bytes(const void *a, const void *b)
{
    const struct ring *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool same_task(const struct ring *a, const struct ring *b)
{
    return a->tid >= 0 && a->tid == b->tid;
}

/* The rings, task after task. */
static int list_rings(const struct dec_sideband *sb, ring_list *list)
{
    if (st_vec_reserve(list, sb->rings.n + 1))
        return -1;
    for (size_t i = 0; i < sb->rings.n; i++) {
        const struct dec_ring *r = &sb->rings.at[i];

        list->at[list->n++] =
            (struct ring){.index = i, .tid = r->cpu >= 0 ? -1 : r->tid, .bytes = r->bytes, .order = i};
    }
    qsort(list->at, list->n, sizeof(list->at[0]), by_thread);
    for (size_t i = 0, end; i < list->n; i = end) {
        uint64_t bytes = list->at[i].bytes;

        for (end = i + 1; end < list->n && same_task(&list->at[i], &list->at[end]); end++)
            bytes += list->at[end].bytes;
        for (size_t k = i; k < end; k++) {
            list->at[k].bytes = bytes;
            list->at[k].order = list->at[i].index;
        }
    }
    qsort(list->at, list->n, sizeof(list->at[0]), by_bytes);
    return 0;
}

bool decode_rings_pays(const struct dec_sideband *sb, unsigned threads, uint64_t memory)
{
    ring_list list = {0};
    uint64_t all = 0, most = 0;
    bool pays = false;

    for (size_t i = 0; i < sb->rings.n; i++) {
        all += sb->rings.at[i].bytes;
        most = sb->rings.at[i].bytes > most ? sb->rings.at[i].bytes : most;
    }
    if (threads > 1 && sb->rings.n > 1 && list_rings(sb, &list) == 0)
        pays = list.at[0].bytes <= all / 2 && most <= memory / (threads < MOST ? threads : MOST);
    st_vec_free(&list);
    return pays;
}

static int decode_task(struct worker *w, size_t task)
{
    struct rings_work *work = w->work;
    int rc = 0;

    for (size_t i = work->tasks.at[task]; i < work->tasks.at[task + 1] && !rc; i++) {
        const struct decode_rings *o = work->options;

        w->failed = work->rings.at[i].index;
        rc = o->decode(o->ctx, w->failed, dec_turns_emit, w->turns, &w->counts, &w->err);
    }
    return rc;
}

static void *decode_tasks(void *arg)
{
    struct worker *w = arg;
    size_t task;

    while (!w->rc && !atomic_load(&w->work->stop) &&
           (task = atomic_fetch_add(&w->work->next, 1)) + 1 < w->work->tasks.n)
        w->rc = decode_task(w, task);
    if (w->rc)
        atomic_store(&w->work->stop, true);
    return NULL;
}

static int make_tasks(struct rings_work *work)
{
    if (list_rings(work->options->sb, &work->rings))
        return -1;
    for (size_t i = 0; i < work->rings.n; i++)
        if ((!i || !same_task(&work->rings.at[i - 1], &work->rings.at[i])) && st_vec_push(&work->tasks, i))
            return -1;
    return st_vec_push(&work->tasks, work->rings.n);
}

/* The first in this thread, and those for which there is none. */
static void run_workers(struct worker *workers, unsigned n)
{
    for (unsigned i = n; i-- > 0;) {
        workers[i].started = i && pthread_create(&workers[i].thread, NULL, decode_tasks, &workers[i]) == 0;
        if (!i)
            decode_tasks(&workers[i]);
    }
    for (unsigned i = 0; i < n; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
}

static int sum_up(const struct worker *workers, unsigned n, struct dec_flow_counts *counts,
                  struct st_error *err)
{
    const struct worker *first = NULL;

    for (unsigned i = 0; i < n; i++) {
        dec_flow_counts_add(counts, &workers[i].counts);
        if (workers[i].rc && (!first || workers[i].failed < first->failed))
            first = &workers[i];
    }
    if (!first)
        return 0;
    if (err)
        *err = first->err;
    return first->rc;
}

static int run(struct rings_work *work, struct worker *workers, unsigned n, struct dec_flow_counts *counts,
               struct st_error *err)
{
    const struct decode_rings *o = work->options;
    int rc = make_tasks(work) ? st_nomem(err, "the rings") : 0;

    for (unsigned i = 0; i < n && !rc; i++) {
        workers[i].work = work;
        rc = dec_model_feed_new(o->model, &workers[i].feed, err);
        if (!rc)
            rc = dec_turns_new(o->sb, dec_model_feed_emit, workers[i].feed, &workers[i].turns, err);
    }
    if (!rc) {
        run_workers(workers, n);
        rc = sum_up(workers, n, counts, err);
    }
    for (unsigned i = 0; i < n; i++) {
        dec_turns_free(workers[i].turns);
        dec_model_feed_free(workers[i].feed);
    }
    return rc;
}

int decode_rings_run(const struct decode_rings *rings, struct dec_flow_counts *counts, struct st_error *err)
{
    struct rings_work work = {.options = rings};
    unsigned n = rings->threads < MOST ? rings->threads : MOST;
    struct worker *workers = calloc(n, sizeof(*workers));
    int rc = workers ? run(&work, workers, n, counts, err) : st_nomem(err, "the rings");

    free(workers);
    st_vec_free(&work.rings);
    st_vec_free(&work.tasks);
    return rc;
}
