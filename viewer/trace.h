/* What the timeline reads of a trace database. Times are the database's: ns since its origin. */
#ifndef ST_VIEWER_TRACE_H
#define ST_VIEWER_TRACE_H

#include "base/error.h"
#include "tracedb/tiles.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread's track. Owned by the trace. */
struct vw_thread {
    int64_t id;

    int64_t pid, tid;

    char *name; /* printable */

    int64_t calls;

    int depths; /* rows it needs: deepest call + 1 */

    int first_level, last_level; /* of its tiles; -1: it has none */

    bool collapsed, pinned;
};

/* A function's names, printable and cut. */
struct vw_symbol {
    int64_t id;

    uint32_t colour; /* the same for all functions of a module */

    bool kernel;

    char name[200], module[72];
};

/* A time of which something is missing. Owned by the trace. */
struct vw_gap {
    int64_t thread_id; /* 0: not of one thread */

    int64_t start, end;

    int64_t until; /* the latest end of this one and of all of its thread before it */
};

/* A prepared statement and its text. Owned by the trace. */
struct vw_statement {
    char *sql;

    sqlite3_stmt *stmt;
};

enum { VW_SYMBOLS = 4096, VW_STATEMENTS = 32 };

struct vw_trace {
    sqlite3 *db;

    char *path; /* printable */

    struct vw_thread *threads; /* the stalled one first, then by number of calls */

    int nthreads;

    int64_t *cpus; /* their numbers, ascending */

    int ncpus;

    int64_t start, end; /* of everything there is; end > start */

    int64_t stall_id; /* the stall that fired; 0: none */

    int64_t stall_start, stall_end, stall_thread; /* its thread; 0: of none */

    char *stall_text; /* one printable line; NULL: none */

    int64_t sampled_ns; /* the calls are of samples, so far apart (1: not known how far); 0: they are not */

    bool summarised; /* it has the tables `summary` and `tile` */

    bool counted; /* it has the table `function_summary` */

    bool sourced; /* it has the table `source`, and counts of instructions (version 3) */

    struct vw_gap *gaps; /* by thread_id and start */

    size_t ngaps;

    sqlite3_stmt *in_window, *around, *tiles, *symbol, *slice, *next_slice, *hold, *release;

    struct vw_statement kept[VW_STATEMENTS]; /* the others that were asked for */

    int next_kept;

    struct vw_symbol *symbols; /* the last ones that were asked for, by id modulo VW_SYMBOLS */
};

/* ST_EFAIL: "cannot read TRACE: " and SQLite's message. */
int vw_sql_failed(struct vw_trace *t, struct st_error *err);

/* A statement for that text, prepared once; the trace owns it, who asks resets it when done. ST_EFAIL,
 * ST_ENOMEM. */
int vw_statement(struct vw_trace *t, const char *sql, sqlite3_stmt **stmt, struct st_error *err);

/* Keeps the database as it is until it is released: statements in between lock it and look for changes once,
 * not each for itself. */
void vw_trace_hold(struct vw_trace *t);
void vw_trace_release(struct vw_trace *t);

/* The names of a symbol; empty when there is none of that id. Valid until the next call. */
const struct vw_symbol *vw_symbol(struct vw_trace *t, int64_t id);

/* The level of a thread's tiles for columns of that length; -1: calls are to be read one by one (they are
 * few, or the database has no tiles). */
int vw_level(const struct vw_thread *thread, int64_t column_ns);

/* The part of a thread's tiles that is wanted: of one level, depths from `depth` to `last_depth`, times from
 * `from` to before `to`. */
struct vw_part {
    int level, depth, last_depth;

    int64_t from, to;
};

/* Calls fn for each block that overlaps the part and began not before the tile of `from`; what was open at
 * `from` is told by vw_calls_at. Of one depth they come in the order of time. A depth of TDB_DEPTH_OFFCPU or
 * TDB_DEPTH_SLICE gives spans. */
typedef int vw_block_fn(void *ctx, int depth, const struct tdb_block *b);
int vw_each_block(struct vw_trace *t, const struct vw_thread *thread, const struct vw_part *part,
                  vw_block_fn *fn, void *ctx, struct st_error *err);

/* One call as the timeline needs it. */
struct vw_call {
    int64_t id, parent_id;

    int64_t start, end, self;

    int64_t symbol_id;

    int depth;

    unsigned flags; /* enum tdb_call_flag */

    /* Of a call that was found (struct vw_found); those of a range are told by vw_symbol. */
    bool kernel;

    const char *function, *module;
};

/* Opens the database and reads its threads. Errors as tdb_open, and ST_ENOMEM. *trace is closed with
 * vw_trace_close. */
int vw_trace_open(const char *path, struct vw_trace **trace, struct st_error *err);
void vw_trace_close(struct vw_trace *t);

/* Calls fn for each call of the thread that overlaps [from, to), parents before children, by start. Non-zero
 * from fn stops and is returned. ST_EFAIL: SQLite's message. */
typedef int vw_call_fn(void *ctx, const struct vw_call *call);
int vw_each_call(struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to, vw_call_fn *fn, void *ctx,
                 struct st_error *err);

/* The calls that were open just before a time and end after it, outermost first. */
int vw_calls_at(struct vw_trace *t, int64_t thread_id, int64_t time, vw_call_fn *fn, void *ctx,
                struct st_error *err);

/* Finds one call by a condition on the view `calls` (a fixed text of ours, ?1 ?2 ?3 bound to a, b and text),
 * e.g. "parent_id = ?1 ORDER BY duration_ns DESC". Returns 1 and fills *call, its names copied to buffers of
 * 256 bytes each; 0 when there is none; ST_EFAIL. */
struct vw_found {
    struct vw_call call;

    int64_t thread_id;

    char function[256], module[256];
};
int vw_find_call(struct vw_trace *t, const char *condition, int64_t a, int64_t b, const char *text,
                 struct vw_found *found, struct st_error *err);

/* The following return 1 with *found filled, 0 when there is none, or ST_EFAIL; they read few rows, whatever
 * the trace's length (find.c). */

/* The call of that id. */
int vw_find_id(struct vw_trace *t, int64_t id, struct vw_found *found, struct st_error *err);

/* The longest call of a function, the first of equals. Reads all of its calls. */
int vw_find_longest_of(struct vw_trace *t, int64_t symbol_id, struct vw_found *found, struct st_error *err);

/* The innermost call that was open just before a time and ends after it, at most so deep (-1: any depth). */
int vw_find_open(struct vw_trace *t, int64_t thread_id, int64_t time, int depth, struct vw_found *found,
                 struct st_error *err);

/* The first call of the thread that begins at that time or later. */
int vw_find_from(struct vw_trace *t, int64_t thread_id, int64_t time, struct vw_found *found,
                 struct st_error *err);

/* The next or previous call of the same depth. 0 also when it is too far away in the tree to be found
 * quickly. */
int vw_find_neighbour(struct vw_trace *t, const struct vw_found *of, bool forward, struct vw_found *found,
                      struct st_error *err);

/* The child that goes on at a time or begins after it; else the last one. */
int vw_find_child_from(struct vw_trace *t, const struct vw_found *of, int64_t time, struct vw_found *found,
                       struct st_error *err);

int vw_find_longest_child(struct vw_trace *t, const struct vw_thread *thread, const struct vw_found *of,
                          struct vw_found *found, struct st_error *err);

/* The next or previous call, in the order of ids (thread by thread), whose function's name holds the text. */
int vw_find_pattern(struct vw_trace *t, const char *pattern, int64_t id, bool forward, struct vw_found *found,
                    struct st_error *err);

/* The slice that has a CPU at a time. 1: *slice is it; 0: the CPU is idle or not known there, and slice->next
 * is when the next slice begins (INT64_MAX: never); ST_EFAIL. */
struct vw_slice {
    int64_t thread_id, start, end, next;
};
int vw_slice_at(struct vw_trace *t, int64_t cpu, int64_t time, struct vw_slice *slice, struct st_error *err);

/* Reads all gaps (gaps.c). ST_EFAIL, ST_ENOMEM. */
int vw_gaps_read(struct vw_trace *t, struct st_error *err);

/* Calls fn for the gaps of a thread and those without one that overlap [from, to). With a grain above 0,
 * those that lie within what was told before, rounded up to the grain, are left out. */
typedef void vw_gap_fn(void *ctx, int64_t start, int64_t end);
void vw_each_gap(const struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to, int64_t grain,
                 vw_gap_fn *fn, void *ctx);

/* How much of [from, to) lies in gaps of the thread or in those without one. */
int64_t vw_gap_time(const struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to);

/* The start of the next or previous gap of any thread; INT64_MIN: there is none. */
int64_t vw_gap_beside(const struct vw_trace *t, int64_t time, bool forward);

/* Spans of a thread: what = "offcpu" or "slice" (never preempted). Same rules as vw_each_call. */
typedef int vw_span_fn(void *ctx, int64_t start, int64_t end, bool preempted);
int vw_each_span(struct vw_trace *t, const char *what, int64_t thread_id, int64_t from, int64_t to,
                 vw_span_fn *fn, void *ctx, struct st_error *err);

/* The last span ("offcpu" or "slice": they do not overlap) that began before `before`, if it ends after
 * `time`: what the tiles from `before` on do not hold. */
int vw_span_before(struct vw_trace *t, const char *what, int64_t thread_id, int64_t before, int64_t time,
                   vw_span_fn *fn, void *ctx, struct st_error *err);

#endif
