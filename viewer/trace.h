/* What the timeline reads of a trace database. Times are the database's: ns since its origin. */
#ifndef ST_VIEWER_TRACE_H
#define ST_VIEWER_TRACE_H

#include "base/error.h"

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

    bool collapsed;
};

struct vw_trace {
    sqlite3 *db;

    char *path; /* printable */

    struct vw_thread *threads; /* the stalled one first, then by number of calls */

    int nthreads;

    int64_t start, end; /* of everything there is; end > start */

    int64_t stall_id; /* the stall that fired; 0: none */

    int64_t stall_start, stall_end;

    char *stall_text; /* one printable line; NULL: none */

    int64_t sampled_ns; /* the calls are of samples, so far apart (1: not known how far); 0: they are not */

    sqlite3_stmt *in_window, *around;
};

/* One call as the timeline needs it. Strings are SQLite's: valid within the callback only. */
struct vw_call {
    int64_t id, parent_id;

    int64_t start, end, self;

    int depth;

    unsigned flags; /* enum tdb_call_flag */

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

/* Spans of a thread: what = "offcpu", "slice" or "gap" (gaps without a thread included). Same rules as
 * vw_each_call. */
typedef int vw_span_fn(void *ctx, int64_t start, int64_t end, const char *text);
int vw_each_span(struct vw_trace *t, const char *what, int64_t thread_id, int64_t from, int64_t to,
                 vw_span_fn *fn, void *ctx, struct st_error *err);

#endif
