/* report FOLDER: its traces, grouped by what their stalls have in common. */
#include "base/log.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/functions.h"
#include "viewer/parts.h"
#include "viewer/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char trace_sql[] =
    "CREATE TABLE trace(file TEXT, stall_id INTEGER, at_ns INTEGER, duration_ns INTEGER, fingerprint TEXT)";

static const char groups_sql[] =
    "SELECT count(*) AS times, strftime('%Y-%m-%d %H:%M:%S', min(at_ns) / 1000000000, 'unixepoch') AS first, "
    "strftime('%Y-%m-%d %H:%M:%S', max(at_ns) / 1000000000, 'unixepoch') AS last, max(duration_ns) AS "
    "worst_ns, (SELECT "
    "w.file FROM trace w WHERE w.fingerprint = t.fingerprint ORDER BY w.duration_ns DESC, w.file LIMIT 1) AS "
    "open, "
    "fingerprint FROM trace t GROUP BY fingerprint ORDER BY times DESC, worst_ns DESC, fingerprint LIMIT ?1";

static int failed(sqlite3 *db, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot group the traces: %s", sqlite3_errmsg(db));
}

/* Start on the wall clock (NULL: not known), and duration. */
static int add_trace(sqlite3 *all, sqlite3 *db, const char *file, int64_t id, const char *print,
                     struct st_error *err)
{
    sqlite3_stmt *s, *insert;
    int rc = 0;

    if (sqlite3_prepare_v2(
            db,
            "SELECT start_ns + (SELECT value FROM meta WHERE key = 'origin_perf_ns') + (SELECT value "
            "FROM meta WHERE key = 'wall_offset_ns'), duration_ns FROM stall WHERE id = ?1",
            -1, &s, NULL))
        return failed(db, err);
    if (sqlite3_prepare_v2(all, "INSERT INTO trace VALUES (?1, ?2, ?3, ?4, ?5)", -1, &insert, NULL)) {
        sqlite3_finalize(s);
        return failed(all, err);
    }
    sqlite3_bind_int64(s, 1, id);
    if (sqlite3_step(s) == SQLITE_ROW) {
        sqlite3_bind_text(insert, 1, file, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(insert, 2, id);
        sqlite3_bind_value(insert, 3, sqlite3_column_value(s, 0));
        sqlite3_bind_int64(insert, 4, sqlite3_column_int64(s, 1));
        sqlite3_bind_text(insert, 5, print, -1, SQLITE_TRANSIENT);
        if (sqlite3_step(insert) != SQLITE_DONE)
            rc = failed(all, err);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(insert);
    return rc;
}

static int read_trace(sqlite3 *all, const char *path, struct st_error *err)
{
    struct vw_cause cause;
    char print[1024];
    sqlite3 *db;
    int64_t id = 0;
    int rc = tdb_open(path, &db, err);

    if (rc)
        return rc;
    rc = vw_add_functions(db, err);
    if (!rc)
        rc = vw_find_stall(db, &id, err);
    if (!rc && id)
        rc = vw_make_parts(db, id, err);
    if (!rc && id)
        rc = vw_find_cause(db, id, &cause, err);
    if (!rc && id)
        rc = vw_fingerprint(db, id, &cause, print, sizeof(print), err);
    if (!rc && id)
        rc = add_trace(all, db, path, id, print, err);
    sqlite3_close(db);
    return rc;
}

static int is_trace(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return e->d_name[0] != '.' && n > 3 && !strcmp(e->d_name + n - 3, ".db");
}

/* Traces that cannot be read are told, and left out. */
static int read_folder(sqlite3 *all, const char *folder, struct st_error *err)
{
    struct dirent **names;
    int n = scandir(folder, &names, is_trace, alphasort);

    if (n < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot list '%s'", folder);
    for (int i = 0; i < n; i++) {
        struct st_error why = {0};
        char path[4096];
        size_t length = strlen(folder);

        snprintf(path, sizeof(path), "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                 names[i]->d_name);
        if (read_trace(all, path, &why))
            st_log_error("report", &why);
        free(names[i]);
    }
    free(names);
    return n ? 0 : st_fail(err, ST_EFAIL, "'%s' holds no trace databases (*.db)", folder);
}

int vw_report_folder(const char *folder, enum vw_format format, long limit, FILE *out, struct st_error *err)
{
    sqlite3 *all = NULL;
    sqlite3_stmt *s;
    long rows;
    int rc;

    if (sqlite3_open(":memory:", &all) || sqlite3_exec(all, trace_sql, NULL, NULL, NULL))
        rc = failed(all, err);
    else
        rc = read_folder(all, folder, err);
    if (!rc && sqlite3_prepare_v2(all, groups_sql, -1, &s, NULL))
        rc = failed(all, err);
    if (!rc) {
        sqlite3_bind_int64(s, 1, limit ? limit : -1);
        rows = vw_print_rows(s, format, VW_DURATIONS, out, vw_terminal_width(out), err);
        rc = rows < 0 ? (int)rows : 0;
        sqlite3_finalize(s);
    }
    sqlite3_close(all);
    return rc;
}
