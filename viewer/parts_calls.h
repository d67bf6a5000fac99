/* In what a thread was while it ran. Inside of parts*.c. */
#ifndef ST_VIEWER_PARTS_CALLS_H
#define ST_VIEWER_PARTS_CALLS_H

#include "base/error.h"
#include "base/vec.h"

#include <sqlite3.h>
#include <stdint.h>

/* A part on a CPU, and how long the thread ran in those before it. */
struct vw_run {
    int64_t start, end, before;
};

typedef ST_VEC(struct vw_run) vw_runs; /* in the order of time, disjoint */

/* Fills part_function and part_within (viewer/parts.h) for stall `id` of a thread. ST_EFAIL: SQLite's
 * message. */
int vw_parts_calls(sqlite3 *db, int64_t id, int64_t thread, const vw_runs *runs, struct st_error *err);

#endif
