/* Whether the target's processes still run: one pidfd each. */
#ifndef ST_RECORDER_ALIVE_H
#define ST_RECORDER_ALIVE_H

#include "base/error.h"
#include "base/target.h"
#include "base/vec.h"
#include "recorder/loop.h"

struct rec_alive_one {
    struct rec_alive *all;

    struct rec_watch watch; /* fd -1: ended */
};

struct rec_alive {
    int loop;

    ST_VEC(struct rec_alive_one) processes;

    size_t running;

    int (*ended)(void *ctx, struct st_error *err);

    void *ctx;
};

/* Watches the processes of the target, and `command` if not 0. `ended` is called when the last of them has
 * ended (never for
 * `-a`). A process that is gone already counts as ended; when all are, `ended` is called by the first turn of
 * the loop. ST_ECANNOT: the kernel has no pidfds (before 5.3). The struct must not move until
 * rec_alive_close. */
int rec_alive_open(struct rec_alive *alive, int loop, const struct st_target *target, pid_t command,
                   int (*ended)(void *ctx, struct st_error *err), void *ctx, struct st_error *err);

/* Safe on a zeroed struct. */
void rec_alive_close(struct rec_alive *alive);

#endif
