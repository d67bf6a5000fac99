/* The walk over a trace: calls and off-CPU spans of each thread in the order of time, then what is not of
 * calls. */
#include "base/progress.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/export/export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls that are open at ?2 (the last call that began before it and its ancestors), then those that begin in
 * [?2, ?3).
 */
#define LAST_BEFORE                                                                                          \
    "SELECT id, parent_id FROM call WHERE id >= " TDB_FIRST_ID("?1", "?2") " AND id < " TDB_END_ID(          \
        "?1", "?2") " AND thread_id = ?1 AND start_ns < ?2 ORDER BY start_ns DESC, id DESC LIMIT 1"
static const char open_sql[] =
    "WITH RECURSIVE open(id, up) AS (SELECT * FROM (" LAST_BEFORE ") "
    "UNION SELECT c.id, c.parent_id FROM open JOIN call c ON c.id = open.up) "
    "SELECT c.id, c.start_ns, c.start_ns + c.duration_ns, c.depth, c.flags, c.symbol_id "
    "FROM open JOIN call c ON c.id = open.id WHERE c.start_ns + c.duration_ns > ?2 ORDER BY c.depth";
#define BEGIN                                                                                                \
    "SELECT id, start_ns, start_ns + duration_ns, depth, flags, symbol_id FROM call WHERE id "               \
    ">= " TDB_FIRST_ID("?1", "?2") " AND id < " TDB_END_ID(                                                  \
        "?1", "?3") " AND thread_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 ORDER BY "
static const char off_sql[] =
    "SELECT id, start_ns, end_ns, preempted FROM offcpu WHERE thread_id = ?1 AND start_ns < ?3 "
    "AND end_ns > ?2 ORDER BY start_ns, id";

/* The walk of one thread. */
struct walk {
    struct vw_export *x;

    const struct vw_export_ops *ops;

    const struct vw_export_thread *thread;

    ST_VEC(struct vw_export_call) open;

    sqlite3_stmt *off_rows;

    struct vw_export_span off; /* the next one, or the one that is going on */

    bool has_off, is_off;

    int64_t now; /* time of the last event: a damaged database cannot make it go back */
};

static int64_t clip(const struct vw_export *x, int64_t time)
{
    return time < x->from ? x->from : time > x->to ? x->to : time;
}

static int next_off(struct walk *w, struct st_error *err)
{
    int step = sqlite3_step(w->off_rows);

    w->has_off = step == SQLITE_ROW;
    w->is_off = false;
    if (step != SQLITE_ROW)
        return step == SQLITE_DONE ? 0 : vw_export_failed(w->x, err);
    w->off = (struct vw_export_span){.id = sqlite3_column_int64(w->off_rows, 0),
                                     .start = clip(w->x, sqlite3_column_int64(w->off_rows, 1)),
                                     .end = clip(w->x, sqlite3_column_int64(w->off_rows, 2)),
                                     .thread = w->thread,
                                     .cpu = -1,
                                     .text = sqlite3_column_int(w->off_rows, 3) ? "preempted" : "waiting"};
    if (w->off.start < w->now)
        w->off.start = w->now;
    if (w->off.end < w->off.start)
        w->off.end = w->off.start;
    return 0;
}

/* Tells of the losses and returns of the CPU before a time; of a loss at that very time only afterwards. */
static int off_until(struct walk *w, int64_t time, struct st_error *err)
{
    int rc = 0;

    while (!rc && w->has_off) {
        if (!w->is_off) {
            if (w->off.start >= time)
                break;
            w->is_off = true;
            w->now = w->off.start;
            rc = w->ops->off ? w->ops->off(w->x, &w->off, err) : 0;
        } else {
            if (w->off.end > time)
                break;
            w->now = w->off.end;
            rc = w->ops->on ? w->ops->on(w->x, &w->off, err) : 0;
            if (!rc)
                rc = next_off(w, err);
        }
    }
    return rc;
}

/* Leaves calls until none is open at `depth` or deeper. */
static int leave_to(struct walk *w, int depth, struct st_error *err)
{
    int rc = 0;

    while (!rc && w->open.n && w->open.at[w->open.n - 1].depth >= depth) {
        struct vw_export_call *c = &w->open.at[w->open.n - 1];

        rc = off_until(w, c->end, err);
        if (c->end < w->now)
            c->end = w->now;
        w->now = c->end;
        if (!rc && w->ops->leave)
            rc = w->ops->leave(w->x, c, err);
        w->open.n--;
    }
    return rc;
}

static int enter(struct walk *w, sqlite3_stmt *row, struct st_error *err)
{
    struct vw_export_call c = {.id = sqlite3_column_int64(row, 0),
                               .start = clip(w->x, sqlite3_column_int64(row, 1)),
                               .end = clip(w->x, sqlite3_column_int64(row, 2)),
                               .depth = sqlite3_column_int(row, 3),
                               .flags = (unsigned)sqlite3_column_int(row, 4),
                               .symbol = vw_export_symbol(w->x, sqlite3_column_int64(row, 5))};
    int rc;

    st_progress_add(1);
    rc = leave_to(w, c.depth < 0 ? 0 : c.depth, err);
    c.depth = (int)w->open.n; /* as it is but in a damaged trace */
    if (!rc)
        rc = off_until(w, c.start, err);
    if (c.start < w->now)
        c.start = w->now;
    if (c.end < c.start)
        c.end = c.start;
    w->now = c.start;
    if (!rc && st_vec_push(&w->open, c))
        rc = st_nomem(err, "the call stack");
    if (!rc && w->ops->enter)
        rc = w->ops->enter(w->x, &w->open.at[w->open.n - 1], err);
    return rc;
}

static int prepare(struct walk *w, const char *sql, sqlite3_stmt **stmt, struct st_error *err)
{
    if (sqlite3_prepare_v2(w->x->db, sql, -1, stmt, NULL))
        return vw_export_failed(w->x, err);
    sqlite3_bind_int64(*stmt, 1, w->thread->id);
    sqlite3_bind_int64(*stmt, 2, w->x->from);
    if (sqlite3_bind_parameter_count(*stmt) > 2)
        sqlite3_bind_int64(*stmt, 3, w->x->to);
    return 0;
}

static int enter_rows(struct walk *w, const char *sql, struct st_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = prepare(w, sql, &stmt, err), step = SQLITE_DONE;

    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = enter(w, stmt, err);
    if (!rc && step != SQLITE_DONE)
        rc = vw_export_failed(w->x, err);
    sqlite3_finalize(stmt);
    return rc;
}

static int walk_thread(struct walk *w, struct st_error *err)
{
    int rc = w->ops->thread_begin ? w->ops->thread_begin(w->x, w->thread, err) : 0;

    if (!rc)
        rc = prepare(w, off_sql, &w->off_rows, err);
    if (!rc)
        rc = next_off(w, err);
    if (!rc)
        rc = enter_rows(w, open_sql, err);
    if (!rc)
        rc = enter_rows(w, tdb_in_order(w->x->db) ? BEGIN "id" : BEGIN "start_ns, id", err);
    if (!rc)
        rc = leave_to(w, 0, err);
    if (!rc)
        rc = off_until(w, w->x->to, err);
    if (!rc && w->is_off && w->ops->on)
        rc = w->ops->on(w->x, &w->off, err);
    if (!rc && w->ops->thread_end)
        rc = w->ops->thread_end(w->x, w->thread, err);
    sqlite3_finalize(w->off_rows);
    st_vec_free(&w->open);
    return rc;
}

/* 0: not known, as only a part is wanted. */
static uint64_t count_calls(const struct vw_export *x)
{
    sqlite3_stmt *stmt;
    uint64_t n = 0;

    if (!x->whole || x->nthreads || sqlite3_prepare_v2(x->db, "SELECT max(id) FROM call", -1, &stmt, NULL))
        return 0;
    if (sqlite3_step(stmt) == SQLITE_ROW)
        n = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return n;
}

int vw_export_walk(struct vw_export *x, const struct vw_export_ops *ops, struct st_error *err)
{
    int rc = 0;

    if (x->out != stdout || !isatty(STDOUT_FILENO))
        st_progress("exporting", count_calls(x));
    for (size_t i = 0; !rc && i < x->all_threads; i++) {
        struct walk w = {.x = x, .ops = ops, .thread = &x->thread_list[i], .now = x->from};

        if (w.thread->wanted && w.thread->has_calls)
            rc = walk_thread(&w, err);
    }
    return rc;
}

typedef int span_fn(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);

/* Columns: id, start, end, thread, cpu, text, detail, waker thread, wake time. */
static int tell_span(struct vw_export *x, sqlite3_stmt *row, span_fn *fn, struct st_error *err)
{
    const int64_t start = sqlite3_column_int64(row, 1), end = sqlite3_column_int64(row, 2);
    struct vw_export_span s = {
        .id = sqlite3_column_int64(row, 0),
        .start = clip(x, start),
        .end = clip(x, end < start ? start : end),
        .thread = vw_export_thread(x, sqlite3_column_int64(row, 3)),
        .cpu = sqlite3_column_type(row, 4) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 4),
        .text = (const char *)sqlite3_column_text(row, 5),
        .detail = (const char *)sqlite3_column_text(row, 6),
        .waker = vw_export_thread(x, sqlite3_column_int64(row, 7)),
        .wake = sqlite3_column_int64(row, 8)};

    if (s.thread && !s.thread->wanted)
        return 0;
    return fn(x, &s, err);
}

static int tell_spans(struct vw_export *x, const char *sql, span_fn *fn, struct st_error *err)
{
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (!fn)
        return 0;
    if (sqlite3_prepare_v2(x->db, sql, -1, &stmt, NULL))
        return vw_export_failed(x, err);
    sqlite3_bind_int64(stmt, 1, x->from);
    sqlite3_bind_int64(stmt, 2, x->to);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = tell_span(x, stmt, fn, err);
    if (!rc && step != SQLITE_DONE)
        rc = vw_export_failed(x, err);
    sqlite3_finalize(stmt);
    return rc;
}

static int tell_rest(struct vw_export *x, struct st_error *err)
{
    const struct vw_export_ops *ops = x->ops;
    int rc =
        tell_spans(x,
                   "SELECT id, start_ns, end_ns, thread_id, cpu, NULL, NULL, NULL, NULL FROM slice WHERE "
                   "start_ns < ?2 AND end_ns > ?1 ORDER BY id",
                   ops->slice, err);

    if (!rc)
        rc = tell_spans(
            x,
            "SELECT id, start_ns, end_ns, thread_id, cpu, reason, detail, NULL, NULL FROM gap WHERE "
            "start_ns < ?2 AND end_ns >= ?1 ORDER BY id",
            ops->gap, err);
    if (!rc)
        rc = tell_spans(
            x,
            "SELECT id, time_ns, time_ns, thread_id, cpu, name, detail, NULL, NULL FROM mark WHERE "
            "time_ns < ?2 AND time_ns >= ?1 ORDER BY id",
            ops->mark, err);
    if (!rc)
        rc = tell_spans(
            x,
            "SELECT id, start_ns, coalesce(end_ns, start_ns + duration_ns), thread_id, NULL, trigger, "
            "reason, waker_thread_id, wake_ns FROM stall WHERE start_ns < ?2 AND "
            "coalesce(end_ns, start_ns + duration_ns) >= ?1 ORDER BY id",
            ops->stall, err);
    return rc;
}

/* A damaged file may hold any number: within 73 years, differences cannot overflow. */
static int64_t within_years(int64_t ns)
{
    const int64_t most = INT64_C(1) << 61;

    return ns < -most ? -most : ns > most ? most : ns;
}

/* What the trace holds: [from, to), so that a range without ends is finite. */
#define RANGE_WITH(spans)                                                                                    \
    "SELECT coalesce(min(a), 0), coalesce(max(b), 0) FROM (" spans                                           \
    " UNION ALL SELECT min(start_ns), max(end_ns) FROM gap UNION ALL SELECT min(start_ns), "                 \
    "max(coalesce(end_ns, start_ns + duration_ns)) FROM stall UNION ALL SELECT min(time_ns), max(time_ns) "  \
    "FROM mark)"

static int read_range(struct vw_export *x, const char *sql, int64_t *first, int64_t *last,
                      struct st_error *err)
{
    sqlite3_stmt *stmt;

    if (sqlite3_prepare_v2(x->db, sql, -1, &stmt, NULL))
        return vw_export_failed(x, err);
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        sqlite3_finalize(stmt);
        return vw_export_failed(x, err);
    }
    *first = within_years(sqlite3_column_int64(stmt, 0));
    *last = within_years(sqlite3_column_int64(stmt, 1)) +
            1; /* what happens at the last moment belongs to the trace */
    sqlite3_finalize(stmt);
    return 0;
}

/* Databases of version 1, and some that the decoder did not make, have no summaries. */
static bool has_summaries(struct vw_export *x)
{
    sqlite3_stmt *stmt;
    bool any;

    if (sqlite3_prepare_v2(x->db, "SELECT 1 FROM summary LIMIT 1", -1, &stmt, NULL))
        return false;
    any = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return any;
}

static int narrow(struct vw_export *x, struct st_error *err)
{
    const char *sql =
        has_summaries(x)
            ? RANGE_WITH("SELECT min(start_ns) a, max(end_ns) b FROM summary")
            : RANGE_WITH("SELECT min(start_ns) a, max(start_ns + duration_ns) b FROM call UNION ALL SELECT "
                         "min(start_ns), "
                         "max(end_ns) FROM offcpu UNION ALL SELECT min(start_ns), max(end_ns) FROM slice");
    int64_t first = 0, last = 0;
    int rc = read_range(x, sql, &first, &last, err);

    if (rc)
        return rc;
    x->whole = x->from <= first && x->to >= last;
    if (x->from < first)
        x->from = first;
    if (x->to > last)
        x->to = last;
    if (x->to < x->from)
        x->to = x->from;
    return 0;
}

int vw_export_run(struct vw_export *x, struct st_error *err)
{
    const struct vw_export_ops *ops = x->ops;
    int rc = narrow(x, err);

    if (!rc)
        rc = vw_export_load_names(x, err);
    x->state = rc ? NULL : calloc(1, ops->state_size ? ops->state_size : 1);
    if (!rc && !x->state)
        rc = st_nomem(err, "the export");
    if (!rc && ops->begin)
        rc = ops->begin(x, err);
    if (!rc)
        rc = vw_export_walk(x, ops, err);
    if (!rc)
        rc = tell_rest(x, err);
    if (!rc && ops->end)
        rc = ops->end(x, err);
    if (x->state && ops->release)
        ops->release(x);
    free(x->state);
    vw_export_free_names(x);
    if (!rc && (fflush(x->out) || ferror(x->out)))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write the export");
    return rc;
}
