/* Why a thread that was woken did not run yet: its CPU slept. */
#include "base/safetext.h"
#include "base/units.h"
#include "viewer/report.h"

/* Of the parts in which the thread was ready, the one whose CPU woke last: the CPU that the thread then got
 * returned to C0 within it, and had not been there as it began. */
static const char sql[] =
    "WITH got AS (SELECT p.start_ns, p.end_ns, s.cpu FROM part p JOIN slice s ON s.thread_id = ?1 AND "
    "s.start_ns = "
    "p.end_ns WHERE p.what = 'ready'), "
    "woke AS (SELECT g.cpu, m.time_ns - g.start_ns AS slept, g.end_ns - g.start_ns AS ready, m.detail, "
    "(SELECT b.id FROM "
    "mark b WHERE b.time_ns >= g.start_ns AND b.time_ns < m.time_ns AND b.cpu = g.cpu AND b.name IN "
    "('asleep', 'awake') "
    "LIMIT 1) AS before FROM got g JOIN mark m ON m.name = 'awake' AND m.cpu = g.cpu AND m.time_ns > "
    "g.start_ns AND "
    "m.time_ns <= g.end_ns) "
    "SELECT cpu, slept, ready, detail FROM woke WHERE before IS NULL ORDER BY slept DESC LIMIT 1";

static void print_row(sqlite3_stmt *s, FILE *out)
{
    char slept[32], ready[32], detail[256];
    const char *text = (const char *)sqlite3_column_text(s, 3);

    st_safe_text(detail, sizeof(detail), text ? text : "");
    fprintf(
        out,
        "  its CPU   CPU %d slept as the thread was woken, and was awake %s later, of %s that it was ready",
        sqlite3_column_int(s, 0), st_format_duration(sqlite3_column_int64(s, 1), slept, sizeof(slept)),
        st_format_duration(sqlite3_column_int64(s, 2), ready, sizeof(ready)));
    fprintf(out, *detail ? " (%s)\n" : "\n", detail);
}

int vw_print_cpu_sleep(sqlite3 *db, int64_t thread_id, FILE *out, struct st_error *err)
{
    sqlite3_stmt *s;
    int step = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

    if (step == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, thread_id);
        step = sqlite3_step(s);
        if (step == SQLITE_ROW)
            print_row(s, out);
        sqlite3_finalize(s);
    }
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? 0
               : st_fail(err, ST_EFAIL, "cannot tell whether a CPU slept: %s", sqlite3_errmsg(db));
}
