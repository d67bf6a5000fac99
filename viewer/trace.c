/* Reads threads, calls and spans for the timeline. */
#include "viewer/trace.h"
#include "base/safetext.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_COLUMNS                                                                                         \
    "c.id, c.parent_id, c.start_ns, c.start_ns + c.duration_ns, c.self_ns, c.depth, c.flags, c.symbol_id"
#define CALL_COLUMNS SPAN_COLUMNS ", m.kernel, s.name, m.name "
#define CALL_FROM                                                                                            \
    "FROM call c CROSS JOIN symbol s ON s.id = c.symbol_id CROSS JOIN module m ON m.id = s.module_id "

#define WINDOW                                                                                               \
    "SELECT " SPAN_COLUMNS " FROM call c WHERE c.id >= " TDB_FIRST_ID("?1", "?2") " AND c.id < " TDB_END_ID( \
        "?1", "?3") " AND c.thread_id = ?1 AND c.start_ns >= ?2 AND c.start_ns < ?3 ORDER BY "

/* Calls nest, so whatever is open at a time is the last call that began before it, or one of its ancestors.
 * UNION, not UNION ALL: ends also where a damaged file's parents form a circle. */
#define LAST_BEFORE                                                                                          \
    "SELECT id, parent_id FROM call WHERE id >= " TDB_FIRST_ID("?1", "?2") " AND id < " TDB_END_ID(          \
        "?1", "?2") " AND thread_id = ?1 AND start_ns < ?2 ORDER BY start_ns DESC, id DESC LIMIT 1"
static const char around_sql[] =
    "WITH RECURSIVE open(id, up) AS (SELECT * FROM (" LAST_BEFORE ") "
    "UNION SELECT call.id, call.parent_id FROM open JOIN call ON call.id = open.up) "
    "SELECT " SPAN_COLUMNS " FROM open JOIN call c ON c.id = open.id "
    "WHERE c.start_ns + c.duration_ns > ?2 ORDER BY c.depth";

int vw_sql_failed(struct vw_trace *t, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot read '%s': %s", t->path, sqlite3_errmsg(t->db));
}

int vw_statement(struct vw_trace *t, const char *sql, sqlite3_stmt **stmt, struct st_error *err)
{
    struct vw_statement *k = &t->kept[t->next_kept];

    for (int i = 0; i < VW_STATEMENTS; i++)
        if (t->kept[i].sql && !strcmp(t->kept[i].sql, sql)) {
            *stmt = t->kept[i].stmt;
            return 0;
        }
    if (sqlite3_prepare_v3(t->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL))
        return vw_sql_failed(t, err);
    sqlite3_finalize(k->stmt);
    free(k->sql);
    *k = (struct vw_statement){strdup(sql), *stmt};
    if (!k->sql) {
        sqlite3_finalize(*stmt);
        *k = (struct vw_statement){0};
        return st_nomem(err, "a statement");
    }
    t->next_kept = (t->next_kept + 1) % VW_STATEMENTS;
    return 0;
}

/* That the database is busy is told by the first statement that reads it. */
void vw_trace_hold(struct vw_trace *t)
{
    sqlite3_step(t->hold);
    sqlite3_reset(t->hold);
}

void vw_trace_release(struct vw_trace *t)
{
    sqlite3_step(t->release);
    sqlite3_reset(t->release);
}

static char *printable_copy(const char *text)
{
    size_t room = strlen(text) * 4 + 1;
    char *copy = malloc(room);

    if (copy)
        st_safe_text(copy, room, text);
    return copy;
}

static const char *column_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : "";
}

/* A damaged file may hold any number. With times within 73 years and depths within a million, what is drawn
 * cannot overflow. */
static int64_t column_time(sqlite3_stmt *stmt, int column)
{
    int64_t ns = sqlite3_column_int64(stmt, column), most = INT64_C(1) << 61;

    return ns < -most ? -most : ns > most ? most : ns;
}

static int column_depth(sqlite3_stmt *stmt, int column)
{
    int64_t depth = sqlite3_column_int64(stmt, column), most = 1 << 20;

    return (int)(depth < 0 ? 0 : depth > most ? most : depth);
}

static const char tiles_sql[] =
    "SELECT depth, data FROM tile WHERE thread_id = ?1 AND level = ?2 AND number = ?3 AND "
    "depth BETWEEN ?4 AND ?5 ORDER BY depth";
static const char symbol_sql[] =
    "SELECT s.name, m.name, m.kernel FROM symbol s JOIN module m ON m.id = s.module_id WHERE s.id = ?1";

/* Databases of version 1 have no summaries: the threads' sizes are then counted. */
static const char summary_sql[] =
    "SELECT t.id, p.pid, t.tid, t.name, coalesce(y.calls, 0), coalesce(y.depths, 0), y.first_level, "
    "y.last_level FROM thread t "
    "JOIN process p ON p.id = t.process_id LEFT JOIN summary y ON y.thread_id = t.id "
    "ORDER BY t.id = (SELECT thread_id FROM stall WHERE id = ?1) DESC, y.calls DESC, t.tid";
static const char counted_sql[] =
    "SELECT t.id, p.pid, t.tid, t.name, count(c.id), coalesce(max(c.depth), -1) + 1, NULL, NULL FROM thread "
    "t "
    "JOIN process p ON p.id = t.process_id LEFT JOIN call c ON c.thread_id = t.id GROUP BY t.id "
    "ORDER BY t.id = (SELECT thread_id FROM stall WHERE id = ?1) DESC, count(c.id) DESC, t.tid";

static bool has_row(struct vw_trace *t, const char *sql)
{
    sqlite3_stmt *stmt;
    bool any;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return false;
    any = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return any;
}

/* A database of version 1, or one that was not made by the decoder, has none. */
static bool has_summaries(struct vw_trace *t)
{
    return !sqlite3_prepare_v2(t->db, tiles_sql, -1, &t->tiles, NULL) && has_row(t, "SELECT 1 FROM summary");
}

static const char slice_sql[] =
    "SELECT thread_id, start_ns, end_ns FROM slice WHERE cpu = ?1 AND start_ns <= ?2 ORDER BY "
    "start_ns DESC LIMIT 1";
static const char next_slice_sql[] =
    "SELECT start_ns FROM slice WHERE cpu = ?1 AND start_ns > ?2 ORDER BY start_ns LIMIT 1";

static int level_column(sqlite3_stmt *stmt, int column)
{
    int64_t level =
        sqlite3_column_type(stmt, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(stmt, column);

    return level < 0 || level > 54 ? -1 : (int)level;
}

static int read_threads(struct vw_trace *t, struct st_error *err)
{
    ST_VEC(struct vw_thread) list = {0};
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(t->db, t->summarised ? summary_sql : counted_sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    sqlite3_bind_int64(stmt, 1, t->stall_id);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct vw_thread thread = {.id = sqlite3_column_int64(stmt, 0),
                                   .pid = sqlite3_column_int64(stmt, 1),
                                   .tid = sqlite3_column_int64(stmt, 2),
                                   .name = printable_copy(column_text(stmt, 3)),
                                   .calls = sqlite3_column_int64(stmt, 4),
                                   .depths = column_depth(stmt, 5),
                                   .first_level = level_column(stmt, 6),
                                   .last_level = level_column(stmt, 7)};

        if (!thread.name || st_vec_push(&list, thread)) {
            free(thread.name);
            rc = st_nomem(err, "threads");
        }
    }
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_finalize(stmt);
    t->threads = list.at;
    t->nthreads = (int)list.n;
    return rc;
}

/* Each CPU by a look into the index, not by reading all slices. */
static int read_cpus(struct vw_trace *t, struct st_error *err)
{
    static const char sql[] =
        "WITH RECURSIVE c(cpu) AS (SELECT min(cpu) FROM slice UNION ALL SELECT (SELECT min(cpu) FROM "
        "slice WHERE cpu > c.cpu) FROM c WHERE c.cpu IS NOT NULL) SELECT cpu FROM c WHERE cpu >= 0 LIMIT "
        "4096";
    ST_VEC(int64_t) list = {0};
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (st_vec_push(&list, sqlite3_column_int64(stmt, 0)))
            rc = st_nomem(err, "CPUs");
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_finalize(stmt);
    t->cpus = list.at;
    t->ncpus = (int)list.n;
    return rc;
}

static int read_stall(struct vw_trace *t, struct st_error *err)
{
    static const char sql[] =
        "SELECT l.id, l.start_ns, coalesce(l.end_ns, l.start_ns + l.duration_ns), l.trigger || ': ' || "
        "l.reason, l.thread_id "
        "FROM stall l WHERE l.id = (SELECT value FROM meta WHERE key = 'trigger_stall_id')";
    sqlite3_stmt *stmt;
    int rc = 0, step;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        t->stall_id = sqlite3_column_int64(stmt, 0);
        t->stall_start = column_time(stmt, 1);
        t->stall_end = column_time(stmt, 2);
        t->stall_thread = sqlite3_column_int64(stmt, 4);
        t->stall_text = printable_copy(column_text(stmt, 3));
        if (!t->stall_text)
            rc = st_nomem(err, "the stall");
    } else if (step != SQLITE_DONE) {
        rc = vw_sql_failed(t, err);
    }
    sqlite3_finalize(stmt);
    return rc;
}

#define RANGE_OF(calls)                                                                                      \
    "SELECT min(a), max(b) FROM (" calls " UNION ALL SELECT min(start_ns), max(coalesce(end_ns, start_ns + " \
    "duration_ns)) FROM stall UNION ALL SELECT min(time_ns), max(time_ns) FROM mark)"

static int read_range(struct vw_trace *t, struct st_error *err)
{
    const char *sql =
        t->summarised
            ? RANGE_OF("SELECT min(start_ns) a, max(end_ns) b FROM summary")
            : RANGE_OF(
                  "SELECT min(start_ns) a, max(start_ns + duration_ns) b FROM call UNION ALL SELECT "
                  "min(start_ns), max(end_ns) FROM offcpu UNION ALL SELECT min(start_ns), max(end_ns) FROM "
                  "slice");
    sqlite3_stmt *stmt;
    int rc = 0;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        t->start = column_time(stmt, 0);
        t->end = column_time(stmt, 1);
    } else {
        rc = vw_sql_failed(t, err);
    }
    sqlite3_finalize(stmt);
    if (t->end <= t->start)
        t->end = t->start + 1;
    return rc;
}

static int read_sampling(struct vw_trace *t, struct st_error *err)
{
    static const char sql[] = "SELECT coalesce((SELECT value FROM meta WHERE key = 'sample_period_ns'), 1) "
                              "FROM meta WHERE key = 'source' AND value = 'sample'";
    sqlite3_stmt *stmt;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        t->sampled_ns = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return 0;
}

int vw_trace_open(const char *path, struct vw_trace **trace, struct st_error *err)
{
    struct vw_trace *t = calloc(1, sizeof(*t));
    int rc;

    if (!t || !(t->path = printable_copy(path))) {
        free(t);
        return st_nomem(err, "the trace");
    }
    rc = tdb_open(path, &t->db, err);
    if (!rc)
        sqlite3_exec(t->db, "PRAGMA cache_size = -16384", NULL, NULL, NULL);
    if (!rc)
        rc = vw_add_functions(t->db, err);
    if (!rc)
        rc = read_sampling(t, err);
    if (!rc)
        t->symbols = calloc(VW_SYMBOLS, sizeof(*t->symbols));
    if (!rc && !t->symbols)
        rc = st_nomem(err, "the symbols");
    if (!rc)
        t->summarised = has_summaries(t);
    t->counted = !rc && has_row(t, "SELECT 1 FROM function_summary");
    t->sourced = !rc && has_row(t, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'source'");
    if (!rc && (sqlite3_prepare_v2(t->db, "BEGIN", -1, &t->hold, NULL) ||
                sqlite3_prepare_v2(t->db, "COMMIT", -1, &t->release, NULL) ||
                sqlite3_prepare_v2(t->db, symbol_sql, -1, &t->symbol, NULL) ||
                sqlite3_prepare_v2(t->db, slice_sql, -1, &t->slice, NULL) ||
                sqlite3_prepare_v2(t->db, next_slice_sql, -1, &t->next_slice, NULL) ||
                sqlite3_prepare_v2(t->db, tdb_in_order(t->db) ? WINDOW "c.id" : WINDOW "c.start_ns, c.id", -1,
                                   &t->in_window, NULL) ||
                sqlite3_prepare_v2(t->db, around_sql, -1, &t->around, NULL)))
        rc = vw_sql_failed(t, err);
    if (!rc)
        rc = read_stall(t, err);
    if (!rc)
        rc = read_threads(t, err);
    if (!rc)
        rc = read_cpus(t, err);
    if (!rc)
        rc = vw_gaps_read(t, err);
    if (!rc)
        rc = read_range(t, err);
    rc = tdb_read_all(rc, err);
    if (rc)
        vw_trace_close(t);
    else
        *trace = t;
    return rc;
}

void vw_trace_close(struct vw_trace *t)
{
    if (!t)
        return;
    sqlite3_finalize(t->in_window);
    sqlite3_finalize(t->around);
    sqlite3_finalize(t->tiles);
    sqlite3_finalize(t->symbol);
    sqlite3_finalize(t->slice);
    sqlite3_finalize(t->next_slice);
    sqlite3_finalize(t->hold);
    sqlite3_finalize(t->release);
    for (int i = 0; i < VW_STATEMENTS; i++) {
        sqlite3_finalize(t->kept[i].stmt);
        free(t->kept[i].sql);
    }
    free(t->cpus);
    free(t->gaps);
    free(t->symbols);
    sqlite3_close(t->db);
    for (int i = 0; i < t->nthreads; i++)
        free(t->threads[i].name);
    free(t->threads);
    free(t->stall_text);
    free(t->path);
    free(t);
}

static void fill_call(sqlite3_stmt *stmt, struct vw_call *call)
{
    *call = (struct vw_call){
        .id = sqlite3_column_int64(stmt, 0),
        .parent_id = sqlite3_column_int64(stmt, 1),
        .start = column_time(stmt, 2),
        .end = column_time(stmt, 3),
        .self = column_time(stmt, 4),
        .depth = column_depth(stmt, 5),
        .flags = (unsigned)sqlite3_column_int(stmt, 6),
        .symbol_id = sqlite3_column_int64(stmt, 7),
        .function = "",
        .module = "",
    };
}

static int run_calls(struct vw_trace *t, sqlite3_stmt *stmt, const int64_t args[3], vw_call_fn *fn, void *ctx,
                     struct st_error *err)
{
    struct vw_call call;
    int rc = 0, step = SQLITE_DONE;

    for (int i = 0; i < sqlite3_bind_parameter_count(stmt); i++)
        sqlite3_bind_int64(stmt, i + 1, args[i]);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        fill_call(stmt, &call);
        rc = fn(ctx, &call);
    }
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_reset(stmt);
    return rc;
}

int vw_calls_at(struct vw_trace *t, int64_t thread_id, int64_t time, vw_call_fn *fn, void *ctx,
                struct st_error *err)
{
    const int64_t args[3] = {thread_id, time, 0};

    return run_calls(t, t->around, args, fn, ctx, err);
}

int vw_each_call(struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to, vw_call_fn *fn, void *ctx,
                 struct st_error *err)
{
    const int64_t args[3] = {thread_id, from, to};
    int rc = run_calls(t, t->around, args, fn, ctx, err);

    return rc ? rc : run_calls(t, t->in_window, args, fn, ctx, err);
}

int vw_find_call(struct vw_trace *t, const char *condition, int64_t a, int64_t b, const char *text,
                 struct vw_found *found, struct st_error *err)
{
    char sql[1024];
    sqlite3_stmt *stmt;
    int rc = 0, step;

    snprintf(sql, sizeof(sql), "SELECT " CALL_COLUMNS ", c.thread_id " CALL_FROM "WHERE %s LIMIT 1",
             condition);
    rc = vw_statement(t, sql, &stmt, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(stmt, 1, a);
    sqlite3_bind_int64(stmt, 2, b);
    sqlite3_bind_text(stmt, 3, text, -1, SQLITE_STATIC);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        fill_call(stmt, &found->call);
        found->call.kernel = sqlite3_column_int(stmt, 8) != 0;
        found->thread_id = sqlite3_column_int64(stmt, 11);
        st_safe_text(found->function, sizeof(found->function), column_text(stmt, 9));
        st_safe_text(found->module, sizeof(found->module), column_text(stmt, 10));
        found->call.function = found->function;
        found->call.module = found->module;
        rc = 1;
    } else if (step != SQLITE_DONE) {
        rc = vw_sql_failed(t, err);
    }
    sqlite3_reset(stmt);
    return rc;
}

static const char *preempted_column(const char *what)
{
    return strcmp(what, "offcpu") != 0 ? "0" : "preempted";
}

int vw_each_span(struct vw_trace *t, const char *what, int64_t thread_id, int64_t from, int64_t to,
                 vw_span_fn *fn, void *ctx, struct st_error *err)
{
    char sql[320];
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    /* Waits and slices of a thread do not overlap: all from the last one on that began before `from`. */
    snprintf(
        sql, sizeof(sql),
        "SELECT start_ns, end_ns, %s FROM %s WHERE thread_id = ?1 AND start_ns < ?3 AND end_ns >= ?2 AND "
        "start_ns >= coalesce((SELECT max(start_ns) FROM %s WHERE thread_id = ?1 AND start_ns < ?2), ?2) "
        "ORDER BY start_ns",
        preempted_column(what), what, what);
    rc = vw_statement(t, sql, &stmt, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(stmt, 1, thread_id);
    sqlite3_bind_int64(stmt, 2, from);
    sqlite3_bind_int64(stmt, 3, to);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = fn(ctx, column_time(stmt, 0), column_time(stmt, 1), sqlite3_column_int(stmt, 2) != 0);
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_reset(stmt);
    return rc;
}

int vw_span_before(struct vw_trace *t, const char *what, int64_t thread_id, int64_t before, int64_t time,
                   vw_span_fn *fn, void *ctx, struct st_error *err)
{
    char sql[160];
    sqlite3_stmt *stmt;
    int rc = 0, step;

    snprintf(
        sql, sizeof(sql),
        "SELECT start_ns, end_ns, %s FROM %s WHERE thread_id = ?1 AND start_ns < ?2 ORDER BY start_ns DESC "
        "LIMIT 1",
        preempted_column(what), what);
    rc = vw_statement(t, sql, &stmt, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(stmt, 1, thread_id);
    sqlite3_bind_int64(stmt, 2, before);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW && sqlite3_column_int64(stmt, 1) > time)
        rc = fn(ctx, column_time(stmt, 0), column_time(stmt, 1), sqlite3_column_int(stmt, 2) != 0);
    else if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_reset(stmt);
    return rc;
}

int vw_slice_at(struct vw_trace *t, int64_t cpu, int64_t time, struct vw_slice *slice, struct st_error *err)
{
    int step, rc = 0;

    *slice = (struct vw_slice){.next = INT64_MAX};
    sqlite3_bind_int64(t->slice, 1, cpu);
    sqlite3_bind_int64(t->slice, 2, time);
    step = sqlite3_step(t->slice);
    if (step == SQLITE_ROW && column_time(t->slice, 2) > time) {
        slice->thread_id = sqlite3_column_int64(t->slice, 0);
        slice->start = column_time(t->slice, 1);
        slice->end = column_time(t->slice, 2);
        rc = 1;
    }
    sqlite3_reset(t->slice);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return vw_sql_failed(t, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(t->next_slice, 1, cpu);
    sqlite3_bind_int64(t->next_slice, 2, time);
    if (sqlite3_step(t->next_slice) == SQLITE_ROW)
        slice->next = column_time(t->next_slice, 0);
    sqlite3_reset(t->next_slice);
    return 0;
}
