/* Takes a snapshot: captures, says what happened, writes, hands over to the jobs, goes on. */
#include "base/folder.h"
#include "base/log.h"
#include "base/safetext.h"
#include "recorder/arm.h"
#include "recorder/snapshot.h"
#include "recorder/snapshot_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_TRIES = 100, /* when others write snapshots of the same prefix */
    MOST_PAUSES = 256
};

static const char *reason_word(enum arm_reason reason)
{
    static const char *const words[] = {"", "trigger", "interrupt", "signal", "snap", "end", "timeout"};

    return words[reason];
}

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

static int write_numbered(const struct rec_snapshot *s, const char *prefix, char **data, char **db,
                          struct rec_written *file, struct st_error *err)
{
    int rc = ST_EFAIL;

    *data = *db = NULL;
    for (int i = 0; i < MOST_TRIES; i++) {
        unsigned n;

        rc = rec_snapshot_next(s->folder, prefix, &n, err);
        if (rc)
            return rc;
        free(*data);
        free(*db);
        *data = rec_snapshot_path(prefix, n, "data");
        *db = rec_snapshot_path(prefix, n, "db");
        if (!*data || !*db)
            return st_nomem(err, "a file name");
        rc = rec_snapshot_write(s, *data, file, err);
        if (!rc || !st_folder_holds(s->folder, st_folder_name(*data)))
            return rc;
        /* Somebody else took the number: the next one. */
    }
    return rc;
}

static void answer_snap(struct arm *arm, const char *data, const struct st_error *failed)
{
    char answer[8192], *full = failed ? NULL : realpath(data, NULL);

    if (failed)
        snprintf(answer, sizeof(answer), "error %.*s\n", (int)strcspn(failed->text, "\n"), failed->text);
    else
        snprintf(answer, sizeof(answer), "wrote %s\n", full ? full : data);
    free(full);
    rec_control_answer(arm->control, answer);
}

/* Whether this was the last one that was asked for. */
static bool enough(const struct arm *arm)
{
    return arm->cause.reason == ARM_TRIGGER && arm->options.snapshots &&
           arm->traps.fired - arm->dropped >= (unsigned long)arm->options.snapshots;
}

static int write_snapshot(struct arm *arm, struct st_error *err)
{
    const struct arm_cause *c = &arm->cause;
    bool trap = c->reason == ARM_TRIGGER;
    struct rec_room room = {0};
    struct rec_written file;
    struct rec_snapshot s = {
        .folder = arm->folder,
        .room = arm->finish || enough(arm) ? NULL : &room,
        .capture = &arm->capture,
        .ops = arm->ops,
        .source = arm->source,
        .pauses = arm->pauses.at,
        .npauses = arm->pauses.n,
        .sideband = arm->sideband,
        .store = arm->store,
        .stalls = arm->options.triggers || arm->options.marks ? &arm->stalls : NULL,
        .kallsyms = arm->kallsyms,
        .target = &arm->options.target,
        .argc = arm->argc,
        .argv = arm->argv,
        .reason = reason_word(c->reason),
        .text = c->text,
        .trigger = trap ? trg_text(arm->options.triggers, c->record.trigger) : NULL,
        .fired = trap ? &c->record : NULL,
        .frames = trap && arm->frames.seq == c->record.seq ? &arm->frames : NULL,
        .source_text = arm->source_text,
        .armed = arm->armed,
        .lost_events = (arm->options.triggers ? trg_lost(arm->options.triggers) : 0) +
                       (arm->options.marks ? trg_lost(arm->options.marks) : 0) + arm->marks.lost,
        .marks_since = arm->marks.since,
        .warnings = arm->warnings.at,
        .nwarnings = arm->warnings.n,
    };
    char *data, *db;
    int rc = write_numbered(&s, arm->options.prefix, &data, &db, &file, err);

    if (!rc) {
        arm->written++;
        arm->last_reason = c->reason;
        answer_snap(arm, data, NULL);
        rc = rec_jobs_add(arm->jobs, data, db, &file, trap ? s.trigger : s.reason,
                          (arm->at_end ? 0 : REC_JOB_ACTIONS) |
                              (!trap && rec_jobs_waiting(arm->jobs) >= ARM_MOST_WAITING ? REC_JOB_LATER : 0) |
                              (!arm->at_end && !arm->finish && !enough(arm) ? REC_JOB_BESIDE : 0),
                          err);
    }
    if (!rc && room.size)
        rc = arm_leave_open(arm, data, db, s.trigger, &room, err);
    if (rc) {
        free(data);
        free(db);
        return rc;
    }
    free(arm->last_data);
    free(arm->last_db);
    arm->last_data = data;
    arm->last_db = db;
    return 0;
}

/* Later snapshots have to say that this one's time is missing in their rings; in old ones' it is overwritten.
 */
static int keep_pause(struct arm *arm, struct st_error *err)
{
    const struct rec_capture *c = &arm->capture;
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
    if (!arm->frozen)
        rc = rec_capture_freeze(&arm->capture, arm->ops, arm->source, first, &arm->clock, err);

    if (rc) {
        keep_pause(arm, NULL);
        return rc;
    }
    arm->frozen = true;
    end_pauses(arm);
    return 0;
}

static int take_the_rest(struct arm *arm, struct st_error *err)
{
    int rc = rec_sideband_drain(arm->sideband, err);

    if (!rc)
        rc = arm_drain_stalls(arm, err);
    return rc ? rc : rec_mark_rings_take(&arm->marks, arm->store, err);
}

static void drop_capture(struct arm *arm)
{
    keep_pause(arm, NULL);
    rec_capture_free(&arm->capture);
    arm->captured = false;
}

/* Nothing stands between the freeze and the copy, and what can wait until the source goes on waits. */
int arm_capture(struct arm *arm, struct st_error *err)
{
    bool trap = arm->cause.reason == ARM_TRIGGER;
    int completed, rc = arm_freeze(arm, trap ? &arm->cause.record : NULL, err);

    if (rc)
        return rc;
    rc = rec_capture_copy(&arm->capture, arm->ops, arm->source, &arm->clock, err);
    arm->frozen = false;
    completed = arm_complete_stalls(arm, rc ? NULL : err);
    if (!rc)
        rc = completed;
    arm->captured = !rc;
    if (rc)
        drop_capture(arm);
    return rc;
}

/* What came since is part of it, and the sentence tells all that is known. */
static int capture_all(struct arm *arm, struct st_error *err)
{
    int rc = arm->captured ? 0 : arm_capture(arm, err);

    if (!rc)
        rc = take_the_rest(arm, err);
    arm_tell(arm);
    if (rc && arm->captured)
        drop_capture(arm);
    return rc;
}

static int write_captured(struct arm *arm, struct st_error *err)
{
    int rc;

    if (arm->options.triggers || arm->ops->records)
        arm_load_kallsyms(arm);
    rc = write_snapshot(arm, err);
    if (keep_pause(arm, rc ? NULL : err) && !rc)
        rc = ST_ENOMEM;
    rec_capture_free(&arm->capture);
    return rc;
}

/* The pending snapshot is written, or will not be. */
static int go_on(struct arm *arm, struct st_error *err)
{
    bool trapped = arm->cause.reason == ARM_TRIGGER;
    int rc;

    if (enough(arm))
        arm->finish = true;
    arm->captured = arm->acting = false;
    arm->cause.reason = ARM_NONE;
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
    answer_snap(arm, NULL, err);
    st_log_error("arm", err);
    arm->failed = true;
    return go_on(arm, err);
}

static int before_done(void *ctx, bool good, struct st_error *err)
{
    struct arm *arm = ctx;
    struct st_error dropped = {.text = "the snapshot was dropped: an action before it failed"};

    if (good)
        return write_captured(arm, err) ? arm_take_failed(arm, err) : go_on(arm, err);
    drop_capture(arm);
    answer_snap(arm, NULL, &dropped);
    arm->dropped++;
    return go_on(arm, err);
}

/* --then ACTION --then snapshot: what the snapshot holds is kept, and written when the actions have run. */
static int run_before(struct arm *arm, struct st_error *err)
{
    arm->acting = true;
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
    arm_end_forget(arm);
    if (arm->acting && !arm->finish)
        return 0;
    if (arm->acting)
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
    return arm->cause.reason == ARM_NONE ? 0 : arm_take_at_end(arm, err);
}
