/* `export`: a trace in other people's formats. One walk over the calls feeds every format; a format is a
 * table of callbacks (struct vw_export_ops) in a file of its own, and one line in cmd_export.c. */
#ifndef ST_VIEWER_EXPORT_EXPORT_H
#define ST_VIEWER_EXPORT_EXPORT_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A function. Owned by the export; lives as long as it does. */
struct vw_export_symbol {
    int64_t id;

    char *name; /* as in the database: may hold anything but NUL */

    char *json; /* the name as a JSON string with its quotes */

    struct vw_export_module *module;

    bool inlined; /* of functions that were inlined; free for a format's own use */

    int64_t index; /* free for a format's own use; -1 until it sets it */
};

struct vw_export_module {
    int64_t id;

    char *name, *json;

    bool kernel;

    int64_t index; /* as above */
};

struct vw_export_thread {
    int64_t id, process_id, pid, tid;

    char *name, *process;

    bool wanted; /* by --thread; the others are only names for CPUs and wakers */

    bool has_calls;
};

/* Times are clipped to the range of the export. */
struct vw_export_call {
    int64_t id, start, end;

    int depth; /* as in the database */

    unsigned flags; /* enum tdb_call_flag */

    struct vw_export_symbol *symbol;
};

/* A span or moment that is no call. `thread` is NULL when it is not of one thread; `text` and `detail` may be
 * NULL and hold anything but NUL. */
struct vw_export_span {
    int64_t id, start, end;

    const struct vw_export_thread *thread;

    int64_t cpu; /* -1: not known */

    const char *text, *detail;

    /* Stalls only: who woke the thread, and when. */
    const struct vw_export_thread *waker;

    int64_t wake;
};

struct vw_export;

/* Every callback may be NULL; a negative st_code ends the export. Of one thread, enter, leave, off and on
 * come in the order of time; each enter has its leave. */
struct vw_export_ops {
    const char *name, *help;

    bool binary; /* not to be put on a terminal */

    size_t state_size; /* x->state points to so many zeroed bytes */

    int (*begin)(struct vw_export *x, struct st_error *err);
    int (*thread_begin)(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err);
    int (*enter)(struct vw_export *x, const struct vw_export_call *c, struct st_error *err);
    int (*leave)(struct vw_export *x, const struct vw_export_call *c, struct st_error *err);
    /* The thread loses the CPU at s->start; text is "preempted" or "waiting". */
    int (*off)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*on)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*thread_end)(struct vw_export *x, const struct vw_export_thread *t, struct st_error *err);
    /* After the last thread, each kind by id. A slice is a thread on a CPU; a stall's text is its trigger. */
    int (*slice)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*gap)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*mark)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*stall)(struct vw_export *x, const struct vw_export_span *s, struct st_error *err);
    int (*end)(struct vw_export *x, struct st_error *err);
    /* Frees what the state owns; called in every case once begin was called. */
    void (*release)(struct vw_export *x);
};

/* What is exported, to where. The first part is set by the caller of vw_export_run. */
struct vw_export {
    sqlite3 *db;

    FILE *out;

    const struct vw_export_ops *ops;

    const char *title; /* printable */

    int64_t from, to; /* calls and spans that overlap [from, to) */

    const char *const *threads; /* tids or names; all when nthreads is 0 */

    size_t nthreads;

    /* Set by vw_export_run. */
    bool whole; /* [from, to) is all of the trace */

    void *state;

    struct vw_export_symbol *symbol_list;

    struct vw_export_module *module_list;

    struct vw_export_thread *thread_list;

    size_t symbols, modules, all_threads;
};

extern const struct vw_export_ops vw_export_perfetto, vw_export_chrome, vw_export_folded,
    vw_export_speedscope, vw_export_svg, vw_export_html;

/* Runs the whole export; from and to are narrowed to what the trace holds. Memory is bounded by the numbers
 * of symbols and threads and by what the format keeps, not by the number of calls. ST_EFAIL: the database
 * cannot be read, or out cannot be written, or no thread is meant by x->threads; ST_ENOMEM. */
int vw_export_run(struct vw_export *x, struct st_error *err);

/* For formats that look twice: the threads' part of the walk with other callbacks. */
int vw_export_walk(struct vw_export *x, const struct vw_export_ops *ops, struct st_error *err);

/* Names of symbols, modules and threads, read by vw_export_run; ST_EFAIL, ST_ENOMEM. */
int vw_export_load_names(struct vw_export *x, struct st_error *err);
void vw_export_free_names(struct vw_export *x);

/* "[unknown]" when there is none of that id. */
struct vw_export_symbol *vw_export_symbol(struct vw_export *x, int64_t id);

/* NULL when there is none of that id. */
struct vw_export_thread *vw_export_thread(struct vw_export *x, int64_t id);

/* ST_EFAIL with SQLite's message. */
int vw_export_failed(struct vw_export *x, struct st_error *err);

/* "name tid", printable and cut to the buffer. Returns buf. */
char *vw_export_thread_label(const struct vw_export_thread *t, char *buf, size_t size);

#endif
