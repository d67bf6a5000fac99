/* The parts of a stall: what its thread did from its start to its end. */
#ifndef ST_VIEWER_PARTS_H
#define ST_VIEWER_PARTS_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

/* Makes four tables of the connection, for SQL that follows:
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
 * wait: at most one row, with the columns of `stall`: the wait whose stacks, waker and timer the record has.
 * A stall that is one wait (offcpu) is it. Of another one it is the part that ended with the wake-up of the
 * record, or the part in which the stall was noticed and which still goes on: start_ns, end_ns (NULL: it goes
 * on), duration_ns, state and syscall are that part's. No row: none of the parts is it, or they and those
 * like it (same state and system call) are less than a third of the stall. Beside them: place, the part's;
 * has_args: the attributes arg0 to arg5 are of its system call; looked: what /proc told when the stall was
 * noticed (file, peer, lock_holder, ...) is of this wait; times, slept_ns: how many parts are
 * like it, and their sum; whole_ns, the stall's duration; slept, both as text: "38 ms of the 53 ms (4
 * times)"; asked_ns, the time-out that its system call was given, where that ended it, or may yet.
 *
 * All are empty for a moment and for a stall of no thread. They replace those of an earlier stall.
 * ST_EFAIL: SQLite's message; ST_ENOMEM. */
int vw_make_parts(sqlite3 *db, int64_t id, struct st_error *err);

/* Prints the parts that vw_make_parts made, the longest first, for people; nothing where there are none.
 * ST_EFAIL, ST_ENOMEM. */
int vw_print_parts(sqlite3 *db, FILE *out, struct st_error *err);

#endif
