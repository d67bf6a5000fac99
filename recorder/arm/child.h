/* A program of ours that runs while the loop goes on: its end, and what it prints. */
#ifndef ST_RECORDER_ARM_CHILD_H
#define ST_RECORDER_ARM_CHILD_H

#include "base/error.h"
#include "base/loop.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct rec_child {
    int loop;

    pid_t pid; /* 0: none runs */

    struct rec_watch end, output;

    ST_VEC(char) text; /* of its stdout */

    /* Called once, when it has ended and all its output is in `text`; `status` as waitpid gives it. */
    int (*done)(void *ctx, int status, struct st_error *err);

    void *ctx;
};

/* Runs in the child and never returns. */
typedef void rec_child_fn(void *arg);

/* Forks; with `capture`, the child's stdout comes into `text`. Signals of the child are the ones before
 * rec_signals_open. ST_EFAIL. The struct must not move while it runs. */
int rec_child_start(struct rec_child *child, int loop, rec_child_fn *run, void *arg, bool capture,
                    int (*done)(void *ctx, int status, struct st_error *err), void *ctx,
                    struct st_error *err);

/* SIGTERM, soon after SIGKILL, waits for its end, frees; `done` is not called. Safe on a zeroed struct. */
void rec_child_stop(struct rec_child *child);

#endif
