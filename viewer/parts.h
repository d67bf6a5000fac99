/* The parts of a stall: what its thread did from its start to its end. */
#ifndef ST_VIEWER_PARTS_H
#define ST_VIEWER_PARTS_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

/* Makes three tables of the connection, for SQL that follows:
 *
 * part(start_ns, end_ns, what, state, syscall, place, who, who_ns, timer, call_id, stack_id): the stretches
 * of stall `id`, in the order of time, without holes or overlaps. `what` is running, ready (it could run, and
 * had no CPU), waiting, handler (an interrupt's or a softirq's) or 'not known' (no switch and no record
 * tells). `who` woke it; of ready, who had the CPU, for `who_ns` ns of it (NULL: it got the CPU first, for
 * how long is not known).
 *
 * part_function(function, module, kernel, ns, samples): in what it was while it ran. `samples`: by how many
 * samples that is known, NULL: by every branch.
 *
 * part_within(function, ns): at most one row, the innermost function that with what it called took 60 % of
 * the time that the thread ran.
 *
 * All are empty for a moment and for a stall of no thread. They replace those of an earlier stall.
 * ST_EFAIL: SQLite's message; ST_ENOMEM. */
int vw_make_parts(sqlite3 *db, int64_t id, struct st_error *err);

/* Prints the parts that vw_make_parts made, the longest first, for people; nothing where there are none.
 * ST_EFAIL, ST_ENOMEM. */
int vw_print_parts(sqlite3 *db, FILE *out, struct st_error *err);

#endif
