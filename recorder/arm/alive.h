/* Whether the target's processes still run: one pidfd each. */
#ifndef ST_RECORDER_ARM_ALIVE_H
#define ST_RECORDER_ARM_ALIVE_H

#include "base/error.h"
#include "base/loop.h"
#include "base/target.h"

#include <stdbool.h>

struct rec_alive_one;

struct rec_alive {
    int loop;

    bool waits; /* others may come: the end of the last is not the target's */

    struct rec_alive_one *processes; /* that run */

    int (*ended)(void *ctx, struct st_error *err);

    int (*left)(void *ctx, pid_t pid, struct st_error *err); /* each that ends; NULL: nobody asks */

    void *ctx;
};

/* Watches the processes of the target, and `command` if not 0. `ended` is called when the last of them has
 * ended (never for `-a`, nor for a target that waits for others). A process that is gone already counts as
 * ended; when all are, `ended` is called by the first turns of the loop. ST_ECANNOT: the kernel has no pidfds
 * (before 5.3), or the limit of open files is reached. The struct must not move until rec_alive_close. */
int rec_alive_open(struct rec_alive *alive, int loop, const struct st_target *target, pid_t command,
                   int (*ended)(void *ctx, struct st_error *err), void *ctx, struct st_error *err);

/* Watches one more. Does nothing when it is watched. Errors as above. */
int rec_alive_add(struct rec_alive *alive, pid_t pid, struct st_error *err);

/* Whether it is watched, and has not ended as far as is known. */
bool rec_alive_has(const struct rec_alive *alive, pid_t pid);

/* Safe on a zeroed struct. */
void rec_alive_close(struct rec_alive *alive);

#endif
