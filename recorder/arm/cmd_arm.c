/* `stalltrap arm`: records, and saves the ring when something takes too long. */
#include "base/log.h"
#include "recorder/arm/arm.h"
#include "recorder/commands.h"

#include <stdlib.h>

/* 0 once a snapshot was written, however it ended. */
static int exit_status(const struct arm *arm, int rc)
{
    if (arm->written)
        return 0;
    if (rc)
        return st_exit_status(rc);
    return arm->failed ? 1 : st_exit_status(ST_ETIMEOUT);
}

int st_cmd_arm(int argc, char **argv)
{
    struct arm *arm = calloc(1, sizeof(*arm));
    struct st_error err = {0};
    int rc, status;

    if (!arm)
        return st_log_error("arm", &(struct st_error){.code = ST_ENOMEM, .text = "out of memory"});
    arm->argc = argc;
    arm->argv = argv;
    arm->loop = arm->folder = arm->clock.fd = -1;
    arm->signals.fd = arm->timeout.fd = arm->after.fd = arm->unseen.fd = arm->launched.fd =
        arm->source_ready.fd = arm->end.timer.fd = arm->limits.timer.fd = arm->joins.watch.fd =
            arm->joins.later.fd = -1;
    arm->launch.go = arm->launch.result = -1;
    rc = arm_options_parse(&arm->options, argc, argv, &err);
    if (rc == 1) {
        arm_options_free(&arm->options);
        free(arm);
        return 0;
    }
    if (!rc)
        rc = arm_open(arm, &err);
    if (!rc)
        rc = arm_run(arm, &err);
    if (rc)
        st_log_error("arm", &err);
    status = exit_status(arm, rc);
    arm_close(arm);
    free(arm);
    return status;
}
