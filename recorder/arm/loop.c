/* The loop of a recording: what ends it, what makes it take a snapshot. */
#include "base/log.h"
#include "base/units.h"
#include "recorder/arm/arm.h"
#include "recorder/arm/signals.h"
#include "triggers/histogram.h"

#include <signal.h>
#include <unistd.h>

void arm_moves(struct arm *arm, enum arm_event event)
{
    arm->state = arm_state_next(arm->state, event);
}

/* Ends without a snapshot. */
static int end_now(struct arm *arm)
{
    arm_moves(arm, ARM_QUIT);
    return 0;
}

/* Once the recording is over a signal ends the waiting for the jobs. */
static int drop_jobs(struct arm *arm)
{
    if (arm->jobs && rec_jobs_busy(arm->jobs)) {
        st_log_info("ended by another signal: what was still to be done is given up");
        if (arm->last_data)
            st_log_info("the snapshot stays: 'stalltrap decode %s' makes its database", arm->last_data);
        rec_jobs_abandon(arm->jobs);
    }
    rec_jobs_close(arm->jobs);
    arm->jobs = NULL;
    return 0;
}

int arm_on_signal(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    int signal = rec_signals_read(arm->signals.fd);

    if (!signal)
        return 0;
    if (!arm_state_live(arm->state) && signal != SIGUSR2)
        return drop_jobs(arm);
    switch (signal) {
    case SIGINT:
        return arm_want(arm, ARM_INTERRUPT, NULL, err);
    case SIGUSR2:
        return arm_want(arm, ARM_SIGNAL, NULL, err);
    default:
        if (!arm->taken)
            st_log_info("ended by signal %d: nothing was written", signal);
        arm->ended_by_signal = true;
        return end_now(arm);
    }
}

int arm_on_snap(void *ctx, struct st_error *err)
{
    return arm_want(ctx, ARM_SNAP, NULL, err);
}

/* What fired at the last moment is in the rings: it counts. Returns 1 when there is something to take, and it
 * was taken. */
static int take_pending(struct arm *arm, struct st_error *err)
{
    int rc = arm->options.triggers ? arm_drain_stalls(arm, err) : 0;

    if (rc || !arm_state_pending(arm->state))
        return rc;
    arm->finish = true;
    rc = arm_take(arm, err);
    return rc ? rc : 1;
}

int arm_on_timeout(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    char text[24];
    int rc = take_pending(arm, err);

    rec_timer_clear(arm->timeout.fd);
    if (rc)
        return rc < 0 ? rc : 0;
    if (!arm->options.triggers && arm_state_live(arm->state))
        return arm_want(arm, ARM_TIMEOUT, NULL, err);
    end_now(arm);
    if (arm->taken)
        return 0;
    st_format_duration((int64_t)arm->options.timeout, text, sizeof(text));
    return st_fail(err, ST_ETIMEOUT, "nothing fired within %s", text);
}

int arm_on_ended(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    int rc;

    if (!arm_state_live(arm->state))
        return 0;
    rc = arm->launched.fd >= 0 ? arm_on_launched(arm, err) : 0; /* the command may never have run */
    if (!rc)
        rc = take_pending(arm, err);
    if (rc)
        return rc < 0 ? rc : 0;
    if (!arm->options.triggers)
        return arm_want(arm, ARM_END, NULL, err);
    end_now(arm);
    return arm->taken ? 0 : st_fail(err, ST_ETIMEOUT, "the target ended and nothing fired");
}

int arm_on_source(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;
    int rc = arm->ops->service(arm->source, err);

    if (rc == 1 && st_target_waits(&arm->options.target))
        return 0; /* others may come */
    return rc == 1 ? arm_on_ended(arm, err) : rc;
}

int arm_on_unseen(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    rec_timer_clear(arm->unseen.fd);
    return trg_tell_unseen(arm->options.triggers) ? 0 : rec_timer_set(arm->unseen.fd, 0, 0, err);
}

int arm_on_look(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    (void)err;
    rec_timer_clear(arm->look.fd);
    arm->ops->look(arm->source);
    return 0;
}

int arm_on_launched(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    rec_loop_remove(arm->loop, &arm->launched);
    arm->launched.fd = -1;
    return rec_launch_result(&arm->launch, arm->options.target.argv[0], err);
}

/* Who counts snapshots takes them for all stalls there were. */
static void tell_without(const struct arm *arm)
{
    unsigned n = arm->traps.without, dropped = arm->traps.dropped;

    if (dropped)
        fprintf(stderr, "of %u traps %u %s no snapshot\n", arm->traps.fired, dropped,
                dropped > 1 ? "have" : "has");
    if (n)
        fprintf(
            stderr,
            "%u stall%s reached %s threshold while nothing could fire (a snapshot was being taken, two were "
            "being written, or --warm-up, --cooldown or a limit held the triggers)\n",
            n, n > 1 ? "s" : "", n > 1 ? "their" : "its");
}

static void close_triggers(struct arm *arm)
{
    struct st_error err = {0};

    if (arm->armed && !arm->options.quiet)
        tell_without(arm);
    if (arm->armed && arm->options.triggers && !arm->options.quiet &&
        trg_print_histograms(arm->options.triggers, false, stderr, &err))
        st_log_warn("%s", err.text);
    if (arm->armed && arm->options.triggers && !arm->options.quiet && !arm->traps.fired &&
        trg_print_silence(arm->options.triggers, stderr, &err))
        st_log_warn("%s", err.text);
    if (rec_metrics_finish(arm->metrics, &err))
        st_log_warn("--prometheus: %s", err.text);
    rec_metrics_close(arm->metrics);
    arm->metrics = NULL;
    trg_close(arm->options.marks);
    arm->options.marks = NULL;
    trg_close(arm->options.triggers);
    arm->options.triggers = NULL;
}

/* ---- --at-end ---- */

struct ending {
    bool over, good;
};

static int ending_done(void *ctx, bool good, struct st_error *err)
{
    struct ending *e = ctx;

    (void)err;
    e->over = true;
    e->good = good;
    return 0;
}

/* Runs some of the actions, and waits for them. False: one failed, or a signal ended the waiting. */
static bool run_ending(struct arm *arm, size_t from, size_t to)
{
    struct ending e = {0};
    struct st_error err = {0};
    struct rec_action_run run = {.loop = arm->loop,
                                 .option = "--at-end",
                                 .list = from < to ? arm->options.at_end.each.at + from : NULL,
                                 .n = to - from,
                                 .env = {arm->last_data, arm->last_db, "end"},
                                 .done = ending_done,
                                 .ctx = &e};

    if (from == to)
        return true;
    if (rec_action_start(&run, &err))
        return false;
    while (!e.over && arm->jobs && rec_loop_turn(arm->loop, &err) >= 0)
        ;
    rec_action_stop(&run);
    return e.over && e.good;
}

/* What was taken is written before anything else is done that comes behind it. */
static void finish_writing(struct arm *arm)
{
    struct st_error err = {0};

    if (rec_clerk_finish(arm->clerk, &err))
        st_log_warn("%s", err.text);
}

/* What comes up to and with the snapshot, while everything is still open. One that Ctrl-C took, or the
 * target's end, is that snapshot. Returns whether to go on with the rest. */
static bool end_with_snapshot(struct arm *arm)
{
    const struct arm_actions *a = &arm->options.at_end;
    struct st_error err = {0};

    if (!a->has_snapshot)
        return true;
    finish_writing(arm);
    if (!run_ending(arm, 0, a->before))
        return false;
    if (arm->last_reason == ARM_INTERRUPT || arm->last_reason == ARM_END || arm->last_reason == ARM_TIMEOUT)
        return true;
    arm->at_end = true;
    arm->finish = false;
    arm_moves(arm, ARM_LIVE);
    if (arm_want(arm, ARM_END, NULL, &err))
        st_log_warn("%s", err.text);
    return true;
}

int arm_run(struct arm *arm, struct st_error *err)
{
    bool ending;

    struct st_error late = {0};
    bool go_on;
    int rc = 0;

    while (!rc && arm->state != ARM_ENDING)
        rc = rec_loop_turn(arm->loop, err);
    arm_moves(arm, ARM_QUIT);
    if (arm->options.triggers && arm_drain_stalls(arm, &late)) /* they are counted, and fire no more */
        st_log_warn("%s", late.text);
    ending = arm->armed && !arm->ended_by_signal && end_with_snapshot(arm);
    arm_detach(arm);
    finish_writing(arm);
    arm_hang_up(arm);
    if (arm->jobs)
        rec_jobs_hurry(arm->jobs);
    if (arm->last_reason == ARM_INTERRUPT)
        rec_signals_forget(SIGINT); /* timeout(1) sends it to the process, and once more to its group */
    if (arm->ended_by_signal && arm->jobs)
        rec_jobs_abandon(arm->jobs);
    /* The target is free again; what was written is still decoded, also after an error. */
    go_on = !arm->jobs || !rec_jobs_go(arm->jobs, &late);
    close_triggers(arm);
    while (go_on && arm->jobs && rec_jobs_busy(arm->jobs))
        go_on = rec_loop_turn(arm->loop, &late) >= 0;
    if (!go_on && late.code)
        st_log_warn("%s", late.text);
    if (ending && arm->jobs)
        run_ending(arm, arm->options.at_end.before, arm->options.at_end.each.n);
    return rc;
}
