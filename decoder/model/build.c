/* Calls of the branches that waited, by several threads at once: each makes those of some target threads,
 * whose runs it takes in the order of time. */
#include "base/progress.h"
#include "decoder/model/model_impl.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { MOST = 64 /* threads */ };

struct builder {
    struct dec_model *m;

    struct model_view view;

    const uint32_t *owners; /* by the index of a target thread: whose it is */

    uint32_t number; /* its own */

    atomic_size_t *next; /* target thread whose stack is to be ended */

    pthread_t thread;

    bool started;

    int rc;

    struct st_error err;
};

static int by_time(const void *a, const void *b)
{
    const struct model_run *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* A target thread with its branches. */
struct load {
    size_t index, events;
};

static int by_events(const void *a, const void *b)
{
    const struct load *x = a, *y = b;

    if (x->events != y->events)
        return x->events > y->events ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The target threads with most branches first, each to the builder that has least. */
static int share_out(const struct dec_model *m, unsigned n, uint32_t *owners)
{
    struct load *loads = calloc(m->nthreads + 1, sizeof(*loads));
    size_t sums[MOST] = {0};

    if (!loads)
        return -1;
    for (size_t i = 0; i < m->nthreads; i++)
        loads[i].index = i;
    for (size_t i = 0; i < m->runs.n; i++)
        loads[m->runs.at[i].thread->thread->index].events += m->runs.at[i].n;
    qsort(loads, m->nthreads, sizeof(*loads), by_events);
    for (size_t i = 0; i < m->nthreads; i++) {
        uint32_t least = 0;

        for (uint32_t k = 1; k < n; k++)
            if (sums[k] < sums[least])
                least = k;
        owners[loads[i].index] = least;
        sums[least] += loads[i].events;
    }
    free(loads);
    return 0;
}

static int build_runs(struct builder *b, struct st_spool_reader *readers)
{
    struct dec_model *m = b->m;
    int rc = 0;

    for (size_t i = 0; i < m->runs.n && !rc; i++) {
        const struct model_run *run = &m->runs.at[i];

        if (!run->n || b->owners[run->thread->thread->index] != b->number)
            continue;
        run->thread->view = &b->view;
        rc = model_build_run(run, &readers[run->ring], &b->err);
        st_progress_add(1);
    }
    return rc;
}

static int read_runs(struct builder *b)
{
    struct dec_model *m = b->m;
    struct st_spool_reader *readers;
    int rc;

    if (!m->runs.n)
        return 0;
    readers = calloc(m->sb->rings.n + 1, sizeof(*readers));
    if (!readers)
        return st_nomem(&b->err, "the branches of the CPUs");
    for (size_t i = 0; i < m->sb->rings.n; i++)
        readers[i].spool = &m->rings[i].events;
    rc = build_runs(b, readers);
    for (size_t i = 0; i < m->sb->rings.n; i++)
        st_spool_close(&readers[i]);
    free(readers);
    return rc;
}

/* Ends the stack of one target thread after the other. */
static int end_stacks(struct builder *b)
{
    struct dec_model *m = b->m;
    int rc = 0;

    for (size_t i; !rc && (i = atomic_fetch_add(b->next, 1)) < m->nthreads;) {
        struct model_thread *t = m->threads[i];
        uint64_t last = m->sb->last;

        if (!t || t->sampled)
            continue;
        t->view = &b->view;
        rc = dec_stack_finish(t->stack, t->thread->end < last ? t->thread->end : last, &b->err);
        t->view = &m->view;
    }
    return rc;
}

static void *read_in_thread(void *arg)
{
    struct builder *b = arg;

    b->rc = read_runs(b);
    return NULL;
}

static void *end_in_thread(void *arg)
{
    struct builder *b = arg;

    b->rc = end_stacks(b);
    return NULL;
}

/* One step of all builders, the first in this thread. What the first of those that failed returned. */
static int run_all(struct builder *builders, unsigned n, void *(*step)(void *), struct st_error *err)
{
    int rc = 0;

    for (unsigned i = n; i-- > 0;) { /* also those for which there is no thread */
        struct builder *b = &builders[i];

        b->started = i && pthread_create(&b->thread, NULL, step, b) == 0;
        if (!b->started)
            step(b);
    }
    for (unsigned i = 0; i < n; i++) {
        if (builders[i].started)
            pthread_join(builders[i].thread, NULL);
        if (rc || !builders[i].rc)
            continue;
        rc = builders[i].rc;
        if (err)
            *err = builders[i].err;
    }
    return rc;
}

static int build_by(struct dec_model *m, struct builder *builders, unsigned n, uint32_t *owners,
                    struct st_error *err)
{
    atomic_size_t next = 0;
    int rc = share_out(m, n, owners) ? st_nomem(err, "the branches of the CPUs") : 0;

    for (unsigned i = 0; i < n && !rc; i++) {
        builders[i] = (struct builder){.m = m, .owners = owners, .number = i, .next = &next};
        rc = model_view_new(m, &builders[i].view, err);
    }
    if (!rc)
        rc = run_all(builders, n, read_in_thread, err);
    for (size_t i = 0; i < m->sb->rings.n; i++)
        st_spool_clear(&m->rings[i].events);
    if (!rc)
        rc = run_all(builders, n, end_in_thread, err);
    for (unsigned i = 0; i < n; i++)
        model_view_free(&builders[i].view);
    return rc;
}

int model_build(struct dec_model *m, struct st_error *err)
{
    unsigned n = m->inlines ? 1 : m->workers < MOST ? m->workers : MOST;
    struct builder *builders = calloc(n, sizeof(*builders));
    uint32_t *owners = calloc(m->nthreads + 1, sizeof(*owners));
    int rc;

    if (m->runs.n) {
        qsort(m->runs.at, m->runs.n, sizeof(m->runs.at[0]), by_time);
        st_progress("making calls", m->runs.n);
    }
    rc = builders && owners ? build_by(m, builders, n, owners, err)
                            : st_nomem(err, "the branches of the CPUs");
    free(builders);
    free(owners);
    return rc;
}
