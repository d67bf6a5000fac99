/* What --then and --at-end do: actions, one after the other, until one fails. */
#ifndef ST_RECORDER_ARM_ACTION_H
#define ST_RECORDER_ARM_ACTION_H

#include "base/error.h"
#include "recorder/arm/child.h"

#include <stddef.h>
#include <sys/types.h>

enum rec_action_kind {
    REC_ACTION_SNAPSHOT, /* where in the order the snapshot is written */
    REC_ACTION_SIGNAL,
    REC_ACTION_SHELL,
};

struct rec_action {
    enum rec_action_kind kind;

    const char *text; /* as written; the caller's */

    int signal;

    pid_t pid;

    const char *command; /* in text */
};

/* "snapshot", "signal:NUM:PID" (NUM may be a name, USR1 or SIGUSR1), "shell:COMMAND", or a bare COMMAND.
 * `option` names it in messages. ST_EUSAGE. `text` must outlive the action. */
int rec_action_parse(const char *option, const char *text, struct rec_action *action, struct st_error *err);

/* What a command is told: STALLTRAP_DATA, STALLTRAP_DB, STALLTRAP_REASON; NULL: not set. */
struct rec_action_env {
    const char *data, *db, *reason;
};

/* A list being run. Must not move while it is. */
struct rec_action_run {
    int loop;

    const char *option; /* "--then" */

    const struct rec_action *list; /* no REC_ACTION_SNAPSHOT among them */

    size_t n, next;

    struct rec_action_env env;

    struct rec_child child;

    /* Called once, when all were run or one failed (which was said). May be called before rec_action_start()
     * returns. */
    int (*done)(void *ctx, bool good, struct st_error *err);

    void *ctx;
};

/* Begins with list[0]. Returns what `done` does, or 0. */
int rec_action_start(struct rec_action_run *run, struct st_error *err);

/* Ends what runs; `done` is not called. Safe on a zeroed struct. */
void rec_action_stop(struct rec_action_run *run);

#endif
