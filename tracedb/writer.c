/* Writes a trace database beside its name; it appears whole. */
#include "tracedb/bulk.h"
#include "tracedb/calls.h"
#include "tracedb/descriptor.h"
#include "tracedb/summary.h"
#include "tracedb/tracedb.h"

#include "base/outfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char tdb_schema_sql[];
extern const char tdb_indexes_sql[];

enum { MOST_TABLES = 24, MOST_COLUMNS = 32, TABLE_NAME = 32, SORTS = 16 << 20 };

/* The prepared INSERT of one table. */
struct insert {
    char table[TABLE_NAME];

    size_t n;

    sqlite3_stmt *statement;
};

struct tdb_writer {
    struct st_outfile file; /* path: for messages */

    bool given; /* the file is the caller's to name */

    sqlite3 *db;

    struct insert inserts[MOST_TABLES];

    size_t ninserts;

    tdb_threads threads;

    int64_t calls;

    unsigned workers;

    size_t sorts;

    bool bare;
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
static int open_file(struct tdb_writer *w, struct st_error *err)
{
    if (tdb_open_descriptor(w->file.fd, &w->db))
        return failed(w, "opening", err);
    return run(w,
               "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
               "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;",
               "opening", err);
}

static int prepare_file(struct tdb_writer *w, struct st_error *err)
{
    char pragmas[256];
    int rc;

    snprintf(pragmas, sizeof(pragmas),
             "PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE; PRAGMA application_id = %d; PRAGMA "
             "user_version = %d;",
             TDB_APPLICATION_ID, TDB_VERSION);
    rc = run(w, pragmas, "preparing the database", err);
    if (!rc)
        rc = run(w, "BEGIN", "preparing the database", err);
    if (!rc)
        rc = run(w, tdb_schema_sql, "creating the tables", err);
    return rc;
}

static int start(struct tdb_writer *w, struct tdb_writer **writer, struct st_error *err)
{
    int rc = open_file(w, err);

    if (!rc)
        rc = prepare_file(w, err);
    if (rc) {
        tdb_writer_abort(w);
        return rc;
    }
    *writer = w;
    return 0;
}

static struct tdb_writer *new_writer(struct st_error *err)
{
    struct tdb_writer *w = calloc(1, sizeof(*w));

    if (!w) {
        st_nomem(err, "the database writer");
        return NULL;
    }
    w->file.fd = -1;
    w->sorts = SORTS;
    return w;
}

int tdb_writer_open(const char *path, struct tdb_writer **writer, struct st_error *err)
{
    struct tdb_writer *w = new_writer(err);
    int rc;

    if (!w)
        return ST_ENOMEM;
    rc = st_outfile_open(&w->file, path, err);
    if (!rc)
        return start(w, writer, err);
    tdb_writer_abort(w);
    return rc;
}

int tdb_writer_open_fd(int fd, const char *path, struct tdb_writer **writer, struct st_error *err)
{
    struct tdb_writer *w = new_writer(err);

    if (!w)
        return ST_ENOMEM;
    w->given = true;
    w->file.fd = fd;
    snprintf(w->file.path, sizeof(w->file.path), "%s", path);
    return start(w, writer, err);
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

/* ---- calls ---- */

void tdb_writer_threads(struct tdb_writer *w, unsigned n)
{
    w->workers = n;
}

void tdb_writer_sorts(struct tdb_writer *w, size_t entries)
{
    w->sorts = entries;
}

void tdb_writer_bare(struct tdb_writer *w, bool bare)
{
    w->bare = bare;
}

static int out_of_order(struct tdb_writer *w, int64_t thread, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot write '%s': the calls of thread %lld are out of order",
                   w->file.path, (long long)thread);
}

static int add_thread(struct tdb_writer *w, int64_t id, struct st_error *err)
{
    const struct tdb_thread *last = w->threads.n ? &w->threads.at[w->threads.n - 1] : NULL;

    if (last && last->id >= id)
        return out_of_order(w, id, err);
    if (st_vec_push(&w->threads, (struct tdb_thread){.id = id, .before = w->calls}))
        return st_nomem(err, "the calls");
    return 0;
}

int tdb_add_calls(struct tdb_writer *w, int64_t thread_id, uint64_t origin, const struct tdb_calls *calls,
                  int64_t *before, struct st_error *err)
{
    struct tdb_thread *t;
    int rc;

    if (calls->disorder || (calls->n && calls->first.start < origin))
        return out_of_order(w, thread_id, err);
    rc = add_thread(w, thread_id, err);
    if (rc)
        return rc;
    t = &w->threads.at[w->threads.n - 1];
    t->origin = origin;
    t->calls = calls;
    t->n = calls->n;
    *before = w->calls;
    w->calls += (int64_t)calls->n;
    return 0;
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
}

static int close_db(struct tdb_writer *w, struct st_error *err)
{
    if (sqlite3_close(w->db))
        return failed(w, "closing", err);
    w->db = NULL;
    return 0;
}

/* The trees of the calls are written while SQLite has the file closed. */
static int write_calls(struct tdb_writer *w, struct st_error *err)
{
    struct tdb_roots roots;
    int rc = tdb_find_roots(w->db, &roots, err);

    if (w->bare)
        roots.tile = 0;
    if (!rc)
        rc = run(w, "COMMIT", "committing", err);
    if (!rc)
        rc = close_db(w, err);
    if (!rc)
        rc = tdb_write_bulk(w->file.fd, w->file.path, &roots, &w->threads, w->workers, w->sorts, err);
    return rc ? rc : open_file(w, err);
}

int tdb_writer_commit(struct tdb_writer *w, bool replace, struct st_error *err)
{
    int rc;

    finalize(w);
    rc = run(w, tdb_indexes_sql, "building the indexes", err);
    if (!rc && w->bare)
        rc = run(w, "DROP INDEX call_symbol; DROP INDEX call_parent", "building the indexes", err);
    if (!rc)
        rc = tdb_summarize(w->db, &w->threads, w->bare, err);
    if (!rc)
        rc = write_calls(w, err);
    if (!rc)
        rc = run(w, "PRAGMA analysis_limit = 1000; ANALYZE", "analysing the tables", err);
    if (!rc)
        rc = close_db(w, err);
    if (!rc && !w->given)
        rc = st_outfile_commit(&w->file, replace, err);
    tdb_writer_abort(w);
    return rc;
}

static void free_thread(struct tdb_thread *t)
{
    st_vec_free(&t->offcpu);
    st_vec_free(&t->slices);
}

void tdb_writer_abort(struct tdb_writer *w)
{
    if (!w)
        return;
    finalize(w);
    sqlite3_close(w->db);
    st_outfile_abort(&w->file);
    for (size_t i = 0; i < w->threads.n; i++)
        free_thread(&w->threads.at[i]);
    st_vec_free(&w->threads);
    free(w);
}
