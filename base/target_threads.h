/* The threads of a target, also of one that makes new ones meanwhile. */
#ifndef ST_BASE_TARGET_THREADS_H
#define ST_BASE_TARGET_THREADS_H

#include "base/error.h"
#include "base/target.h"

#include <sys/types.h>

/* Takes a thread. 1: it is new, 0: it was taken before, or has ended; else an error, or what else ends the
 * walk. */
typedef int rec_take_thread_fn(void *ctx, pid_t pid, pid_t tid, struct st_error *err);

/* Calls fn for every thread of the target's processes and of `command` (0: none), and lists them anew until
 * none of them is new: a thread may be born between the listing and the taking. `rounds` (NULL: not asked
 * for) counts the listings of the process at hand, from 0. A process that has ended is no error. Returns 0,
 * what fn returned, or ST_ENOMEM. Not for ST_TARGET_ALL. */
int rec_each_thread(const struct st_target *target, pid_t command, rec_take_thread_fn *fn, void *ctx,
                    unsigned *rounds, struct st_error *err);

/* The same of one process. */
int rec_each_thread_of(pid_t pid, rec_take_thread_fn *fn, void *ctx, unsigned *rounds, struct st_error *err);

/* How many threads the target has now. */
size_t st_count_threads(const struct st_target *target);

#endif
