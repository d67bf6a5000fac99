/* A row a thread: how many calls and from when to when; a row a function: how many calls and how long. */
#include "tracedb/summary.h"

#include "tracedb/calls.h"
#include "tracedb/tiles.h"

#include <stdlib.h>

static int failed(sqlite3 *db, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot build the summaries: %s", sqlite3_errmsg(db));
}

/* Takes one row. 0, or st_code. */
typedef int row_fn(sqlite3_stmt *stmt, void *ctx, struct st_error *err);

static int each_row(sqlite3 *db, const char *sql, row_fn *fn, void *ctx, struct st_error *err)
{
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return failed(db, err);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = fn(stmt, ctx, err);
    if (!rc && step != SQLITE_DONE)
        rc = failed(db, err);
    sqlite3_finalize(stmt);
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const struct tdb_thread *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static struct tdb_thread *find(const tdb_threads *threads, size_t n, int64_t id)
{
    struct tdb_thread key = {.id = id};

    return n ? bsearch(&key, threads->at, n, sizeof(key), by_id) : NULL;
}

struct listing {
    tdb_threads *threads;

    size_t known; /* how many there were before */
};

static int add_thread(sqlite3_stmt *stmt, void *ctx, struct st_error *err)
{
    struct listing *l = ctx;
    int64_t id = sqlite3_column_int64(stmt, 0);

    if (find(l->threads, l->known, id))
        return 0;
    return st_vec_push(l->threads, (struct tdb_thread){.id = id}) ? st_nomem(err, "the summaries") : 0;
}

static struct tdb_stretch stretch_of(sqlite3_stmt *stmt)
{
    return (struct tdb_stretch){.id = sqlite3_column_int64(stmt, 1),
                                .start = sqlite3_column_int64(stmt, 2),
                                .end = sqlite3_column_int64(stmt, 3),
                                .flags = (uint32_t)sqlite3_column_int64(stmt, 4)};
}

static int add_offcpu(sqlite3_stmt *stmt, void *ctx, struct st_error *err)
{
    const tdb_threads *threads = ctx;
    struct tdb_thread *t = find(threads, threads->n, sqlite3_column_int64(stmt, 0));

    return t && st_vec_push(&t->offcpu, stretch_of(stmt)) ? st_nomem(err, "the summaries") : 0;
}

static int add_slice(sqlite3_stmt *stmt, void *ctx, struct st_error *err)
{
    const tdb_threads *threads = ctx;
    struct tdb_thread *t = find(threads, threads->n, sqlite3_column_int64(stmt, 0));

    return t && st_vec_push(&t->slices, stretch_of(stmt)) ? st_nomem(err, "the summaries") : 0;
}

static int complete(sqlite3 *db, tdb_threads *threads, struct st_error *err)
{
    struct listing l = {threads, threads->n};
    int rc = each_row(db, "SELECT id FROM thread", add_thread, &l, err);

    if (!rc && threads->n)
        qsort(threads->at, threads->n, sizeof(threads->at[0]), by_id);
    if (!rc)
        rc = each_row(
            db,
            "SELECT thread_id, id, start_ns, end_ns, preempted FROM offcpu ORDER BY thread_id, start_ns, id",
            add_offcpu, threads, err);
    if (!rc)
        rc = each_row(db,
                      "SELECT thread_id, id, start_ns, end_ns, 0 FROM slice ORDER BY thread_id, start_ns, id",
                      add_slice, threads, err);
    return rc;
}

/* What a row of `summary` tells. */
struct reach {
    int64_t start, end; /* start -1: nothing is known */

    int64_t depths;
};

static void reach_to(struct reach *r, int64_t start, int64_t end)
{
    if (r->start < 0 || start < r->start)
        r->start = start;
    if (end > r->end)
        r->end = end;
}

static void reach_stretches(struct reach *r, const struct tdb_stretch *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t start = at[i].start < 0 ? 0 : at[i].start;

        reach_to(r, start, at[i].end > start ? at[i].end : start);
    }
}

static struct reach reach_of(const struct tdb_thread *t)
{
    struct reach r = {.start = -1};

    if (t->n) {
        reach_to(&r, (int64_t)(t->calls->first.start - t->origin), (int64_t)(t->calls->end - t->origin));
        r.depths = t->calls->depths;
    }
    reach_stretches(&r, t->offcpu.at, t->offcpu.n);
    reach_stretches(&r, t->slices.at, t->slices.n);
    return r;
}

static int put_summary(sqlite3 *db, sqlite3_stmt *insert, const struct tdb_thread *t, struct st_error *err)
{
    struct reach r = reach_of(t);
    int rc;

    sqlite3_clear_bindings(insert);
    sqlite3_bind_int64(insert, 1, t->id);
    sqlite3_bind_int64(insert, 2, (int64_t)t->n);
    sqlite3_bind_int64(insert, 3, r.depths);
    if (r.start >= 0) {
        sqlite3_bind_int64(insert, 4, r.start);
        sqlite3_bind_int64(insert, 5, r.end);
    }
    if (t->levels) {
        sqlite3_bind_int(insert, 6, t->first_level);
        sqlite3_bind_int(insert, 7, t->first_level + (t->levels - 1) * TDB_LEVEL_STEP);
    }
    rc = sqlite3_step(insert) == SQLITE_DONE ? 0 : failed(db, err);
    sqlite3_reset(insert);
    return rc;
}

/* The latest start of a call, or end of a slice. */
static int64_t end_of_trace(const tdb_threads *threads)
{
    int64_t end = 0;

    for (size_t i = 0; i < threads->n; i++) {
        const struct tdb_thread *t = &threads->at[i];
        int64_t call = t->n ? (int64_t)(t->calls->last - t->origin) : 0;
        int64_t slice = t->slices.n ? t->slices.at[t->slices.n - 1].end : 0;

        end = call > end ? call : end;
        end = slice > end ? slice : end;
    }
    return end;
}

static int put_summaries(sqlite3 *db, tdb_threads *threads, bool tiles, struct st_error *err)
{
    sqlite3_stmt *insert;
    int64_t end;
    int rc = 0;

    if (sqlite3_prepare_v2(db, "INSERT INTO summary VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", -1, &insert, NULL))
        return failed(db, err);
    end = end_of_trace(threads);
    for (size_t i = 0; i < threads->n && !rc; i++) {
        if (tiles)
            rc = tdb_choose_levels(&threads->at[i], end, err);
        if (!rc)
            rc = put_summary(db, insert, &threads->at[i], err);
    }
    sqlite3_finalize(insert);
    return rc;
}

/* ---- functions ---- */

/* One function's row of `function_summary`. */
struct function {
    int64_t calls, total, self, least, most;
};

typedef ST_VEC(struct function) functions; /* by the id of the symbol, less one */

/* Durations of a damaged trace may be of any length. */
static int64_t sum(int64_t a, int64_t b)
{
    int64_t s;

    return __builtin_add_overflow(a, b, &s) ? b < 0 ? INT64_MIN : INT64_MAX : s;
}

static int count_call(functions *all, const struct tdb_span *c)
{
    size_t wanted = (size_t)c->symbol + 1;
    int64_t ns = (int64_t)c->duration;
    struct function *f;

    if (wanted > all->n && st_vec_reserve(all, wanted - all->n))
        return -1;
    while (all->n < wanted)
        all->at[all->n++] = (struct function){.least = INT64_MAX};
    f = &all->at[c->symbol];
    f->calls++;
    f->self = sum(f->self, (int64_t)c->self);
    f->total = sum(f->total, c->flags & TDB_CALL_RECURSIVE ? 0 : ns);
    f->least = ns < f->least ? ns : f->least;
    f->most = ns > f->most ? ns : f->most;
    return 0;
}

static int count_thread(functions *all, const struct tdb_thread *t, struct st_error *err)
{
    struct tdb_calls_reader r;
    struct tdb_call c = {0};
    int rc = tdb_calls_open(&r, t->calls, 0, err);

    while (!rc && (rc = tdb_calls_next(&r, &c, err)) > 0)
        rc = count_call(all, &c.span) ? st_nomem(err, "the summaries") : 0;
    tdb_calls_close(&r);
    return rc;
}

static int count_calls(functions *all, const tdb_threads *threads, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < threads->n && !rc; i++)
        if (threads->at[i].n)
            rc = count_thread(all, &threads->at[i], err);
    return rc;
}

static int put_functions(sqlite3 *db, const functions *all, struct st_error *err)
{
    sqlite3_stmt *insert;
    int rc = 0;

    if (sqlite3_prepare_v2(db, "INSERT INTO function_summary VALUES (?1, ?2, ?3, ?4, ?5, ?6)", -1, &insert,
                           NULL))
        return failed(db, err);
    for (size_t i = 0; i < all->n && !rc; i++) {
        const struct function *f = &all->at[i];
        const int64_t values[] = {(int64_t)i + 1, f->calls, f->total, f->self, f->least, f->most};

        if (!f->calls)
            continue;
        for (int k = 0; k < 6; k++)
            sqlite3_bind_int64(insert, k + 1, values[k]);
        rc = sqlite3_step(insert) == SQLITE_DONE ? 0 : failed(db, err);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    return rc;
}

static int summarize_functions(sqlite3 *db, const tdb_threads *threads, struct st_error *err)
{
    functions all = {0};
    int rc = count_calls(&all, threads, err);

    if (!rc)
        rc = put_functions(db, &all, err);
    st_vec_free(&all);
    return rc;
}

int tdb_summarize(sqlite3 *db, tdb_threads *threads, bool bare, struct st_error *err)
{
    int rc = complete(db, threads, err);

    if (!rc)
        rc = put_summaries(db, threads, !bare, err);
    if (!rc && !bare)
        rc = summarize_functions(db, threads, err);
    return rc;
}

static int take_root(sqlite3_stmt *stmt, void *ctx, struct st_error *err)
{
    *(uint32_t *)ctx = (uint32_t)sqlite3_column_int64(stmt, 0);
    (void)err;
    return 0;
}

int tdb_find_roots(sqlite3 *db, struct tdb_roots *roots, struct st_error *err)
{
    static const char *const names[] = {"call", "call_time", "call_symbol", "call_parent", "tile"};
    uint32_t *const to[] = {&roots->call, &roots->time, &roots->symbol, &roots->parent, &roots->tile};
    char sql[96];
    int rc = 0;

    *roots = (struct tdb_roots){0};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !rc; i++) {
        sqlite3_snprintf(sizeof(sql), sql, "SELECT rootpage FROM sqlite_schema WHERE name = %Q", names[i]);
        rc = each_row(db, sql, take_root, to[i], err);
    }
    return rc;
}
