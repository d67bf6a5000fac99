/* The command of `-- COMMAND`: forked early, runs when everything is attached. */
#ifndef ST_RECORDER_ARM_LAUNCH_H
#define ST_RECORDER_ARM_LAUNCH_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct rec_launch {
    pid_t pid; /* 0: none */

    int go; /* a byte lets the child exec; closing it unwritten makes the child end. -1: done */

    int result; /* becomes readable: end of file when the exec was done, the errno when it failed. -1: done */
};

/* Looks the command up in PATH (ST_EFAIL: not there, not executable) and forks a child that waits. The
 * child's signals are as the caller's were before rec_signals_open. */
int rec_launch_open(struct rec_launch *launch, char **argv, struct st_error *err);

/* Lets the child exec. */
int rec_launch_go(struct rec_launch *launch, struct st_error *err);

/* To be called when `result` is readable: 0 when the command runs; ST_EFAIL "cannot run ...". */
int rec_launch_result(struct rec_launch *launch, const char *command, struct st_error *err);

/* A child that was not let go ends and is reaped; one that runs stays as it is. Safe when closed or never
 * opened (zeroed). */
void rec_launch_close(struct rec_launch *launch);

#endif
