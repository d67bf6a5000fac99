/* Opens a trace database for reading, after checking that it is one. */
#include "base/infile.h"
#include "tracedb/descriptor.h"
#include "tracedb/guard.h"
#include "tracedb/tracedb.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One integer PRAGMA. Returns 0, or an SQLite error code with *value untouched. */
static int pragma_number(sqlite3 *db, const char *sql, int64_t *value)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    if (rc)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 0 : rc;
}

static int check(sqlite3 *db, const char *path, struct st_error *err)
{
    int64_t application = 0, version = 0;
    int rc = pragma_number(db, "PRAGMA application_id", &application);

    if (!rc)
        rc = pragma_number(db, "PRAGMA user_version", &version);
    if (rc == SQLITE_NOTADB)
        return st_fail(err, ST_EBADFILE, "'%s' is not a trace database (not SQLite)", path);
    if (rc)
        return st_fail(err, ST_EBADFILE, "cannot read '%s': %s", path, sqlite3_errmsg(db));
    if (application != TDB_APPLICATION_ID)
        return st_fail(err, ST_EBADFILE, "'%s' is an SQLite database, but not a trace database of stalltrap",
                       path);
    if (version > TDB_VERSION) {
        st_fail(err, ST_EBADFILE, "'%s' has schema version %lld; this stalltrap knows up to version %d", path,
                (long long)version, TDB_VERSION);
        return st_hint(err, "decode the snapshot again with this stalltrap, or use a newer one");
    }
    if (version < 1)
        return st_fail(err, ST_EBADFILE, "'%s' has schema version %lld, which never was", path,
                       (long long)version);
    return 0;
}

static bool is_folder(const char *path)
{
    int fd = st_infile_open(path, ST_INFILE_FOLDER);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* SQLite says no more than "unable to open database file", takes an empty file for an empty database, and
 * opens a device to see what it is. */
static int check_file(const char *path, struct st_error *err)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    struct stat st;

    if (fd < 0 && errno == ENODEV) {
        if (!is_folder(path))
            return st_fail(err, ST_EBADFILE, "'%s' is no regular file", path);
        errno = EISDIR;
    }
    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open '%s'", path);
    if (fstat(fd, &st))
        st.st_size = 0;
    close(fd);
    return st.st_size ? 0 : st_fail(err, ST_EBADFILE, "'%s' is empty", path);
}

static bool any_row(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    bool any;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
        return false;
    any = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return any;
}

/* Tables that a database may lack, as views of the connection. Of the ids nothing is known there. */
static const char times_sql[] = "CREATE TEMP VIEW call_time(thread_id, start_ns, id) AS "
                                "SELECT id, -9223372036854775808, -9223372036854775808 FROM thread UNION ALL "
                                "SELECT id, 9223372036854775807, 9223372036854775807 FROM thread";
static const char lines_sql[] =
    "CREATE TEMP VIEW stack_line(stack_id, depth, level, function, file, line) AS "
    "SELECT 0, 0, 0, NULL, '', 0 WHERE 0";
/* Its readers count by themselves where it is empty. */
static const char functions_sql[] =
    "CREATE TEMP VIEW function_summary(symbol_id, calls, self_ns, total_ns, min_ns, max_ns) AS "
    "SELECT 0, 0, 0, 0, 0, 0 WHERE 0";

static bool add_view(sqlite3 *db, const char *wanted, const char *sql)
{
    return any_row(db, wanted) || sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static int complete(sqlite3 *db, const char *path, struct st_error *err)
{
    if (add_view(db, "SELECT 1 FROM call_time", times_sql) &&
        add_view(db, "SELECT 1 FROM sqlite_schema WHERE name = 'stack_line'", lines_sql) &&
        add_view(db, "SELECT 1 FROM sqlite_schema WHERE name = 'function_summary'", functions_sql))
        return 0;
    return st_fail(err, ST_EFAIL, "cannot read '%s': %s", path, sqlite3_errmsg(db));
}

bool tdb_in_order(sqlite3 *db)
{
    return !any_row(db, "SELECT 1 FROM temp.sqlite_schema WHERE name = 'call_time'");
}

/* A file in WAL mode without its log is opened as one that does not change: SQLite would put two more files
 * beside it. Returns its URI, to be freed with sqlite3_free, or NULL for every other file. */
static char *unchanging(const char *path)
{
    unsigned char modes[2] = {0};
    sqlite3_str *uri;
    char log[PATH_MAX];
    int fd = st_infile_open(path, ST_INFILE_FILE);
    bool wal = fd >= 0 && pread(fd, modes, 2, 18) == 2 && modes[0] == 2 && modes[1] == 2;

    if (fd >= 0)
        close(fd);
    snprintf(log, sizeof(log), "%s-wal", path);
    if (!wal || !access(log, F_OK))
        return NULL;
    uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, path[0] == '/' ? "file://" : "file:");
    for (; *path; path++)
        sqlite3_str_appendf(uri, strchr("?#%", *path) ? "%%%02X" : "%c", (unsigned char)*path);
    sqlite3_str_appendall(uri, "?immutable=1");
    return sqlite3_str_finish(uri);
}

int tdb_open(const char *path, sqlite3 **db, struct st_error *err)
{
    sqlite3 *opened = NULL;
    int rc = check_file(path, err);
    char *uri;

    if (rc)
        return rc;
    tdb_watch_memory();
    uri = unchanging(path);
    rc = uri ? sqlite3_open_v2(uri, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL)
             : tdb_open_path(path, &opened);
    sqlite3_free(uri);
    if (rc) {
        rc = st_fail(err, ST_EFAIL, "cannot open '%s': %s", path,
                     opened ? sqlite3_errmsg(opened) : "out of memory");
        sqlite3_close(opened);
        return rc;
    }
    sqlite3_busy_timeout(opened, TDB_BUSY_MS);
    rc = check(opened, path, err);
    if (!rc)
        rc = tdb_guard(opened, path, err);
    if (!rc)
        rc = complete(opened, path, err);
    rc = tdb_read_all(rc, err);
    if (rc) {
        sqlite3_close(opened);
        return rc;
    }
    *db = opened;
    return 0;
}
