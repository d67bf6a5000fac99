/* Writes a trace database beside its name; it appears whole. */
#include "tracedb/tiles.h"
#include "tracedb/tracedb.h"

#include "base/outfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char tdb_schema_sql[];
extern const char tdb_indexes_sql[];

enum { MOST_TABLES = 24, MOST_COLUMNS = 32, TABLE_NAME = 32 };

/* The prepared INSERT of one table. */
struct insert {
    char table[TABLE_NAME];

    size_t n;

    sqlite3_stmt *statement;
};

struct tdb_writer {
    struct st_outfile file;

    sqlite3 *db;

    struct insert inserts[MOST_TABLES];

    size_t ninserts;

    sqlite3_stmt *call;
};

static int failed(struct tdb_writer *w, const char *what, struct st_error *err)
{
    const char *why = w->db ? sqlite3_errmsg(w->db) : "out of memory";

    if (!w->db || sqlite3_errcode(w->db) == SQLITE_NOMEM)
        return st_nomem(err, what);
    return st_fail(err, ST_EFAIL, "cannot write '%s': %s: %s", w->file.path, what, why);
}

static int run(struct tdb_writer *w, const char *sql, const char *what, struct st_error *err)
{
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL) ? failed(w, what, err) : 0;
}

/* No journal and no syncs: nobody sees the file before it is whole, and st_outfile_commit syncs it. */
static int prepare_file(struct tdb_writer *w, struct st_error *err)
{
    char pragmas[256];
    int rc;

    snprintf(pragmas, sizeof(pragmas),
             "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
             "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             TDB_APPLICATION_ID, TDB_VERSION);
    rc = run(w, pragmas, "preparing the database", err);
    if (!rc)
        rc = run(w, "BEGIN", "preparing the database", err);
    if (!rc)
        rc = run(w, tdb_schema_sql, "creating the tables", err);
    return rc;
}

int tdb_writer_open(const char *path, struct tdb_writer **writer, struct st_error *err)
{
    struct tdb_writer *w = calloc(1, sizeof(*w));
    int rc;

    if (!w)
        return st_nomem(err, "the database writer");
    w->file.fd = -1;
    rc = st_outfile_open(&w->file, path, err);
    if (!rc && sqlite3_open_v2(w->file.temp, &w->db, SQLITE_OPEN_READWRITE, NULL))
        rc = failed(w, "opening", err);
    if (!rc)
        rc = prepare_file(w, err);
    if (rc) {
        tdb_writer_abort(w);
        return rc;
    }
    *writer = w;
    return 0;
}

static int make_insert(struct tdb_writer *w, const char *table, size_t n, sqlite3_stmt **statement,
                       struct st_error *err)
{
    char sql[TABLE_NAME + 32 + 2 * MOST_COLUMNS];
    int len;

    if (n == 0 || n > MOST_COLUMNS || strlen(table) >= TABLE_NAME)
        return st_fail(err, ST_EFAIL, "cannot write '%s': table %s with %zu columns", w->file.path, table, n);
    len = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", table);
    for (size_t i = 1; i < n; i++)
        len += snprintf(sql + len, sizeof(sql) - (size_t)len, ",?");
    snprintf(sql + len, sizeof(sql) - (size_t)len, ")");
    if (sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL))
        return failed(w, table, err);
    return 0;
}

static int find_insert(struct tdb_writer *w, const char *table, size_t n, sqlite3_stmt **statement,
                       struct st_error *err)
{
    struct insert *insert;
    int rc;

    for (size_t i = 0; i < w->ninserts; i++)
        if (w->inserts[i].n == n && !strcmp(w->inserts[i].table, table)) {
            *statement = w->inserts[i].statement;
            return 0;
        }
    if (w->ninserts == MOST_TABLES)
        return st_fail(err, ST_EFAIL, "cannot write '%s': too many tables", w->file.path);
    rc = make_insert(w, table, n, statement, err);
    if (rc)
        return rc;
    insert = &w->inserts[w->ninserts++];
    strcpy(insert->table, table);
    insert->n = n;
    insert->statement = *statement;
    return 0;
}

static int step(struct tdb_writer *w, sqlite3_stmt *statement, const char *table, struct st_error *err)
{
    int rc = sqlite3_step(statement) == SQLITE_DONE ? 0 : failed(w, table, err);

    sqlite3_reset(statement);
    return rc;
}

static int bind(sqlite3_stmt *statement, int column, const struct tdb_value *value)
{
    if (value->type == TDB_INT)
        return sqlite3_bind_int64(statement, column, value->number);
    if (value->type == TDB_TEXT && value->text)
        return sqlite3_bind_text(statement, column, value->text, -1, SQLITE_TRANSIENT);
    return sqlite3_bind_null(statement, column);
}

int tdb_add_row(struct tdb_writer *w, const char *table, const struct tdb_value *values, size_t n,
                struct st_error *err)
{
    sqlite3_stmt *statement;
    int rc = find_insert(w, table, n, &statement, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (bind(statement, (int)i + 1, &values[i]))
            return failed(w, table, err);
    return step(w, statement, table, err);
}

int tdb_add_call(struct tdb_writer *w, const struct tdb_call *call, struct st_error *err)
{
    sqlite3_stmt *s = w->call;

    if (!s) {
        int rc = make_insert(w, "call", 9, &w->call, err);

        if (rc)
            return rc;
        s = w->call;
    }
    sqlite3_bind_int64(s, 1, call->id);
    sqlite3_bind_int64(s, 2, call->thread_id);
    sqlite3_bind_int64(s, 3, call->symbol_id);
    if (call->parent_id)
        sqlite3_bind_int64(s, 4, call->parent_id);
    else
        sqlite3_bind_null(s, 4);
    sqlite3_bind_int(s, 5, call->depth);
    sqlite3_bind_int64(s, 6, call->start_ns);
    sqlite3_bind_int64(s, 7, call->duration_ns);
    sqlite3_bind_int64(s, 8, call->self_ns);
    sqlite3_bind_int64(s, 9, call->flags);
    return step(w, s, "call", err);
}

int tdb_set_meta_text(struct tdb_writer *w, const char *key, const char *value, struct st_error *err)
{
    return tdb_add_row(w, "meta", (struct tdb_value[]){TDB_T(key), TDB_T(value)}, 2, err);
}

int tdb_set_meta_number(struct tdb_writer *w, const char *key, int64_t value, struct st_error *err)
{
    return tdb_add_row(w, "meta", (struct tdb_value[]){TDB_T(key), TDB_N(value)}, 2, err);
}

sqlite3 *tdb_writer_db(struct tdb_writer *w)
{
    return w->db;
}

static void finalize(struct tdb_writer *w)
{
    for (size_t i = 0; i < w->ninserts; i++)
        sqlite3_finalize(w->inserts[i].statement);
    w->ninserts = 0;
    sqlite3_finalize(w->call);
    w->call = NULL;
}

int tdb_writer_commit(struct tdb_writer *w, bool replace, struct st_error *err)
{
    int rc;

    finalize(w);
    rc = run(w, tdb_indexes_sql, "building the indexes", err);
    if (!rc)
        rc = tdb_build_tiles(w->db, err);
    if (!rc)
        rc = run(w, "PRAGMA analysis_limit = 1000; ANALYZE", "analysing the tables", err);
    if (!rc)
        rc = run(w, "COMMIT", "committing", err);
    if (!rc && sqlite3_close(w->db))
        rc = failed(w, "closing", err);
    else if (!rc)
        w->db = NULL;
    if (!rc)
        rc = st_outfile_commit(&w->file, replace, err);
    tdb_writer_abort(w);
    return rc;
}

void tdb_writer_abort(struct tdb_writer *w)
{
    if (!w)
        return;
    finalize(w);
    sqlite3_close(w->db);
    st_outfile_abort(&w->file);
    free(w);
}
