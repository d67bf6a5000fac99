/* Processes that come into a target that waits for them (st_target_waits), as the recorder hears of them:
 * from the kernel, by BPF programs (triggers/joins.h); where this user or kernel cannot have those, by
 * looking again and again. */
#ifndef ST_RECORDER_ARM_JOINS_H
#define ST_RECORDER_ARM_JOINS_H

#include "base/error.h"
#include "base/loop.h"
#include "base/target.h"
#include "base/vec.h"

#include <stdint.h>

struct trg_joins;

/* A process that came, or was found. */
struct rec_join {
    pid_t pid;

    uint64_t ktime; /* CLOCK_MONOTONIC ns: when it came, or by when it was there */

    bool found; /* by a look at who is there: it may have been known for long */
};

struct rec_joins_to {
    /* Some have come, in the order in which they did; such as are known may be among them. 1: some were new;
     * what they may have forked before anybody knew of them is then looked for, and told too. 0, negative. */
    int (*came)(void *ctx, const struct rec_join *list, size_t n, struct st_error *err);

    /* The cgroup was removed: told once. */
    int (*gone)(void *ctx, struct st_error *err);

    void *ctx;
};

struct rec_joins {
    int loop;

    const struct st_target *target;

    struct rec_joins_to to;

    struct trg_joins *heard; /* NULL: they are looked for */

    struct rec_watch watch; /* of what is heard, or of a timer; fd -1: not open */

    struct rec_watch later; /* there is something to tell; fd -1: not open */

    ST_VEC(struct rec_join) list; /* not told yet */

    bool removed, told;

    char why[256]; /* they are looked for, a line; "": they are heard of */
};

/* Begins to hear. Nothing is told before the loop turns or rec_joins_look is called. `target`, resolved,
 * stays the caller's. ST_EFAIL, ST_ENOMEM. */
int rec_joins_open(struct rec_joins *joins, int loop, const struct st_target *target,
                   const struct rec_joins_to *to, struct st_error *err);

/* Tells of all that are in the target now. */
int rec_joins_look(struct rec_joins *joins, struct st_error *err);

/* Tells of those that have come and were not told yet, before what is known of the target is written down.
 * That the cgroup was removed is told by a later turn of the loop. */
int rec_joins_take(struct rec_joins *joins, struct st_error *err);

/* How the processes that come are found, for the person, as a part of a sentence: "" or " (looked for ...)".
 */
void rec_joins_describe(const struct rec_joins *joins, char *text, size_t size);

/* Safe on one whose watch.fd and later.fd are -1. */
void rec_joins_close(struct rec_joins *joins);

#endif
