/* Calls -> the trees of the table and its indexes. */
#include "tracedb/bulk.h"

#include "base/progress.h"
#include "tracedb/tiles.h"
#include "tracedb/tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_WORKERS = 8,
    RECORD = sizeof(struct tdb_record) + 16,
    ENTRIES = 3 /* a call, about: in the table and two indexes; tiles are few */
};

struct bulk;

/* Adds the entries of one tree. */
typedef int fill_fn(const struct bulk *b, struct tdb_tree *tree, struct st_error *err);

struct bulk {
    struct tdb_pages pages;

    const struct tdb_roots *roots;

    const tdb_threads *threads;

    size_t calls;

    atomic_size_t next; /* job */
};

static int add(struct tdb_tree *tree, int64_t rowid, const struct tdb_record *r, struct st_error *err)
{
    uint8_t record[RECORD];

    return tdb_tree_add(tree, rowid, record, tdb_record_put(r, 0, record), err);
}

static int64_t start_of(const struct tdb_thread *t, size_t i)
{
    return (int64_t)(t->calls[i].start - t->origin);
}

static int add_call(const struct tdb_thread *t, size_t i, struct tdb_tree *tree, struct st_error *err)
{
    const struct tdb_span *c = &t->calls[i];
    struct tdb_record r;

    r.ntypes = r.nvalues = 0;
    tdb_record_null(&r); /* the rowid stands for it */
    tdb_record_number(&r, t->id);
    tdb_record_number(&r, (int64_t)c->symbol + 1);
    if (c->parent)
        tdb_record_number(&r, t->before + c->parent);
    else
        tdb_record_null(&r);
    tdb_record_number(&r, c->depth);
    tdb_record_number(&r, start_of(t, i));
    tdb_record_number(&r, (int64_t)c->duration);
    tdb_record_number(&r, (int64_t)c->self);
    tdb_record_number(&r, c->flags);
    if (t->work && (t->work[i].instructions || t->work[i].cycles)) { /* columns that a record ends before are
                                                                        NULL (SQLite, Record Format) */
        tdb_record_number(&r, (int64_t)t->work[i].instructions);
        tdb_record_number(&r, (int64_t)t->work[i].cycles);
    }
    return add(tree, t->before + (int64_t)i + 1, &r, err);
}

static int fill_calls(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n && !rc; i++)
        for (size_t j = 0; j < b->threads->at[i].n && !rc; j++)
            rc = add_call(&b->threads->at[i], j, tree, err);
    return rc;
}

static int add_time(struct tdb_tree *tree, int64_t thread, int64_t start, int64_t id, struct st_error *err)
{
    struct tdb_record r;

    r.ntypes = r.nvalues = 0;
    tdb_record_number(&r, thread);
    tdb_record_number(&r, start);
    tdb_record_number(&r, id);
    return add(tree, 0, &r, err);
}

/* The calls stand in the order of (thread, start) themselves: some of them tell where to look. */
static int fill_times(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n && !rc; i++) {
        const struct tdb_thread *t = &b->threads->at[i];

        if (t->n)
            rc = add_time(tree, t->id, INT64_MIN, t->before + 1, err);
        for (size_t j = 0; j < t->n && !rc; j += TDB_TIME_CALLS)
            rc = add_time(tree, t->id, start_of(t, j), t->before + (int64_t)j + 1, err);
        if (t->n && !rc)
            rc = add_time(tree, t->id, INT64_MAX, t->before + (int64_t)t->n + 1, err);
    }
    return rc;
}

/* An entry (key, id); key 0: NULL. */
static int add_pair(struct tdb_tree *tree, int64_t key, int64_t id, struct st_error *err)
{
    struct tdb_record r;

    r.ntypes = r.nvalues = 0;
    if (key)
        tdb_record_number(&r, key);
    else
        tdb_record_null(&r);
    tdb_record_number(&r, id);
    return add(tree, 0, &r, err);
}

/* Where the entries of each key begin, from how many there are. */
static void sum_up(size_t *counts, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        size_t count = counts[i];

        counts[i] = sum;
        sum += count;
    }
}

static size_t count_symbols(const struct bulk *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->threads->n; i++)
        for (size_t j = 0; j < b->threads->at[i].n; j++)
            if (b->threads->at[i].calls[j].symbol >= n)
                n = (size_t)b->threads->at[i].calls[j].symbol + 1;
    return n;
}

/* The ids of all calls by symbol, each symbol's ascending: sorted by counting. */
static void sort_by_symbol(const struct bulk *b, size_t *at, size_t nsymbols, int64_t *ids)
{
    for (size_t i = 0; i < b->threads->n; i++)
        for (size_t j = 0; j < b->threads->at[i].n; j++)
            at[b->threads->at[i].calls[j].symbol]++;
    sum_up(at, nsymbols);
    for (size_t i = 0; i < b->threads->n; i++)
        for (size_t j = 0; j < b->threads->at[i].n; j++)
            ids[at[b->threads->at[i].calls[j].symbol]++] = b->threads->at[i].before + (int64_t)j + 1;
}

static int fill_symbols(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    size_t n = count_symbols(b), done = 0;
    size_t *at = calloc(n + 1, sizeof(*at));
    int64_t *ids = malloc((b->calls + 1) * sizeof(*ids));
    int rc = at && ids ? 0 : st_nomem(err, "the index of functions");

    if (!rc)
        sort_by_symbol(b, at, n, ids);
    for (size_t i = 0; i < n && !rc; i++) /* each place is now the end of its symbol's */
        for (; done < at[i] && !rc; done++)
            rc = add_pair(tree, (int64_t)i + 1, ids[done], err);
    free(at);
    free(ids);
    return rc;
}

/* The children of a thread's calls by parent: sorted by counting. at[i + 1] is the end of those of call i. */
static int add_children(const struct tdb_thread *t, size_t *at, uint32_t *children, struct tdb_tree *tree,
                        struct st_error *err)
{
    size_t done;
    int rc = 0;

    memset(at, 0, (t->n + 1) * sizeof(*at));
    for (size_t i = 0; i < t->n; i++)
        at[t->calls[i].parent]++;
    done = at[0]; /* those without a parent */
    sum_up(at, t->n + 1);
    for (size_t i = 0; i < t->n; i++)
        children[at[t->calls[i].parent]++] = (uint32_t)i + 1;
    for (size_t i = 1; i <= t->n && !rc; i++)
        for (; done < at[i] && !rc; done++)
            rc = add_pair(tree, t->before + (int64_t)i, t->before + children[done], err);
    return rc;
}

static int add_outermost(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n; i++)
        for (size_t j = 0; j < b->threads->at[i].n && !rc; j++)
            if (!b->threads->at[i].calls[j].parent)
                rc = add_pair(tree, 0, b->threads->at[i].before + (int64_t)j + 1, err);
    return rc;
}

static int fill_parents(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    size_t *at, most = 0;
    uint32_t *children;
    int rc;

    for (size_t i = 0; i < b->threads->n; i++)
        most = b->threads->at[i].n > most ? b->threads->at[i].n : most;
    at = malloc((most + 1) * sizeof(*at));
    children = malloc((most + 1) * sizeof(*children));
    rc = at && children ? add_outermost(b, tree, err) : st_nomem(err, "the index of callers");
    for (size_t i = 0; i < b->threads->n && !rc; i++)
        rc = add_children(&b->threads->at[i], at, children, tree, err);
    free(at);
    free(children);
    return rc;
}

static int fill_tiles(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n && !rc; i++)
        rc = tdb_build_tiles(&b->threads->at[i], tree, err);
    return rc;
}

/* ---- jobs ---- */

/* The longest first. */
static const struct job {
    fill_fn *fill;

    size_t root; /* its place in tdb_roots */

    bool index;
} jobs[] = {
    {fill_tiles, offsetof(struct tdb_roots, tile), true},
    {fill_calls, offsetof(struct tdb_roots, call), false},
    {fill_parents, offsetof(struct tdb_roots, parent), true},
    {fill_symbols, offsetof(struct tdb_roots, symbol), true},
    {fill_times, offsetof(struct tdb_roots, time), true},
};

enum { JOBS = sizeof(jobs) / sizeof(jobs[0]) };

struct worker {
    pthread_t thread;

    bool started;

    struct bulk *bulk;

    int rc;

    struct st_error err;
};

static int run_job(struct bulk *b, const struct job *job, struct st_error *err)
{
    uint32_t root = *(const uint32_t *)(const void *)((const char *)b->roots + job->root);
    struct tdb_tree *tree;
    int rc;

    if (!root)
        return 0;
    rc = tdb_tree_open(&b->pages, root, job->index, &tree, err);
    if (rc)
        return rc;
    rc = job->fill(b, tree, err);
    if (!rc)
        return tdb_tree_close(tree, err);
    tdb_tree_abort(tree);
    return rc;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    size_t i;

    while (!w->rc && (i = atomic_fetch_add(&w->bulk->next, 1)) < JOBS)
        w->rc = run_job(w->bulk, &jobs[i], &w->err);
    if (w->rc) /* nobody goes on with what will be thrown away */
        atomic_store(&w->bulk->next, JOBS);
    return NULL;
}

static int run_jobs(struct bulk *b, unsigned n, struct st_error *err)
{
    struct worker workers[MOST_WORKERS] = {0};
    int rc = 0;

    n = n < 1 ? 1 : n > MOST_WORKERS ? MOST_WORKERS : n;
    for (unsigned i = 0; i < n; i++)
        workers[i].bulk = b;
    for (unsigned i = 1; i < n; i++)
        workers[i].started = !pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    work(&workers[0]);
    for (unsigned i = 1; i < n; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < n && !rc; i++)
        if (workers[i].rc) {
            rc = workers[i].rc;
            *err = workers[i].err;
        }
    return rc;
}

int tdb_write_bulk(int fd, const char *path, const struct tdb_roots *roots, const tdb_threads *threads,
                   unsigned workers, struct st_error *err)
{
    struct bulk b = {.roots = roots, .threads = threads};
    int rc = tdb_pages_open(&b.pages, fd, path, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < threads->n; i++)
        b.calls += threads->at[i].n;
    st_progress("writing", b.calls * ENTRIES);
    rc = run_jobs(&b, workers, err);
    if (!rc)
        rc = tdb_pages_close(&b.pages, err);
    tdb_pages_free(&b.pages);
    return rc;
}
