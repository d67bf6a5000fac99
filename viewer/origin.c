/* The head of a report: when and where a stall was recorded, in what program, and how. */
#include "base/safetext.h"
#include "viewer/report.h"

/* Rows of a title and a text. What the trace does not say has no row. ?1: the stall. */
static const char origin_sql[] =
    "WITH m AS (SELECT (SELECT value FROM meta WHERE key = 'wall_offset_ns') AS wall, (SELECT value FROM "
    "meta "
    "WHERE key = 'origin_perf_ns') AS origin, (SELECT value FROM meta WHERE key = 'hostname') AS host, "
    "(SELECT "
    "value FROM meta WHERE key = 'kernel') AS kernel, (SELECT value FROM meta WHERE key = 'source') AS "
    "source, "
    "(SELECT value FROM meta WHERE key = 'traced') AS traced, (SELECT value FROM meta WHERE key = "
    "'sample_period_ns') AS period, (SELECT value FROM meta WHERE key = 'history_end_ns') - (SELECT value "
    "FROM "
    "meta WHERE key = 'history_start_ns') AS history), "
    "l AS (SELECT s.start_ns, p.pid, p.name, (SELECT value FROM meta WHERE key = 'command.' || p.pid) AS "
    "command, "
    "coalesce((SELECT value FROM meta WHERE key = 'build_id.' || p.pid), (SELECT x.build_id FROM module x "
    "WHERE x.path = (SELECT value FROM meta WHERE key = 'exe.' || p.pid))) AS "
    "build FROM stall s LEFT JOIN thread t ON t.id = s.thread_id LEFT JOIN process p ON p.id = t.process_id "
    "WHERE "
    "s.id = ?1), "
    "w AS (SELECT l.start_ns + m.origin + m.wall AS ns FROM l JOIN m) "
    "SELECT 'when', strftime('%Y-%m-%d %H:%M:%S', ns / 1000000000, 'unixepoch') || printf('.%03d UTC', ns / "
    "1000000 % 1000) || coalesce(' on ' || m.host, '') || coalesce(', Linux ' || m.kernel, '') FROM w JOIN m "
    "WHERE ns > 0 "
    "UNION ALL SELECT 'program', coalesce(command, name) || ' (pid ' || pid || coalesce(', build id ' || "
    "build, "
    "'') || ')' FROM l WHERE pid IS NOT NULL AND (command IS NOT NULL OR build IS NOT NULL) "
    "UNION ALL SELECT 'recorded', 'by ' || source || coalesce(', ' || traced, '') || coalesce(', a sample "
    "each ' "
    "|| duration(period), '') || coalesce('; ' || duration(history) || ' of history', '') FROM m WHERE "
    "source IS "
    "NOT NULL";

int vw_print_origin(sqlite3 *db, int64_t id, FILE *out, struct st_error *err)
{
    sqlite3_stmt *s;
    char text[1024];
    int step;

    if (sqlite3_prepare_v2(db, origin_sql, -1, &s, NULL))
        return st_fail(err, ST_EFAIL, "cannot read where the trace is from: %s", sqlite3_errmsg(db));
    sqlite3_bind_int64(s, 1, id);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *value = (const char *)sqlite3_column_text(s, 1);

        st_safe_text(text, sizeof(text), value ? value : "");
        if (*text)
            fprintf(out, "  %-9s %s\n", (const char *)sqlite3_column_text(s, 0), text);
    }
    sqlite3_finalize(s);
    return step == SQLITE_DONE
               ? 0
               : st_fail(err, ST_EFAIL, "cannot read where the trace is from: %s", sqlite3_errmsg(db));
}
