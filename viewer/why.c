/* report without a name: why did it stall. */
#include "base/safetext.h"
#include "base/units.h"
#include "tracedb/tracedb.h"
#include "viewer/format.h"
#include "viewer/parts.h"
#include "viewer/report.h"

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
        wake, waker_user_stack;

    bool ongoing;

    bool wait; /* all of it is one: where the thread was in its middle it was all the time */
};

/* The times are another program's: a sum past the last one is the last one. */
static int64_t later(int64_t time, int64_t by)
{
    int64_t sum;

    return __builtin_add_overflow(time, by, &sum) ? by < 0 ? INT64_MIN : INT64_MAX : sum;
}

static bool kind_is(sqlite3_stmt *stmt, const char *kind)
{
    const char *text = (const char *)sqlite3_column_text(stmt, 17);

    return text && !strcmp(text, kind);
}

static void print_where(sqlite3_stmt *stmt, FILE *out)
{
    char state[64], call[128];

    safe_column(stmt, 9, state, sizeof(state));
    safe_column(stmt, 10, call, sizeof(call));
    if (!*state && !*call)
        return;
    fprintf(out, "  where     %s%s%s%s\n", *call ? "system call " : "", call, *state && *call ? ", " : "",
            !strcmp(state, "runnable") ? "ready to run" : state);
}

static void print_woken_by(sqlite3_stmt *stmt, FILE *out, bool ongoing)
{
    char state[64], waker[256];
    bool wait = kind_is(stmt, "offcpu");

    safe_column(stmt, 9, state, sizeof(state));
    safe_column(stmt, 11, waker, sizeof(waker));
    if (*waker)
        fprintf(out, "  woken by  %s\n", waker);
    else if (wait && !strcmp(state, "runnable"))
        fprintf(out, "  woken by  nobody: it lost its CPU, and was ready to run all the time\n");
    else if (wait)
        fprintf(out, "  woken by  %s\n",
                ongoing                          ? "nobody yet"
                : sqlite3_column_int64(stmt, 21) ? "not known: this kernel did not trace it (doctor)"
                                                 : "not known");
}

static void print_head(sqlite3_stmt *stmt, FILE *out, struct stall *s)
{
    char a[512], length[32], threshold[32];
    bool before = sqlite3_column_int64(stmt, 20);

    *s = (struct stall){.thread_id = sqlite3_column_int64(stmt, 0),
                        .start = sqlite3_column_int64(stmt, 1),
                        .duration = sqlite3_column_int64(stmt, 3),
                        .wait = kind_is(stmt, "offcpu") || kind_is(stmt, "runq"),
                        .ongoing = sqlite3_column_type(stmt, 2) == SQLITE_NULL,
                        .kernel_stack = sqlite3_column_int64(stmt, 12),
                        .user_stack = sqlite3_column_int64(stmt, 13),
                        .waker_stack = sqlite3_column_int64(stmt, 14),
                        .waker_thread = sqlite3_column_int64(stmt, 15),
                        .wake = sqlite3_column_int64(stmt, 16),
                        .waker_user_stack = sqlite3_column_int64(stmt, 18)};
    if (!sqlite3_column_int64(stmt, 19))
        s->kernel_stack = s->waker_stack = s->waker_thread = s->waker_user_stack = 0;
    s->end = s->ongoing ? later(s->start, s->duration) : sqlite3_column_int64(stmt, 2);
    s->middle = later(s->start, s->duration / 2);
    if (sqlite3_column_int64(stmt, 6))
        fprintf(out, "  trigger   %s (threshold %s)\n", safe_column(stmt, 5, a, sizeof(a)),
                st_format_duration(sqlite3_column_int64(stmt, 6), threshold, sizeof(threshold)));
    else
        fprintf(out, "  trigger   %s\n", safe_column(stmt, 5, a, sizeof(a)));
    fprintf(out, "  who       thread %lld \"%s\"\n", (long long)sqlite3_column_int64(stmt, 7),
            safe_column(stmt, 8, a, sizeof(a)));
    if (!s->duration && !s->ongoing) /* a moment */
        return;
    fprintf(out, "  how long  %s%s%s%s\n", before ? "at least " : "",
            st_format_duration(s->duration, length, sizeof(length)),
            before ? ": it had begun before it was watched" : "",
            s->ongoing ? ", and still going on when the snapshot was taken" : "");
    print_where(stmt, out);
    print_woken_by(stmt, out, s->ongoing);
}

/* Of a stall that is no single wait the record has the state, the stacks and the waker of one of its waits:
 * they are told where that wait is most of it. */
static int read_head(sqlite3 *db, int64_t id, FILE *out, struct stall *s, struct st_error *err)
{
    static const char sql[] =
        "SELECT l.thread_id, l.start_ns, l.end_ns, l.duration_ns, l.reason, l.trigger, "
        "l.threshold_ns, t.tid, t.name, coalesce(w.state, CASE WHEN l.kind IN ('offcpu', 'runq') THEN "
        "l.state "
        "END), CASE WHEN l.kind IN ('offcpu', 'runq', 'syscall') THEN l.syscall ELSE w.syscall END, "
        "CASE WHEN l.kind IN ('offcpu', 'runq') OR w.id IS NOT NULL THEN coalesce(l.waker, '') || CASE WHEN "
        "l.waker LIKE 'its %time-out' AND w.asked_ns > 0 THEN ' of ' || duration(w.asked_ns) ELSE '' END || "
        "CASE WHEN l.timer IS NULL THEN '' ELSE ', after timer ' || l.timer END END, l.kernel_stack_id, "
        "CASE WHEN NOT EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'user_stack_late') "
        "THEN l.user_stack_id END, l.waker_stack_id, l.waker_thread_id, l.wake_ns, l.kind, "
        "(SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'waker_user_stack_id'), l.kind IN "
        "('offcpu', 'runq') OR w.id IS NOT NULL, EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND "
        "key = "
        "'began_before'), EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = l.id AND key = 'untraced') FROM "
        "stall l "
        "LEFT JOIN wait w ON w.slept_ns * 2 >= w.whole_ns "
        "LEFT JOIN thread t ON t.id = l.thread_id WHERE l.id = ?1";
    sqlite3_stmt *stmt;
    char reason[512];
    int step, rc = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return failed(db, err);
    sqlite3_bind_int64(stmt, 1, id);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        fprintf(out, "%s\n", safe_column(stmt, 4, reason, sizeof(reason)));
        rc = vw_print_origin(db, id, out, err);
        print_head(stmt, out, s);
    }
    sqlite3_finalize(stmt);
    if (rc)
        return rc;
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

/* Functions that were inlined stand in front of those that hold their code. */
static const char frames_sql[] =
    "SELECT name FROM (SELECT coalesce(s.name, printf('0x%x', k.address)) AS name, k.depth AS depth, 1 << 30 "
    "AS level "
    "FROM stack k LEFT JOIN symbol s ON s.id = k.symbol_id WHERE k.id = ?1 UNION ALL "
    "SELECT i.function || ' [inlined]', i.depth, i.level FROM stack_line i WHERE i.stack_id = ?1 AND "
    "i.function "
    "IS NOT NULL) ORDER BY depth, level LIMIT 24";

#define OPEN_CALLS(if_so)                                                                                    \
    "WITH RECURSIVE up(id) AS (SELECT * FROM (SELECT id FROM call WHERE id >= " TDB_FIRST_ID(                \
        "?1",                                                                                                \
        "?2") " AND id < " TDB_END_ID("?1",                                                                  \
                                      "?2 + 1") " AND thread_id = ?1 AND start_ns <= ?2 " if_so              \
                                                "ORDER BY start_ns DESC, id DESC LIMIT 1) UNION SELECT "     \
                                                "c.parent_id FROM up JOIN call c ON c.id = up.id "           \
                                                "WHERE c.parent_id IS NOT NULL) SELECT s.name FROM up JOIN " \
                                                "call c ON c.id = up.id JOIN symbol s ON "                   \
                                                "s.id = c.symbol_id JOIN module m ON m.id = s.module_id "    \
                                                "WHERE NOT m.kernel AND "                                    \
                                                "c.start_ns + c.duration_ns >= ?2 ORDER BY c.depth DESC "    \
                                                "LIMIT 24"

/* The calls that were open at a time, innermost first; the kernel's own are left to the kernel stack. */
static const char open_calls_sql[] = OPEN_CALLS("");

/* Of a thread that was sampled, none where it had no CPU and nobody saw in what it left it. */
static const char seen_calls_sql[] =
    OPEN_CALLS("AND NOT (flags & 32 AND EXISTS (SELECT 1 FROM offcpu o WHERE o.thread_id = ?1 AND "
               "o.start_ns <= ?2 AND o.end_ns > ?2 AND o.call_id IS NULL)) ");

/* The kernel's frames of a waker, up to the entry of the interrupt that it ran in: what lies behind it is
 * what the interrupt came upon, which woke nobody. */
static const char waker_frames_sql[] =
    "SELECT name FROM (SELECT coalesce(s.name, printf('0x%x', k.address)) AS name, k.depth AS depth FROM "
    "stack k LEFT JOIN symbol s ON s.id = k.symbol_id WHERE k.id = ?1) WHERE depth <= coalesce((SELECT "
    "min(k.depth) FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = ?1 AND (s.name LIKE "
    "'asm_sysvec_%' OR s.name LIKE 'asm_%interrupt%' OR s.name LIKE 'asm_exc_nmi%')), 1000) ORDER BY depth "
    "LIMIT 24";

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

/* The frames of a stack without what was inlined, as the calls of open_calls_sql are. */
static const char bare_frames_sql[] =
    "SELECT s.name FROM stack k JOIN symbol s ON s.id = k.symbol_id WHERE k.id = ?1 ORDER BY k.depth";

/* "a < b < c" into `text`; "" when there are none. */
static int path_text(sqlite3 *db, const char *sql, int64_t a, int64_t b, char **text, struct st_error *err)
{
    size_t size = 0;
    FILE *mem = open_memstream(text, &size);
    int rows;

    if (!mem)
        return st_nomem(err, "a call path");
    rows = each_row(db, sql, a, b, print_frame, mem, err);
    return fclose(mem) || !*text ? st_nomem(err, "a call path") : rows;
}

/* Whether `path`, moved behind it, begins with the frame of n bytes. */
static bool next_frame_is(const char **path, const char *frame, size_t n)
{
    const char *end = strstr(*path, " < ");
    size_t m = end ? (size_t)(end - *path) : strlen(*path);
    bool same = m == n && !strncmp(*path, frame, n);

    *path += m + (end ? 3 : 0);
    return same;
}

/* Whether the frames of `part`, innermost first, stand in `whole` in this order, and both begin with the same
 * one: frame pointers skip the callers of code that has none. What is outside of all of `whole` may be more.
 */
static bool is_same_path(const char *part, const char *whole)
{
    for (int found = 0; *part; found++) {
        const char *end = strstr(part, " < ");
        size_t n = end ? (size_t)(end - part) : strlen(part);
        bool same = false;

        if (found > 1 && !*whole)
            return true;
        do
            same = *whole && next_frame_is(&whole, part, n);
        while (found && *whole && !same);
        if (!same)
            return false;
        part += n + (end ? 3 : 0);
    }
    return true;
}

/* Where it was in the language of its program, and where its waker was. */
static const char runtime_frames_sql[] =
    "SELECT value FROM stall_attr WHERE stall_id = ?1 AND key LIKE 'frame.%' ORDER BY CAST(substr(key, 7) AS "
    "INTEGER)";

static const char waker_runtime_sql[] =
    "SELECT value FROM stall_attr WHERE stall_id = ?1 AND key LIKE 'waker_frame.%' ORDER BY CAST(substr(key, "
    "13) AS INTEGER)";

static const char runtime_sql[] =
    "SELECT substr(value, 1, instr(value || ' ', ' ') - 1) FROM stall_attr WHERE stall_id = ?1 AND key = "
    "'runtime'";

/* With the runtime's name as the line's title. */
static int print_runtime_path(sqlite3 *db, const char *before, const char *sql, int64_t id, FILE *out,
                              struct st_error *err)
{
    char *name = NULL, title[64], whole[80];
    int rc = path_text(db, runtime_sql, id, 0, &name, err);

    if (rc > 0) {
        st_safe_text(title, sizeof(title), name);
        snprintf(whole, sizeof(whole), "%s%s", before, title);
        rc = print_path(db, whole, sql, id, 0, out, err);
    }
    free(name);
    return rc < 0 ? rc : 0;
}

/* Where a thread was at a time, of which its user stack was taken. The trace's open calls of that time have
 * more frames where they are of the same moment; a sample from before it may be elsewhere. */
static int print_measured_path(sqlite3 *db, const char *title, int64_t stack, int64_t thread, int64_t time,
                               FILE *out, struct st_error *err)
{
    char *measured = NULL, *open = NULL;
    int rc = path_text(db, bare_frames_sql, stack, 0, &measured, err);
    bool known = rc > 0;

    if (known)
        rc = path_text(db, open_calls_sql, thread, time, &open, err);
    if (known && rc >= 0 && is_same_path(measured, open))
        fprintf(out, "  %-9s %s\n", title, open);
    else if (known && rc >= 0)
        rc = print_path(db, title, frames_sql, stack, 0, out, err);
    free(measured);
    free(open);
    return rc;
}

/* Where a thread that waited did: its own stack of the wait, if there is one. */
static int print_wait_path(sqlite3 *db, const struct stall *s, FILE *out, struct st_error *err)
{
    if (s->user_stack)
        return print_measured_path(db, "in", s->user_stack, s->thread_id, s->middle, out, err);
    return print_path(db, "in", seen_calls_sql, s->thread_id, s->middle, out, err);
}

static int print_paths(sqlite3 *db, int64_t id, const struct stall *s, FILE *out, struct st_error *err)
{
    int rc = print_runtime_path(db, "", runtime_frames_sql, id, out, err);

    if (!rc)
        rc = s->wait ? print_wait_path(db, s, out, err)
                     : print_path(db, "halfway", seen_calls_sql, s->thread_id, s->middle, out, err);
    if (rc == 0)
        rc = print_path(db, "in", frames_sql, s->user_stack, 0, out, err);
    if (rc >= 0)
        rc = print_path(db, "kernel", frames_sql, s->kernel_stack, 0, out, err);
    if (rc >= 0 && s->waker_thread && s->waker_user_stack)
        rc = print_measured_path(db, "waker in", s->waker_user_stack, s->waker_thread, s->wake, out, err);
    if (rc >= 0)
        rc = print_runtime_path(db, "by ", waker_runtime_sql, id, out, err);
    if (rc >= 0)
        rc = print_path(db, "by kernel", waker_frames_sql, s->waker_stack, 0, out, err);
    return rc < 0 ? rc : 0;
}

/* What would find it, by the largest part. */
static const char advice_sql[] =
    "WITH sums AS (SELECT what, sum(end_ns - start_ns) AS ns, max(who IS NULL AND what = 'waiting') AS "
    "nobody "
    "FROM part GROUP BY what), largest AS (SELECT * FROM sums ORDER BY ns DESC LIMIT 1) SELECT CASE what "
    "WHEN 'not known' THEN 'no context switches of that time were recorded' "
    "WHEN 'running' THEN 'the parts above say in what it ran' "
    "WHEN 'ready' THEN 'a trigger runq, or arm -a, tells who had the CPU' "
    "WHEN 'waiting' THEN CASE WHEN nobody AND EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = ?1 AND key = "
    "'untraced') THEN 'this kernel did not trace who woke it' WHEN nobody AND (SELECT end_ns IS NULL FROM "
    "stall WHERE id = ?1) THEN 'nobody has "
    "woken it yet: where it waits tells for what' WHEN nobody THEN 'who woke it is not recorded: "
    "an offcpu trigger beside this "
    "one "
    "tells, or root with tracefs (doctor)' ELSE 'what its waker did is on the timeline; arm -a records that "
    "of "
    "other processes too' END END FROM largest";

static void print_advice(sqlite3_stmt *stmt, FILE *out, int row)
{
    char advice[256];

    (void)row;
    if (*safe_column(stmt, 0, advice, sizeof(advice)))
        fprintf(out, " (%s)", advice);
}

static int print_not_known(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    int rows;

    fprintf(out, "  cause     not known");
    rows = each_row(db, advice_sql, id, 0, print_advice, out, err);
    fputc('\n', out);
    return rows < 0 ? rows : 0;
}

static int print_causes(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    struct vw_cause cause;
    char print[1024];
    int rc = vw_find_cause(db, id, &cause, err);

    if (!rc && *cause.name)
        fprintf(out, "  cause     %s: %s\n", cause.name, cause.evidence);
    else if (!rc)
        rc = print_not_known(db, id, out, err);
    if (!rc)
        rc = vw_fingerprint(db, id, &cause, print, sizeof(print), err);
    if (!rc)
        fprintf(out, "  alike     %s\n", print);
    return rc;
}

static void print_call(sqlite3_stmt *stmt, FILE *out, int row)
{
    char name[256], module[128], length[32], ago[32];

    if (row == 0)
        fprintf(out, "  the last calls that ended before it:\n");
    fprintf(out, "    %10s before  %*s%s (%s) %s%s\n",
            st_format_duration(sqlite3_column_int64(stmt, 0), ago, sizeof(ago)), sqlite3_column_int(stmt, 4),
            "", safe_column(stmt, 1, name, sizeof(name)), safe_column(stmt, 2, module, sizeof(module)),
            vw_call_bound((unsigned)sqlite3_column_int(stmt, 6)),
            st_format_duration(sqlite3_column_int64(stmt, 3), length, sizeof(length)));
}

static const char last_calls_sql[] =
    "SELECT * FROM (SELECT ?2 - c.start_ns, s.name, m.name, c.duration_ns, 0, c.start_ns, c.flags FROM call "
    "c JOIN "
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
        "  It holds %s calls of %lld thread%s in %s. `report TRACE.db top` lists the functions, `view` shows "
        "the timeline.\n",
        st_format_count((uint64_t)holds[0], calls, sizeof(calls)), (long long)holds[1],
        holds[1] == 1 ? "" : "s", st_format_duration(holds[2], span, sizeof(span)));
    return 0;
}

int vw_find_stall(sqlite3 *db, int64_t *id, struct st_error *err)
{
    return *id ? 0
               : read_numbers(db,
                              "SELECT coalesce((SELECT value FROM meta WHERE key = 'trigger_stall_id'), "
                              "(SELECT id FROM stall ORDER BY duration_ns DESC LIMIT 1))",
                              id, err);
}

int vw_report_why(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    struct stall s = {0};
    int rc = vw_find_stall(db, &id, err);

    if (rc || !id)
        return rc ? rc : no_stall(db, out, err);
    rc = vw_make_parts(db, id, err);
    if (!rc)
        rc = read_head(db, id, out, &s, err);
    if (!rc)
        rc = vw_print_parts(db, out, err);
    if (!rc)
        rc = vw_print_cpu_sleep(db, s.thread_id, out, err);
    if (!rc)
        rc = print_paths(db, id, &s, out, err);
    if (!rc && (s.duration || s.ongoing))
        rc = print_causes(db, id, out, err);
    if (!rc)
        rc = each_row(db, last_calls_sql, s.thread_id, s.start, print_call, out, err);
    return rc < 0 ? rc : 0;
}
