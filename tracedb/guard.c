/* What a schema may be: SQLite's own advice for files of others (sqlite.org/security.html), and our tables.
 */
#include "tracedb/guard.h"
#include "tracedb/tracedb.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

extern const char tdb_schema_sql[];

enum {
    LONGEST = 256 << 20, /* bytes of a value */
    LOOK_EVERY = 1000000 /* steps of SQLite's machine, some 10 ms */
};

static unsigned bound; /* s */

static _Thread_local uint64_t began; /* the statement that began last, thread CPU time */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int on_statement(unsigned what, void *ctx, void *statement, void *text)
{
    (void)what;
    (void)ctx;
    (void)statement;
    (void)text;
    began = cpu_ns();
    return 0;
}

static int is_late(void *ctx)
{
    (void)ctx;
    return cpu_ns() - began > (uint64_t)bound * 1000000000;
}

void tdb_bound_statements(sqlite3 *db, unsigned seconds)
{
    bound = seconds;
    began = cpu_ns();
    if (seconds)
        sqlite3_progress_handler(db, LOOK_EVERY, is_late, NULL);
    else
        sqlite3_progress_handler(db, 0, NULL, NULL);
}

static int bad(const char *path, const char *name, struct st_error *err)
{
    st_fail(err, ST_EBADFILE,
            "'%s' is no trace database that stalltrap wrote: '%s' in it is not a plain table", path, name);
    return st_hint(err, "decode the snapshot again");
}

/* Whether the file has the table, and it is one whose rows are what is stored: no view, no virtual table, no
 * computed column. 1: so it is, 0: there is none, -1: it is something else, -2: SQLite failed. */
static int is_plain(sqlite3 *db, const char *name)
{
    static const char sql[] =
        "SELECT type = 'table' AND rootpage > 0 AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE "
        "hidden <> 0) FROM main.sqlite_schema WHERE name = ?1 COLLATE NOCASE";
    sqlite3_stmt *s;
    int rc = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
        return -2;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    while (rc >= 0 && sqlite3_step(s) == SQLITE_ROW)
        rc = sqlite3_column_int(s, 0) ? 1 : -1;
    return sqlite3_finalize(s) ? -2 : rc;
}

/* A view of this connection, which goes before the file's. */
static int shadow(sqlite3 *db, const char *sql)
{
    static const char create[] = "CREATE VIEW ";
    char *own;
    int rc;

    if (strncmp(sql, create, sizeof(create) - 1) != 0)
        return -1;
    own = sqlite3_mprintf("CREATE TEMP VIEW %s", sql + sizeof(create) - 1);
    rc = own ? sqlite3_exec(db, own, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(own);
    return rc;
}

static int check_each(sqlite3 *db, sqlite3_stmt *ours, bool same_version, const char *path,
                      struct st_error *err)
{
    int step, plain;

    while ((step = sqlite3_step(ours)) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(ours, 0);
        const char *name = (const char *)sqlite3_column_text(ours, 1);
        const char *sql = (const char *)sqlite3_column_text(ours, 2);

        if (!type || !name || !sql)
            return st_nomem(err, "the schema");
        plain = strcmp(type, "table") ? 0 : is_plain(db, name);
        if (plain == -1)
            return bad(path, name, err);
        if (plain < 0 || (!strcmp(type, "view") && same_version && shadow(db, sql)))
            return st_fail(err, ST_EBADFILE, "cannot read '%s': %s", path, sqlite3_errmsg(db));
    }
    return step == SQLITE_DONE ? 0 : st_nomem(err, "the schema");
}

/* *same: whether it is of the schema that we know. */
static int read_version(sqlite3 *db, const char *path, bool *same, struct st_error *err)
{
    sqlite3_stmt *version = NULL;
    int step = SQLITE_ERROR;

    if (!sqlite3_prepare_v2(db, "PRAGMA main.user_version", -1, &version, NULL)) {
        step = sqlite3_step(version);
        *same = step == SQLITE_ROW && sqlite3_column_int(version, 0) == TDB_VERSION;
    }
    sqlite3_finalize(version);
    return step == SQLITE_ROW ? 0
                              : st_fail(err, ST_EBADFILE, "cannot read '%s': %s", path, sqlite3_errmsg(db));
}

int tdb_guard(sqlite3 *db, const char *path, struct st_error *err)
{
    sqlite3_stmt *ours = NULL;
    sqlite3 *schema = NULL;
    bool same = false;
    int rc;

    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST);
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_statement, NULL);
    tdb_bound_statements(db, TDB_STATEMENT_S);
    rc = read_version(db, path, &same, err);
    if (rc)
        return rc;
    if (sqlite3_open(":memory:", &schema) || sqlite3_exec(schema, tdb_schema_sql, NULL, NULL, NULL) ||
        sqlite3_prepare_v2(schema, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL", -1,
                           &ours, NULL))
        rc = st_nomem(err, "the schema");
    else
        rc = check_each(db, ours, same, path, err);
    sqlite3_finalize(ours);
    sqlite3_close(schema);
    return rc;
}
