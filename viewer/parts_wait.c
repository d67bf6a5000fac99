/* The wait of a stall that its record tells more of. */
#include "viewer/parts_wait.h"

static const char table_sql[] =
    "DROP TABLE IF EXISTS temp.wait;"
    "CREATE TEMP TABLE wait(id INTEGER, thread_id INTEGER, kind TEXT, start_ns INTEGER, end_ns INTEGER, "
    "duration_ns INTEGER, state TEXT, syscall TEXT, waker TEXT, waker_thread_id INTEGER, wake_ns INTEGER, "
    "timer TEXT, kernel_stack_id INTEGER, user_stack_id INTEGER, waker_stack_id INTEGER, place TEXT, "
    "has_args INTEGER, looked INTEGER, times INTEGER, slept_ns INTEGER, whole_ns INTEGER, slept TEXT, "
    "asked_ns INTEGER);";

/* A stall that is one wait is it. Of another one, the record keeps the stacks of one wait only: of the one
 * that ended with the wake-up it saw, or of the one in which the stall was noticed, if that still goes on.
 * The record's clock and the switches' may be 100 us apart. */
static const char fill_sql[] =
    "WITH l AS (SELECT stall.*, start_ns + (SELECT value FROM stall_attr WHERE stall_id = stall.id AND key = "
    "'noticed_after_ns') AS noticed FROM stall WHERE id = ?1 AND thread_id IS NOT NULL AND duration_ns > 0), "
    "one AS (SELECT p.* FROM part p JOIN l ON l.kind NOT IN ('offcpu', 'runq', 'irq', 'softirq') WHERE "
    "p.what = 'waiting' AND (abs(p.end_ns - l.wake_ns) <= 100000 OR (l.wake_ns IS NULL AND l.end_ns IS NULL "
    "AND p.start_ns <= l.noticed AND p.end_ns >= l.start_ns + l.duration_ns)) "
    "ORDER BY abs(p.end_ns - coalesce(l.wake_ns, l.start_ns + l.duration_ns)) LIMIT 1), "
    "same AS (SELECT count(*) AS times, sum(p.end_ns - p.start_ns) AS ns FROM part p JOIN one ON p.what = "
    "'waiting' AND p.state IS one.state AND p.syscall IS one.syscall), "
    "w AS (SELECT id, thread_id, kind, start_ns, end_ns, duration_ns, state, syscall, waker, "
    "waker_thread_id, wake_ns, timer, kernel_stack_id, user_stack_id, waker_stack_id, (SELECT place FROM "
    "part WHERE what = 'waiting' ORDER BY end_ns - start_ns DESC LIMIT 1) AS place, 1 AS has_args, 1 AS "
    "looked, 1 AS "
    "times, "
    "CASE WHEN wake_ns BETWEEN start_ns AND start_ns + duration_ns THEN wake_ns - start_ns ELSE duration_ns "
    "END AS slept_ns, duration_ns AS whole_ns FROM l "
    "WHERE kind = 'offcpu' AND state IS NOT 'runnable' UNION ALL "
    "SELECT l.id, l.thread_id, l.kind, one.start_ns, CASE WHEN l.wake_ns IS NULL THEN NULL ELSE one.end_ns "
    "END, one.end_ns - one.start_ns, coalesce(one.state, l.state), one.syscall, l.waker, l.waker_thread_id, "
    "l.wake_ns, l.timer, l.kernel_stack_id, CASE WHEN l.kind = 'syscall' OR l.wake_ns IS NULL THEN "
    "l.user_stack_id END, l.waker_stack_id, one.place, l.kind IN ('syscall', 'busy') AND l.syscall IS "
    "one.syscall, l.kind = 'syscall' OR coalesce(l.noticed BETWEEN one.start_ns AND one.end_ns, 0), "
    "same.times, same.ns, l.duration_ns FROM l JOIN one JOIN same WHERE same.ns * 3 >= "
    "l.duration_ns) "
    "INSERT INTO wait SELECT *, duration(slept_ns) || CASE WHEN slept_ns * 20 < whole_ns * 19 THEN ' of the "
    "' "
    "|| duration(whole_ns) ELSE '' END || CASE WHEN times > 1 THEN ' (' || times || ' times)' ELSE '' END "
    ", (SELECT value FROM stall_attr a WHERE a.stall_id = w.id AND a.key = 'timeout_ns' AND times = 1 AND "
    "looked AND "
    "NOT EXISTS (SELECT 1 FROM stall_attr WHERE stall_id = w.id AND key = 'began_before') AND CASE WHEN "
    "w.end_ns IS NULL THEN value >= slept_ns ELSE w.waker LIKE 'its %time-out' AND slept_ns + "
    "200000 "
    ">= value AND slept_ns - value <= value / 20 + 1000000 END) FROM w";

static int failed(sqlite3 *db, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot tell the wait of the stall: %s", sqlite3_errmsg(db));
}

int vw_parts_wait(sqlite3 *db, int64_t id, struct st_error *err)
{
    sqlite3_stmt *s;
    int step;

    if (sqlite3_exec(db, table_sql, NULL, NULL, NULL) || sqlite3_prepare_v2(db, fill_sql, -1, &s, NULL))
        return failed(db, err);
    sqlite3_bind_int64(s, 1, id);
    step = sqlite3_step(s);
    sqlite3_finalize(s);
    return step == SQLITE_DONE ? 0 : failed(db, err);
}
