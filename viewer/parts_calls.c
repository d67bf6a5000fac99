/* The functions that a thread was in while it ran in a stall. */
#include "viewer/parts_calls.h"
#include "base/bisect.h"
#include "tracedb/tracedb.h"

struct counter {
    sqlite3 *db;

    int64_t id, thread;

    const vw_runs *runs;

    struct st_error *err;
};

static int failed(struct counter *c)
{
    return st_fail(c->err, ST_EFAIL, "cannot tell in what the thread ran: %s", sqlite3_errmsg(c->db));
}

static sqlite3_stmt *prepare(struct counter *c, const char *sql)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL))
        failed(c);
    return s;
}

static const char scratch_sql[] =
    "DROP TABLE IF EXISTS temp.part_call;"
    "CREATE TEMP TABLE part_call(symbol_id INTEGER, parent_id INTEGER, depth INTEGER, ns INTEGER);";

/* SQL: ran(TIME): how long the thread ran from the stall's start to TIME. */
static void sql_ran(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct counter *c = sqlite3_user_data(ctx);
    int64_t time = sqlite3_value_int64(argv[0]);
    size_t next = st_bisect(i, c->runs->n, c->runs->at[i].start < time);
    const struct vw_run *r = next ? &c->runs->at[next - 1] : NULL;

    (void)argc;
    sqlite3_result_int64(ctx, r ? r->before + (time < r->end ? time : r->end) - r->start : 0);
}

/* Calls that were open in the stall, with what the thread ran meanwhile. Then own time of functions: less
 * what it ran in those that they called. Then the innermost user function that, with what it called, took
 * most. */
static const char calls_sql[] =
    "WITH RECURSIVE up(id) AS (SELECT * FROM (SELECT id FROM call WHERE id "
    ">= " TDB_FIRST_ID("?1", "?2") " AND id < " TDB_END_ID(
        "?1", "?2 + 1") " AND thread_id = ?1 AND start_ns <= ?2 ORDER BY "
                        "start_ns DESC, id DESC LIMIT 1) UNION SELECT c.parent_id FROM "
                        "up JOIN call c ON c.id = up.id WHERE "
                        "c.parent_id IS NOT NULL), "
                        "here(id) AS (SELECT id FROM up UNION ALL SELECT id FROM call "
                        "WHERE id >= " TDB_FIRST_ID("?1", "?2") " AND id < " TDB_END_ID(
                            "?1", "?3") " AND thread_id = ?1 AND start_ns > ?2 AND start_ns "
                                        "< ?3) "
                                        "INSERT INTO part_call SELECT c.symbol_id, "
                                        "c.parent_id, c.depth, ran(c.start_ns + "
                                        "c.duration_ns) - "
                                        "ran(c.start_ns) FROM here JOIN call c ON c.id = "
                                        "here.id WHERE c.start_ns + c.duration_ns > ?2";
static const char functions_sql[] =
    "WITH own AS (SELECT symbol_id, ns FROM part_call UNION ALL SELECT p.symbol_id, -o.ns FROM part_call o "
    "JOIN "
    "call p ON p.id = o.parent_id) "
    "INSERT INTO part_function SELECT s.name, m.name, m.kernel, CAST(total(own.ns) AS INTEGER), ?1 FROM own "
    "JOIN symbol s ON s.id = own.symbol_id JOIN module m ON m.id = s.module_id GROUP BY own.symbol_id HAVING "
    "total(own.ns) > 0";
static const char within_sql[] =
    "INSERT INTO part_within SELECT s.name, o.ns FROM (SELECT symbol_id, depth, CAST(total(ns) AS INTEGER) "
    "AS ns "
    "FROM part_call GROUP BY depth, symbol_id) o JOIN symbol s ON s.id = o.symbol_id JOIN module m ON m.id = "
    "s.module_id WHERE NOT m.kernel AND s.name NOT LIKE '%@plt' AND o.ns * 10 >= ?1 * 6 AND o.ns > 0 ORDER "
    "BY "
    "o.depth DESC LIMIT 1";

static int run_once(struct counter *c, const char *sql, const int64_t *numbers, int n)
{
    sqlite3_stmt *s = prepare(c, sql);
    int rc;

    if (!s)
        return c->err->code;
    for (int i = 0; i < n; i++)
        if (n > 1 || numbers[i] >= 0) /* else it stays NULL */
            sqlite3_bind_int64(s, i + 1, numbers[i]);
    rc = sqlite3_step(s) == SQLITE_DONE ? 0 : failed(c);
    sqlite3_finalize(s);
    return rc;
}

/* By how many samples it is known what the thread did; -1: by every branch. */
static int64_t samples_of(struct counter *c)
{
    sqlite3_stmt *s = prepare(
        c, "SELECT coalesce((SELECT value FROM stall_attr WHERE stall_id = ?1 AND key = 'samples'), 0) WHERE "
           "EXISTS (SELECT 1 FROM meta WHERE key = 'samples')");
    int64_t n = s && !sqlite3_bind_int64(s, 1, c->id) && sqlite3_step(s) == SQLITE_ROW
                    ? sqlite3_column_int64(s, 0)
                    : -1;

    sqlite3_finalize(s);
    return n;
}

int vw_parts_calls(sqlite3 *db, int64_t id, int64_t thread, const vw_runs *runs, struct st_error *err)
{
    struct counter counter = {db, id, thread, runs, err}, *c = &counter;
    const struct vw_run *last = c->runs->n ? &c->runs->at[c->runs->n - 1] : NULL;
    int64_t samples = samples_of(c), ran = last ? last->before + last->end - last->start : 0;
    int rc;

    if (!ran)
        return 0;
    if (sqlite3_exec(db, scratch_sql, NULL, NULL, NULL) ||
        sqlite3_create_function(c->db, "ran", 1, SQLITE_UTF8, c, sql_ran, NULL, NULL))
        return failed(c);
    rc = run_once(c, calls_sql, (const int64_t[]){c->thread, c->runs->at[0].start, last->end}, 3);
    sqlite3_create_function(c->db, "ran", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL);
    if (!rc)
        rc = run_once(c, functions_sql, &samples, 1);
    return rc ? rc : run_once(c, within_sql, &ran, 1);
}
