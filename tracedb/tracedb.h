/* The trace database: its version, the writer that the decoder uses, the reader that everything after it
 * uses. */
#ifndef ST_TRACEDB_TRACEDB_H
#define ST_TRACEDB_TRACEDB_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* PRAGMA user_version. Rises with every change that an existing query could notice; docs/schema.md has the
 * changelog. */
#define TDB_VERSION 4

/* "stlt": PRAGMA application_id, by which a trace database is told from others. */
#define TDB_APPLICATION_ID 0x73746c74

/* call.flags; docs/schema.md. The view shows the lower byte; TDB_CALL_RECURSIVE is internal to the functions
 * view. */
enum tdb_call_flag {
    TDB_CALL_NO_CALL = 1,   /* call not seen: the start is the segment's edge */
    TDB_CALL_NO_RETURN = 2, /* return not seen */
    TDB_CALL_TAIL = 4,      /* entered by a jump */
    TDB_CALL_INLINED = 8,
    TDB_CALL_INTERPOLATED = 16, /* start or end lies between two points of time */
    TDB_CALL_SAMPLED = 32,
    TDB_CALL_SEVERAL = 64,    /* sampled: may be several calls in a row, so each of them took no longer */
    TDB_CALL_PART = 128,      /* sampled: may be a part of a call, which then took longer */
    TDB_CALL_RECURSIVE = 256, /* an ancestor is the same function: total_ns leaves it out */
};

/* ---- reading ---- */

/* How long a reader waits for another program's transaction. */
enum { TDB_BUSY_MS = 5000 };

/* SQL: a call of thread THREAD whose start is in [FROM, TO) has an id that is at least the first and less
 * than the second (docs/schema.md, Calls by time). All three are SQL too. */
#define TDB_FIRST_ID(thread, from)                                                                           \
    "(SELECT k.id FROM call_time k WHERE k.thread_id = " thread                                              \
    " AND k.start_ns < max(-9223372036854775807, " from ") ORDER BY k.start_ns DESC, k.id DESC LIMIT 1)"
#define TDB_END_ID(thread, to)                                                                               \
    "(SELECT k.id FROM call_time k WHERE k.thread_id = " thread " AND k.start_ns >= " to                     \
    " ORDER BY k.start_ns, k.id LIMIT 1)"

/* SQL: the first id of all calls of a thread, the one behind the last. */
#define TDB_THREAD_FIRST_ID(thread) TDB_FIRST_ID(thread, "-9223372036854775807")
#define TDB_THREAD_END_ID(thread)   TDB_END_ID(thread, "9223372036854775807")

/* Opens a trace database read-only. Where it has no `call_time` (written by an earlier version, or not by the
 * decoder), the connection has one that leads to all calls. ST_EFAIL: cannot be opened; ST_EBADFILE: no
 * database, no trace database, one whose tables are something else than tables, or written by a newer
 * stalltrap (the message names both versions). Its views are those of this stalltrap, whatever the file has
 * under their names. *db is closed with sqlite3_close. A database that is being written stands under another
 * name, so it is never seen half. */
int tdb_open(const char *path, sqlite3 **db, struct st_error *err);

/* What a command that has read databases returns at its end instead of `rc`: the same, or ST_ENOMEM where
 * SQLite ran out of memory meanwhile, since what it answered from then on may lack something. */
int tdb_read_all(int rc, struct st_error *err);

enum { TDB_STATEMENT_S = 60 };

/* From now on a statement of an open database is interrupted when it has taken so many seconds of CPU time;
 * 0: never. tdb_open sets TDB_STATEMENT_S. */
void tdb_bound_statements(sqlite3 *db, unsigned seconds);

/* Whether the ids of a thread's calls are known to be in the order of their starts: as the decoder writes
 * them. */
bool tdb_in_order(sqlite3 *db);

/* ---- writing ---- */

struct tdb_writer;

/* Starts the database that will be `path`: beside its name until tdb_writer_commit. On error nothing is left.
 */
int tdb_writer_open(const char *path, struct tdb_writer **writer, struct st_error *err);

/* The same to the empty file `fd`, open for reading and writing, which stays the caller's: tdb_writer_commit
 * gives it no name, and does not sync it. `path` is what messages call it. */
int tdb_writer_open_fd(int fd, const char *path, struct tdb_writer **writer, struct st_error *err);

/* A call, as its thread sees it. */
struct tdb_span {
    uint64_t start, duration, self;

    uint32_t symbol; /* id of the symbol, less one */

    uint32_t parent; /* 1 + the index of the parent among the thread's calls; 0: none */

    uint32_t depth;

    uint32_t flags; /* enum tdb_call_flag */
};

/* What ran during a call, its children included. */
struct tdb_work {
    uint64_t instructions, cycles; /* both 0: not known; they take no room then */
};

struct tdb_calls; /* tracedb/calls.h */

/* The calls of a thread, sorted by start, parents before their children. Threads come in the order of their
 * ids, each once. `origin` is taken off the starts. The calls stay the caller's and must live until the
 * commit, which writes them. Ids of calls follow each other over the threads, from 1; *before is set to the
 * id of the last call before these. ST_EFAIL: the order; ST_ENOMEM. */
int tdb_add_calls(struct tdb_writer *w, int64_t thread_id, uint64_t origin, const struct tdb_calls *calls,
                  int64_t *before, struct st_error *err);

/* How many threads the commit may use; 1 if not said. */
void tdb_writer_threads(struct tdb_writer *w, unsigned n);

/* How many entries of an index the commit may sort at once (eight bytes each, twice); if not said 16 million.
 * For more it reads the calls several times. */
void tdb_writer_sorts(struct tdb_writer *w, size_t entries);

/* The commit builds no index of `call`, no tiles and no `function_summary`: half of the bytes, for those
 * who read all of it. */
void tdb_writer_bare(struct tdb_writer *w, bool bare);

/* Rows of other tables. Ids are given by the caller, from 1. Strings are copied. */

/* A table by name: `columns` are bound in the order of the table's columns. A NULL text binds NULL.
 */
enum tdb_type { TDB_NULL, TDB_INT, TDB_TEXT };
struct tdb_value {
    enum tdb_type type;

    int64_t number;

    const char *text;
};
#define TDB_N(x) ((struct tdb_value){TDB_INT, (int64_t)(x), NULL})
#define TDB_T(x) ((struct tdb_value){TDB_TEXT, 0, (x)})
#define TDB_0    ((struct tdb_value){TDB_NULL, 0, NULL})
int tdb_add_row(struct tdb_writer *w, const char *table, const struct tdb_value *values, size_t n,
                struct st_error *err);

int tdb_set_meta_text(struct tdb_writer *w, const char *key, const char *value, struct st_error *err);
int tdb_set_meta_number(struct tdb_writer *w, const char *key, int64_t value, struct st_error *err);

/* The connection, for statements that complete rows at the end. */
sqlite3 *tdb_writer_db(struct tdb_writer *w);

/* Writes the calls, their indexes and the summaries (tracedb/tiles.h), syncs, renames to the name (replacing
 * only with `replace`). Frees the writer whatever happens; on error nothing stands under the name. */
int tdb_writer_commit(struct tdb_writer *w, bool replace, struct st_error *err);

/* Drops everything. NULL is allowed. */
void tdb_writer_abort(struct tdb_writer *w);

#endif
