/* report without a name: why did it stall. */
#include "base/safetext.h"
#include "base/units.h"
#include "tracedb/tracedb.h"
#include "viewer/report.h"
#include "viewer/sql.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int failed(sqlite3 *db, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot read the trace: %s", sqlite3_errmsg(db));
}

/* Text of a column, printable, in a buffer of the caller; "" for NULL. */
static const char *safe_column(sqlite3_stmt *stmt, int column, char *buf, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    st_safe_text(buf, size, text ? text : "");
    return buf;
}

/* Runs sql with ?1 = a, ?2 = b and calls fn for each row. */
typedef void row_fn(sqlite3_stmt *stmt, FILE *out, int row);
static int each_row(sqlite3 *db, const char *sql, int64_t a, int64_t b, row_fn *fn, FILE *out,
                    struct st_error *err)
{
    sqlite3_stmt *stmt;
    int rows = 0, step;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return failed(db, err);
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++)
        sqlite3_bind_int64(stmt, i, i == 1 ? a : b);
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
        fn(stmt, out, rows++);
    sqlite3_finalize(stmt);
    return step == SQLITE_DONE ? rows : failed(db, err);
}

/* The numbers of a statement's only row; 0 for NULL. */
static int read_numbers(sqlite3 *db, const char *sql, int64_t *numbers, struct st_error *err)
{
    sqlite3_stmt *stmt;
    int step;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return failed(db, err);
    step = sqlite3_step(stmt);
    for (int i = 0; step == SQLITE_ROW && i < sqlite3_column_count(stmt); i++)
        numbers[i] = sqlite3_column_int64(stmt, i);
    sqlite3_finalize(stmt);
    return step == SQLITE_ROW ? 0 : failed(db, err);
}

struct stall {
    int64_t thread_id, start, end, duration, middle, kernel_stack, user_stack, waker_stack, waker_thread,
        wake;

    bool ongoing;
};

/* The times are another program's: a sum past the last one is the last one. */
static int64_t later(int64_t time, int64_t by)
{
    int64_t sum;

    return __builtin_add_overflow(time, by, &sum) ? by < 0 ? INT64_MIN : INT64_MAX : sum;
}

static void print_head(sqlite3_stmt *stmt, FILE *out, struct stall *s)
{
    char a[512], b[512], length[32], threshold[32];

    *s = (struct stall){.thread_id = sqlite3_column_int64(stmt, 0),
                        .start = sqlite3_column_int64(stmt, 1),
                        .duration = sqlite3_column_int64(stmt, 3),
                        .ongoing = sqlite3_column_type(stmt, 2) == SQLITE_NULL,
                        .kernel_stack = sqlite3_column_int64(stmt, 12),
                        .user_stack = sqlite3_column_int64(stmt, 13),
                        .waker_stack = sqlite3_column_int64(stmt, 14),
                        .waker_thread = sqlite3_column_int64(stmt, 15),
                        .wake = sqlite3_column_int64(stmt, 16)};
    s->end = s->ongoing ? later(s->start, s->duration) : sqlite3_column_int64(stmt, 2);
    s->middle = later(s->start, s->duration / 2);
    fprintf(out, "%s\n", safe_column(stmt, 4, a, sizeof(a)));
    if (sqlite3_column_int64(stmt, 6))
        fprintf(out, "  trigger   %s (threshold %s)\n", safe_column(stmt, 5, a, sizeof(a)),
                st_format_duration(sqlite3_column_int64(stmt, 6), threshold, sizeof(threshold)));
    else
        fprintf(out, "  trigger   %s\n", safe_column(stmt, 5, a, sizeof(a)));
    fprintf(out, "  who       thread %lld \"%s\"\n", (long long)sqlite3_column_int64(stmt, 7),
            safe_column(stmt, 8, a, sizeof(a)));
    if (!s->duration && !s->ongoing) /* a moment */
        return;
    fprintf(out, "  how long  %s%s\n", st_format_duration(s->duration, length, sizeof(length)),
            s->ongoing ? ", and still going on when the snapshot was taken" : "");
    safe_column(stmt, 9, a, sizeof(a));
    safe_column(stmt, 10, b, sizeof(b));
    if (*a || *b)
        fprintf(out, "  where     %s%s%s%s\n", *b ? "system call " : "", b, *a ? (*b ? ", " : "") : "", a);
    if (!strcmp(a, "runnable"))
        fprintf(out, "  woken by  nobody: it was ready to run all the time\n");
    else
        fprintf(out, "  woken by  %s\n", *safe_column(stmt, 11, a, sizeof(a)) ? a : "nobody yet");
}

static int read_head(sqlite3 *db, int64_t id, FILE *out, struct stall *s, struct st_error *err)
{
    static const char sql[] = "SELECT l.thread_id, l.start_ns, l.end_ns, l.duration_ns, l.reason, l.trigger, "
                              "l.threshold_ns, t.tid, t.name, l.state, l.syscall, "
                              "coalesce(l.waker, '') || CASE WHEN l.timer IS NULL THEN '' ELSE ', after "
                              "timer ' || l.timer END, l.kernel_stack_id, "
                              "l.user_stack_id, l.waker_stack_id, l.waker_thread_id, l.wake_ns FROM stall l "
                              "LEFT JOIN thread t ON t.id = l.thread_id WHERE l.id = ?1";
    sqlite3_stmt *stmt;
    int step;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return failed(db, err);
    sqlite3_bind_int64(stmt, 1, id);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        print_head(stmt, out, s);
    sqlite3_finalize(stmt);
    if (step == SQLITE_DONE)
        return st_fail(err, ST_EFAIL, "no stall %lld in this trace (report TRACE.db stalls lists them)",
                       (long long)id);
    return step == SQLITE_ROW ? 0 : failed(db, err);
}

static void print_frame(sqlite3_stmt *stmt, FILE *out, int row)
{
    char name[256];

    fprintf(out, "%s%s", row ? " < " : "", safe_column(stmt, 0, name, sizeof(name)));
}

/* Functions that were put in line stand in front of those that hold their code. */
static const char frames_sql[] =
    "SELECT name FROM (SELECT coalesce(s.name, printf('0x%x', k.address)) AS name, k.depth AS depth, 1 << 30 "
    "AS level "
    "FROM stack k LEFT JOIN symbol s ON s.id = k.symbol_id WHERE k.id = ?1 UNION ALL "
    "SELECT i.function || ' [inlined]', i.depth, i.level FROM stack_line i WHERE i.stack_id = ?1 AND "
    "i.function "
    "IS NOT NULL) ORDER BY depth, level LIMIT 24";

/* The calls that were open at a time, innermost first; the kernel's own are left to the kernel stack. */
static const char open_calls_sql[] =
    "WITH RECURSIVE up(id) AS (SELECT * FROM (SELECT id FROM call WHERE id >= " TDB_FIRST_ID(
        "?1", "?2") " AND id < " TDB_END_ID("?1", "?2 + 1") " AND thread_id = ?1 AND start_ns <= ?2 ORDER BY "
                                                            "start_ns DESC, id DESC LIMIT 1) "
                                                            "UNION SELECT c.parent_id FROM up JOIN call c ON "
                                                            "c.id = up.id WHERE c.parent_id IS NOT NULL) "
                                                            "SELECT s.name FROM up JOIN call c ON c.id = "
                                                            "up.id JOIN symbol s ON s.id = c.symbol_id "
                                                            "JOIN module m ON m.id = s.module_id WHERE NOT "
                                                            "m.kernel AND c.start_ns + c.duration_ns >= ?2 "
                                                            "ORDER BY c.depth DESC LIMIT 24";

/* A line with the frames, or nothing when there are none. Returns how many, or a negative code. */
static int print_path(sqlite3 *db, const char *title, const char *sql, int64_t a, int64_t b, FILE *out,
                      struct st_error *err)
{
    char *line = NULL;
    size_t size = 0;
    FILE *mem = open_memstream(&line, &size);
    int rows;

    if (!mem)
        return st_nomem(err, "a call path");
    rows = each_row(db, sql, a, b, print_frame, mem, err);
    if (fclose(mem) || !line) {
        free(line);
        return st_nomem(err, "a call path");
    }
    if (rows > 0)
        fprintf(out, "  %-9s %s\n", title, line);
    free(line);
    return rows;
}

static int print_paths(sqlite3 *db, const struct stall *s, FILE *out, struct st_error *err)
{
    int rc = print_path(db, "in", open_calls_sql, s->thread_id, s->middle, out, err);

    if (rc == 0)
        rc = print_path(db, "in", frames_sql, s->user_stack, 0, out, err);
    if (rc >= 0)
        rc = print_path(db, "kernel", frames_sql, s->kernel_stack, 0, out, err);
    if (rc >= 0 && s->waker_thread)
        rc = print_path(db, "waker in", open_calls_sql, s->waker_thread, s->wake, out, err);
    if (rc >= 0)
        rc = print_path(db, "by kernel", frames_sql, s->waker_stack, 0, out, err);
    return rc < 0 ? rc : 0;
}

static void print_cause(sqlite3_stmt *stmt, FILE *out, int row)
{
    char cause[256], evidence[1024];

    if (row == 0)
        fprintf(out, "  cause     %s: %s\n", safe_column(stmt, 0, cause, sizeof(cause)),
                safe_column(stmt, 1, evidence, sizeof(evidence)));
}

static int print_causes(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    for (const struct vw_sql *c = vw_causes; c->name; c++) {
        int rows = each_row(db, c->text, id, 0, print_cause, out, err);

        if (rows < 0)
            return st_prefix(err, "cause rule '%s': ", c->name);
        if (rows > 0)
            return 0;
    }
    fprintf(out, "  cause     not known\n");
    return 0;
}

static void print_call(sqlite3_stmt *stmt, FILE *out, int row)
{
    char name[256], module[128], length[32], ago[32];

    if (row == 0)
        fprintf(out, "  the last calls that ended before it:\n");
    fprintf(out, "    %10s before  %*s%s (%s) %s\n",
            st_format_duration(sqlite3_column_int64(stmt, 0), ago, sizeof(ago)), sqlite3_column_int(stmt, 4),
            "", safe_column(stmt, 1, name, sizeof(name)), safe_column(stmt, 2, module, sizeof(module)),
            st_format_duration(sqlite3_column_int64(stmt, 3), length, sizeof(length)));
}

static const char last_calls_sql[] =
    "SELECT * FROM (SELECT ?2 - c.start_ns, s.name, m.name, c.duration_ns, 0, c.start_ns FROM call c JOIN "
    "symbol s ON s.id = c.symbol_id "
    "JOIN module m ON m.id = s.module_id WHERE c.id >= " TDB_THREAD_FIRST_ID("?1") " AND c.id < " TDB_END_ID(
        "?1", "?2") " AND c.thread_id = ?1 AND c.start_ns < ?2 AND c.start_ns + c.duration_ns <= ?2 AND NOT "
                    "m.kernel "
                    "AND s.name NOT LIKE '%@plt' ORDER BY c.id DESC LIMIT 8) ORDER BY start_ns";

static int no_stall(sqlite3 *db, FILE *out, struct st_error *err)
{
    int64_t holds[3];
    char calls[32], span[32];
    int rc = read_numbers(db,
                          "SELECT count(*), (SELECT count(*) FROM thread), max(start_ns + duration_ns) - "
                          "min(start_ns) FROM call",
                          holds, err);

    if (rc)
        return rc;
    fprintf(out, "No stall: this snapshot was not taken by a trigger.\n");
    fprintf(
        out,
        "  It holds %s calls of %lld threads in %s. `report TRACE.db top` lists the functions, `view` shows "
        "the timeline.\n",
        st_format_count((uint64_t)holds[0], calls, sizeof(calls)), (long long)holds[1],
        st_format_duration(holds[2], span, sizeof(span)));
    return 0;
}

int vw_report_why(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    struct stall s;
    int rc = 0;

    if (!id)
        rc = read_numbers(db,
                          "SELECT coalesce((SELECT value FROM meta WHERE key = 'trigger_stall_id'), "
                          "(SELECT id FROM stall ORDER BY duration_ns DESC LIMIT 1))",
                          &id, err);
    if (rc || !id)
        return rc ? rc : no_stall(db, out, err);
    rc = read_head(db, id, out, &s, err);
    if (!rc)
        rc = print_paths(db, &s, out, err);
    if (!rc && (s.duration || s.ongoing))
        rc = print_causes(db, id, out, err);
    if (!rc)
        rc = each_row(db, last_calls_sql, s.thread_id, s.start, print_call, out, err);
    return rc < 0 ? rc : 0;
}
