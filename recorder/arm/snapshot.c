/* Takes a snapshot: captures, says what happened, has it written, goes on; what was written goes to the jobs.
 */
#include "base/log.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "recorder/arm/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_PAUSES = 256,
    AWAY_NS = 20 * 1000 * 1000, /* for which threads that wait are looked at: the next trap waits meanwhile */
};

static const char *kernel_name(void *ctx, uint64_t address)
{
    uint64_t start;

    return rec_kallsyms_find(ctx, address, &start);
}

void arm_load_kallsyms(struct arm *arm)
{
    if (arm->kallsyms_tried && (!arm->kallsyms || !rec_kallsyms_stale(arm->kallsyms)))
        return;
    rec_kallsyms_close(arm->kallsyms);
    arm->kallsyms_tried = true;
    arm->kallsyms = rec_kallsyms_open("/proc/kallsyms");
}

void arm_describe(struct arm *arm, const struct st_stall_record *record, char *text, size_t size)
{
    arm_load_kallsyms(arm);
    trg_describe(arm->options.triggers, record, arm->kallsyms ? kernel_name : NULL, arm->kallsyms, text,
                 size);
}

/* The line for the person: of a trap on stdout (it is a result), else a word on stderr. */
void arm_tell(struct arm *arm)
{
    struct arm_cause *c = &arm->cause;
    char text[512];

    if (c->told)
        return;
    c->told = true;
    if (c->reason == ARM_TRIGGER) {
        arm_describe(arm, &c->record, text, sizeof(text));
        st_safe_text(c->text, sizeof(c->text), text);
        st_progress_hide();
        printf("trap %u: %s\n", arm->traps.fired, c->text);
        fflush(stdout);
        return;
    }
    snprintf(c->text, sizeof(c->text), "%s",
             c->reason == ARM_INTERRUPT ? "snapshot on Ctrl-C"
             : c->reason == ARM_SIGNAL  ? "snapshot on SIGUSR2"
             : c->reason == ARM_SNAP    ? "snapshot on request"
             : c->reason == ARM_TIMEOUT ? "the time is up: snapshot"
                                        : "the target ended: snapshot");
    st_log_info("%s", c->text);
}

static void answer_snap(struct arm *arm, unsigned asked, const char *data, const struct st_error *failed)
{
    char answer[8192], *full = failed ? NULL : realpath(data, NULL);

    if (failed)
        snprintf(answer, sizeof(answer), "error %.*s\n", (int)strcspn(failed->text, "\n"), failed->text);
    else
        snprintf(answer, sizeof(answer), "wrote %s\n", full ? full : data);
    free(full);
    rec_control_answer(arm->control, asked, answer);
}

bool arm_enough(const struct arm *arm)
{
    return arm->cause.reason == ARM_TRIGGER && arm->options.snapshots &&
           arm->traps.fired - arm->dropped >= (unsigned long)arm->options.snapshots;
}

/* Later snapshots have to say that this one's time is missing in their rings; in old ones' it is overwritten.
 */
static int keep_pause(struct arm *arm, const struct rec_capture *c, struct st_error *err)
{
    struct rec_pause pause = {
        .stopped = c->how.in_kernel ? 0 : c->how.asked_time, .done = c->how.done_time, .resumed = c->resumed};

    if (!arm->ops->misses_while_frozen || !c->how.done_time)
        return 0;
    if (arm->pauses.n == MOST_PAUSES)
        memmove(arm->pauses.at, arm->pauses.at + 1, --arm->pauses.n * sizeof(pause));
    return st_vec_push(&arm->pauses, pause) ? st_nomem(err, "the list of pauses") : 0;
}

/* Where the source could not be made to go on, it did at the next snapshot, or has not yet. */
static void end_pauses(struct arm *arm)
{
    for (size_t i = 0; i < arm->pauses.n; i++)
        if (!arm->pauses.at[i].resumed)
            arm->pauses.at[i].resumed = arm->capture.how.done_time;
}

int arm_freeze(struct arm *arm, const struct st_stall_record *stalled, struct st_error *err)
{
    struct rec_first first = {.tid = -1, .cpu = -1};
    int rc = 0;

    if (stalled)
        first = (struct rec_first){.tid = (pid_t)stalled->tid, .cpu = (int)stalled->cpu};
    if (arm->state != ARM_FROZEN)
        rc = rec_capture_freeze(&arm->capture, arm->ops, arm->source, first, &arm->clock, err);

    if (rc) {
        keep_pause(arm, &arm->capture, NULL);
        return rc;
    }
    arm_moves(arm, ARM_STOP);
    end_pauses(arm);
    return 0;
}

static int take_the_rest(struct arm *arm, struct st_error *err)
{
    int rc = rec_joins_take(&arm->joins, err);

    if (!rc)
        rc = rec_sideband_drain(arm->sideband, err);
    if (!rc)
        rc = arm_drain_stalls(arm, err);
    return rc ? rc : rec_mark_rings_take(&arm->marks, arm->store, err);
}

static void drop_capture(struct arm *arm)
{
    keep_pause(arm, &arm->capture, NULL);
    rec_capture_free(&arm->capture);
}

/* Nothing stands between the freeze and the copy, and what can wait until the source goes on waits. */
int arm_capture(struct arm *arm, struct st_error *err)
{
    bool trap = arm->cause.reason == ARM_TRIGGER;
    int completed, rc = arm_freeze(arm, trap ? &arm->cause.record : NULL, err);

    if (rc)
        return rc;
    rc = rec_capture_copy(&arm->capture, arm->ops, arm->source, &arm->clock, err);
    if (!rc)
        arm_moves(arm, ARM_COPY);
    completed = arm_complete_stalls(arm, rc ? NULL : err);
    if (!rc)
        rc = completed;
    if (rc)
        drop_capture(arm);
    return rc;
}

/* Before the records are taken: those tell whether a thread came back since. */
static int look_who_waits(struct arm *arm, struct st_error *err)
{
    const struct arm_cause *c = &arm->cause;
    bool trap = c->reason == ARM_TRIGGER;
    const rec_pid_set *known = rec_sideband_pids(arm->sideband);
    const struct st_target *t = &arm->options.target;
    struct rec_away_wanted wanted = {.pid = trap ? (pid_t)c->record.pid : 0,
                                     .tid = trap ? (pid_t)c->record.tid : 0,
                                     .pids = known->n ? known->at : t->pids,
                                     .npids = known->n ? known->n : t->npids,
                                     .stepped = arm->ops->own_switches,
                                     .most_ns = AWAY_NS};
    int left;

    if (arm->launch.pid && !known->n) {
        wanted.pids = &arm->launch.pid;
        wanted.npids = 1;
    }
    arm->away.n = 0;
    left = rec_away_read(&wanted, &arm->away, err);
    if (left > 0)
        st_log_debug("of %d threads was not looked at how they wait", left);
    return left < 0 ? left : 0;
}

/* What came since is part of it, and the sentence tells all that is known. */
static int capture_all(struct arm *arm, struct st_error *err)
{
    int captured = arm->state == ARM_CAPTURED ? 0 : arm_capture(arm, err);
    int rc = captured;

    if (!rc)
        rc = look_who_waits(arm, err);
    if (!rc)
        rc = take_the_rest(arm, err);
    arm_tell(arm);
    if (rc && !captured)
        drop_capture(arm);
    return rc;
}

static void failed(struct arm *arm, unsigned asked, const struct st_error *err)
{
    answer_snap(arm, asked, NULL, err);
    st_log_error("arm", err);
    arm->failed = true;
}

/* What was written is decoded, unless nobody waits for it. */
static int add_job(struct arm *arm, const struct arm_order *o, struct st_error *err)
{
    bool trap = o->cause.reason == ARM_TRIGGER;
    unsigned flags = o->at_end ? 0 : REC_JOB_ACTIONS;

    if (!arm->jobs)
        return 0; /* a signal ended the waiting */
    if (!trap && rec_jobs_waiting(arm->jobs) >= ARM_MOST_WAITING)
        flags |= REC_JOB_LATER;
    if (!o->at_end && !o->last && !arm->finish)
        flags |= REC_JOB_BESIDE;
    return rec_jobs_add(arm->jobs, o->data, o->db, &o->file, trap ? o->snapshot.trigger : o->snapshot.reason,
                        flags, err);
}

static void keep_names(struct arm *arm, struct arm_order *o)
{
    free(arm->last_data);
    free(arm->last_db);
    arm->last_data = o->data;
    arm->last_db = o->db;
    o->data = o->db = NULL;
}

static int written(struct arm *arm, struct arm_order *o, struct st_error *err)
{
    int rc;

    arm->written++;
    if (o->cause.reason == ARM_TRIGGER)
        arm->traps.written++;
    answer_snap(arm, o->asked, o->data, NULL);
    rc = add_job(arm, o, err);
    if (!rc)
        rc = arm_open_written(arm, o, err);
    if (!rc)
        keep_names(arm, o);
    return rc;
}

/* A snapshot that was asked for while too many were being written can be taken. */
static int take_next(struct arm *arm, struct st_error *err)
{
    int rc;

    if (arm->finish || !arm_state_live(arm->state))
        return 0; /* arm_run() goes on with the jobs: first the target is let go */
    if (arm_state_pending(arm->state))
        return arm->cause.reason == ARM_TRIGGER ? 0 : arm_take(arm, err);
    rc = rec_jobs_go(arm->jobs, err);
    return rc || !arm->options.triggers ? rc : arm_limits_again(arm, err);
}

static void count_dropped(struct arm *arm, enum arm_reason reason)
{
    if (reason == ARM_TRIGGER)
        arm->traps.dropped++;
}

int arm_on_written(void *ctx, struct rec_task *task, struct st_error *err)
{
    struct arm *arm = ctx;
    struct arm_order *o = (struct arm_order *)task;
    struct st_error why = {0};
    int rc = o->rc ? o->rc : written(arm, o, &why);

    if (o->rc) {
        arm_open_written(arm, o, NULL);
        count_dropped(arm, o->cause.reason);
    }
    if (rc)
        failed(arm, o->asked, o->rc ? &o->error : &why);
    arm_order_free(o);
    return take_next(arm, err);
}

static int write_captured(struct arm *arm, struct st_error *err)
{
    struct arm_order *order;
    int rc;

    if (arm->options.triggers || arm->ops->records)
        arm_load_kallsyms(arm);
    rc = arm_order_make(arm, &order, err);
    if (rc) {
        drop_capture(arm);
        return rc;
    }
    rc = keep_pause(arm, &order->capture, err);
    if (!rc)
        rc = arm_leave_open(arm, order, err);
    if (rc) {
        arm_order_free(order);
        return rc;
    }
    arm->taken++;
    arm->last_reason = order->cause.reason;
    rec_clerk_give(arm->clerk, &order->task);
    return 0;
}

/* The pending snapshot is the clerk's, or will not be written. */
static int go_on(struct arm *arm, struct st_error *err)
{
    bool trapped = arm->cause.reason == ARM_TRIGGER;
    int rc;

    if (arm_enough(arm))
        arm->finish = true;
    arm->waits = ARM_FOR_NOTHING;
    arm->cause.reason = ARM_NONE;
    arm_moves(arm, arm->finish ? ARM_QUIT : ARM_DONE);
    if (arm->finish)
        return 0; /* arm_run() goes on with the jobs: first the target is let go */
    rc = rec_jobs_go(arm->jobs, err);
    if (rc || !arm->options.triggers)
        return rc;
    return arm_limits_next(arm, trapped, err);
}

int arm_take_failed(struct arm *arm, struct st_error *err)
{
    arm_end_forget(arm);
    arm_tell(arm);
    count_dropped(arm, arm->cause.reason);
    failed(arm, rec_control_asked(arm->control), err);
    return go_on(arm, err);
}

static int before_done(void *ctx, bool good, struct st_error *err)
{
    struct arm *arm = ctx;
    struct st_error dropped = {.text = "the snapshot was dropped: an action before it failed"};

    if (good)
        return write_captured(arm, err) ? arm_take_failed(arm, err) : go_on(arm, err);
    drop_capture(arm);
    answer_snap(arm, rec_control_asked(arm->control), NULL, &dropped);
    arm->dropped++;
    count_dropped(arm, ARM_TRIGGER);
    return go_on(arm, err);
}

/* --then ACTION --then snapshot: what the snapshot holds is kept, and written when the actions have run. */
static int run_before(struct arm *arm, struct st_error *err)
{
    arm->waits = ARM_FOR_ACTIONS;
    arm->before =
        (struct rec_action_run){.loop = arm->loop,
                                .option = "--then",
                                .list = arm->options.then.each.at,
                                .n = arm->options.then.before,
                                .env.reason = trg_text(arm->options.triggers, arm->cause.record.trigger),
                                .done = before_done,
                                .ctx = arm};
    return rec_action_start(&arm->before, err);
}

int arm_take(struct arm *arm, struct st_error *err)
{
    bool acting = arm->waits == ARM_FOR_ACTIONS;

    arm_end_forget(arm);
    if (acting && !arm->finish)
        return 0;
    if (acting)
        rec_action_stop(&arm->before); /* the recording ends: no more waiting */
    else if (capture_all(arm, err))
        return arm_take_failed(arm, err);
    else if (arm->cause.reason == ARM_TRIGGER && arm->options.then.before && !arm->finish)
        return run_before(arm, err);
    return write_captured(arm, err) ? arm_take_failed(arm, err) : go_on(arm, err);
}

int arm_on_after(void *ctx, struct st_error *err)
{
    struct arm *arm = ctx;

    rec_timer_clear(arm->after.fd);
    return arm_state_pending(arm->state) ? arm_take_at_end(arm, err) : 0;
}
