/* Hears from the kernel of processes that come into a target that waits for them (st_target_waits): moved or
 * cloned into its cgroup, started under its name, or renamed. */
#ifndef ST_TRIGGERS_JOINS_H
#define ST_TRIGGERS_JOINS_H

#include "base/error.h"
#include "base/target.h"

#include <stdint.h>

struct trg_joins;

/* What is heard. Each returns 0 to go on; else it is what trg_joins_take returns. */
struct trg_joins_to {
    int (*came)(void *ctx, pid_t pid, uint64_t ktime, struct st_error *err);

    int (*gone)(void *ctx, struct st_error *err); /* the cgroup was removed */

    void *ctx;
};

/* Attaches the programs for a resolved target: live when it returns. ST_ECANNOT names what this kernel or
 * user lacks. */
int trg_joins_open(const struct st_target *target, struct trg_joins **joins, struct st_error *err);

/* Readable when there is something to take; stays the joins' own. */
int trg_joins_fd(const struct trg_joins *joins);

/* Takes what was heard since the last call. *lost: some could not be told for want of room since then. */
int trg_joins_take(struct trg_joins *joins, const struct trg_joins_to *to, bool *lost, struct st_error *err);

/* NULL is allowed. */
void trg_joins_close(struct trg_joins *joins);

#endif
