/* Calls -> the trees of the table and its indexes. */
#include "tracedb/bulk.h"

#include "base/progress.h"
#include "tracedb/calls.h"
#include "tracedb/tile_tree.h"
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

    size_t sorts; /* entries at once */

    struct tdb_tile_tree *tiles; /* NULL: they are not written */

    atomic_size_t next; /* job */
};

/* Takes one call, the `index`th of its thread. 0 or st_code. */
typedef int call_fn(void *ctx, const struct tdb_thread *t, size_t index, const struct tdb_call *c,
                    struct st_error *err);

static inline int each_of(const struct tdb_thread *t, size_t from, call_fn *fn, void *ctx,
                          struct st_error *err)
{
    struct tdb_calls_reader r;
    struct tdb_call c = {0};
    int rc, more = 0;

    if (from >= t->n)
        return 0;
    rc = tdb_calls_open(&r, t->calls, from, err);
    for (size_t i = from; !rc && (more = tdb_calls_next(&r, &c, err)) > 0; i++)
        rc = fn(ctx, t, i, &c, err);
    tdb_calls_close(&r);
    return rc ? rc : more;
}

static inline int each_call(const struct bulk *b, call_fn *fn, void *ctx, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n && !rc; i++)
        rc = each_of(&b->threads->at[i], 0, fn, ctx, err);
    return rc;
}

static int add(struct tdb_tree *tree, int64_t rowid, const struct tdb_record *r, struct st_error *err)
{
    uint8_t record[RECORD];

    return tdb_tree_add(tree, rowid, record, tdb_record_put(r, 0, record), err);
}

static int64_t start_of(const struct tdb_thread *t, const struct tdb_call *c)
{
    return (int64_t)(c->span.start - t->origin);
}

static int add_call(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *call,
                    struct st_error *err)
{
    const struct tdb_span *c = &call->span;
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
    tdb_record_number(&r, start_of(t, call));
    tdb_record_number(&r, (int64_t)c->duration);
    tdb_record_number(&r, (int64_t)c->self);
    tdb_record_number(&r, c->flags);
    if (call->work.instructions || call->work.cycles) { /* columns that a record ends before are NULL (SQLite,
                                                           Record Format) */
        tdb_record_number(&r, (int64_t)call->work.instructions);
        tdb_record_number(&r, (int64_t)call->work.cycles);
    }
    return add(ctx, t->before + (int64_t)i + 1, &r, err);
}

static int fill_calls(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    return each_call(b, add_call, tree, err);
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

static int add_start(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                     struct st_error *err)
{
    return i % TDB_TIME_CALLS ? 0 : add_time(ctx, t->id, start_of(t, c), t->before + (int64_t)i + 1, err);
}

/* The calls stand in the order of (thread, start) themselves: some of them tell where to look. */
static int fill_times(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->threads->n && !rc; i++) {
        const struct tdb_thread *t = &b->threads->at[i];

        if (t->n)
            rc = add_time(tree, t->id, INT64_MIN, t->before + 1, err);
        if (!rc)
            rc = each_of(t, 0, add_start, tree, err);
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

/* ---- indexes: sorted by counting, as many keys at once as there is memory for ---- */

/* The entries of the keys [first, end). */
struct sort {
    size_t first, end;

    size_t *at; /* by key: how many entries it has, then where the next one goes */

    int64_t *ids; /* by key, each key's ascending */

    struct tdb_tree *tree; /* of a key that alone has too many, for they come in order */
};

/* As many keys as have room together, one at least. Their counts become places. Returns the entries. */
static size_t choose_keys(struct sort *s, size_t first, size_t nkeys, size_t most)
{
    size_t sum = 0;

    s->first = s->end = first;
    while (s->end < nkeys && (s->end == first || sum + s->at[s->end] <= most)) {
        size_t n = s->at[s->end];

        s->at[s->end++] = sum;
        sum += n;
    }
    return sum;
}

/* Each place is now the end of its key's. */
static int put_pairs(const struct sort *s, int64_t key_of_0, struct tdb_tree *tree, struct st_error *err)
{
    size_t done = 0;
    int rc = 0;

    for (size_t i = s->first; i < s->end; i++)
        for (; done < s->at[i] && !rc; done++)
            rc = add_pair(tree, key_of_0 + (int64_t)i, s->ids[done], err);
    return rc;
}

static int count_symbol(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                        struct st_error *err)
{
    struct sort *s = ctx;

    (void)t;
    (void)i;
    (void)err;
    s->at[c->span.symbol]++;
    return 0;
}

static int sort_symbol(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                       struct st_error *err)
{
    struct sort *s = ctx;
    int64_t id = t->before + (int64_t)i + 1;

    if (c->span.symbol < s->first || c->span.symbol >= s->end)
        return 0;
    if (!s->ids)
        return add_pair(s->tree, (int64_t)c->span.symbol + 1, id, err);
    s->ids[s->at[c->span.symbol]++] = id;
    return 0;
}

static int sort_symbols(const struct bulk *b, struct sort *s, size_t first, size_t n, struct st_error *err)
{
    size_t entries = choose_keys(s, first, n, b->sorts);
    int rc = 0;

    if (!entries)
        return 0;
    if (entries <= b->sorts) {
        s->ids = malloc(entries * sizeof(*s->ids));
        if (!s->ids)
            return st_nomem(err, "the index of functions");
    }
    rc = each_call(b, sort_symbol, s, err);
    if (!rc && s->ids)
        rc = put_pairs(s, 1, s->tree, err);
    free(s->ids);
    s->ids = NULL;
    return rc;
}

static int fill_symbols(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    struct sort s = {.tree = tree};
    size_t n = 0;
    int rc;

    for (size_t i = 0; i < b->threads->n; i++)
        if (b->threads->at[i].calls && b->threads->at[i].calls->symbols > n)
            n = b->threads->at[i].calls->symbols;
    s.at = calloc(n + 1, sizeof(*s.at));
    rc = s.at ? each_call(b, count_symbol, &s, err) : st_nomem(err, "the index of functions");
    while (s.end < n && !rc)
        rc = sort_symbols(b, &s, s.end, n, err);
    free(s.at);
    return rc;
}

/* The children of a thread's calls [first, end); a call is 1 + its index, and has none before itself. */
struct family {
    struct sort sort; /* its keys are calls less `first` */

    size_t first, most; /* the first call, how many at once */
};

static int count_child(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                       struct st_error *err)
{
    struct family *f = ctx;
    size_t key = c->span.parent - f->first; /* those before it wrap around */

    (void)t;
    (void)i;
    (void)err;
    if (key < f->most)
        f->sort.at[key]++;
    return 0;
}

static int sort_child(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                      struct st_error *err)
{
    struct family *f = ctx;
    size_t key = c->span.parent - f->first;
    int64_t id = t->before + (int64_t)i + 1;

    if (key >= f->sort.end)
        return 0;
    if (!f->sort.ids)
        return add_pair(f->sort.tree, t->before + c->span.parent, id, err);
    f->sort.ids[f->sort.at[key]++] = id;
    return 0;
}

/* Those of calls from `first` on. `*end` is set to the one behind the last of them. */
static int add_children(const struct bulk *b, const struct tdb_thread *t, size_t first, struct family *f,
                        size_t *end, struct st_error *err)
{
    size_t entries, left = t->n + 1 - first;
    int rc;

    f->most = left < b->sorts ? left : b->sorts;
    f->first = first;
    memset(f->sort.at, 0, f->most * sizeof(*f->sort.at));
    rc = each_of(t, first, count_child, f, err);
    if (rc)
        return rc;
    entries = choose_keys(&f->sort, 0, f->most, b->sorts);
    *end = first + f->sort.end;
    if (!entries)
        return 0;
    if (entries <= b->sorts) {
        f->sort.ids = malloc(entries * sizeof(*f->sort.ids));
        if (!f->sort.ids)
            return st_nomem(err, "the index of callers");
    }
    rc = each_of(t, first, sort_child, f, err);
    if (!rc && f->sort.ids)
        rc = put_pairs(&f->sort, t->before + (int64_t)first, f->sort.tree, err);
    free(f->sort.ids);
    f->sort.ids = NULL;
    return rc;
}

static int add_outermost(void *ctx, const struct tdb_thread *t, size_t i, const struct tdb_call *c,
                         struct st_error *err)
{
    return c->span.parent ? 0 : add_pair(ctx, 0, t->before + (int64_t)i + 1, err);
}

static int fill_parents(const struct bulk *b, struct tdb_tree *tree, struct st_error *err)
{
    struct family f = {.sort.tree = tree};
    size_t most = 0;
    int rc;

    for (size_t i = 0; i < b->threads->n; i++)
        most = b->threads->at[i].n > most ? b->threads->at[i].n : most;
    most = most < b->sorts ? most : b->sorts;
    f.sort.at = malloc((most + 1) * sizeof(*f.sort.at));
    rc = f.sort.at ? each_call(b, add_outermost, tree, err) : st_nomem(err, "the index of callers");
    for (size_t i = 0; i < b->threads->n && !rc; i++)
        for (size_t first = 1; first <= b->threads->at[i].n && !rc;)
            rc = add_children(b, &b->threads->at[i], first, &f, &first, err);
    free(f.sort.at);
    return rc;
}

/* ---- jobs ---- */

/* The longest first. The tiles come behind them: all workers share those. */
static const struct job {
    fill_fn *fill;

    size_t root; /* its place in tdb_roots */

    bool index;
} jobs[] = {
    {fill_symbols, offsetof(struct tdb_roots, symbol), true},
    {fill_parents, offsetof(struct tdb_roots, parent), true},
    {fill_calls, offsetof(struct tdb_roots, call), false},
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
    if (!w->rc && w->bulk->tiles)
        w->rc = tdb_tile_tree_work(w->bulk->tiles, &w->err);
    if (w->rc) /* nobody goes on with what will be thrown away */
        atomic_store(&w->bulk->next, JOBS);
    return NULL;
}

static int run_jobs(struct bulk *b, unsigned n, struct st_error *err)
{
    struct worker workers[MOST_WORKERS] = {0};
    int rc = 0;

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

/* The jobs, and the tree of tiles beside them. */
static int run_with_tiles(struct bulk *b, unsigned n, struct st_error *err)
{
    struct tdb_tree *tree;
    int rc = tdb_tree_open(&b->pages, b->roots->tile, true, &tree, err);

    if (rc)
        return rc;
    rc = tdb_tile_tree_new(b->threads, tree, n, b->sorts / (2 * (size_t)n + 1), &b->tiles, err);
    if (!rc)
        rc = run_jobs(b, n, err);
    tdb_tile_tree_free(b->tiles);
    if (!rc)
        return tdb_tree_close(tree, err);
    tdb_tree_abort(tree);
    return rc;
}

int tdb_write_bulk(int fd, const char *path, const struct tdb_roots *roots, const tdb_threads *threads,
                   unsigned workers, size_t sorts, struct st_error *err)
{
    struct bulk b = {.roots = roots, .threads = threads, .sorts = sorts};
    uint64_t calls = 0;
    int rc = tdb_pages_open(&b.pages, fd, path, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < threads->n; i++)
        calls += threads->at[i].n;
    st_progress("writing", calls * ENTRIES);
    workers = workers < 1 ? 1 : workers > MOST_WORKERS ? MOST_WORKERS : workers;
    rc = roots->tile ? run_with_tiles(&b, workers, err) : run_jobs(&b, workers, err);
    if (!rc)
        rc = tdb_pages_close(&b.pages, err);
    tdb_pages_free(&b.pages);
    return rc;
}
