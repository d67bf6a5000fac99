/* What goes into a snapshot, and its writing. */
#include "recorder/arm/order.h"
#include "base/folder.h"
#include "recorder/snapshot/name.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 100 /* when others write snapshots of the same prefix */ };

static const char *reason_word(enum arm_reason reason)
{
    static const char *const words[] = {"", "trigger", "interrupt", "signal", "snap", "end", "timeout"};

    return words[reason];
}

static int write_numbered(struct arm_order *o, struct st_error *err)
{
    int rc = ST_EFAIL;

    for (int i = 0; i < MOST_TRIES; i++) {
        unsigned n;

        rc = rec_snapshot_next(o->snapshot.folder, o->prefix, &n, err);
        if (rc)
            return rc;
        free(o->data);
        free(o->db);
        o->data = rec_snapshot_path(o->prefix, n, "data");
        o->db = rec_snapshot_path(o->prefix, n, "db");
        if (!o->data || !o->db)
            return st_nomem(err, "a file name");
        rc = rec_snapshot_write(&o->snapshot, o->data, &o->file, err);
        if (!rc || !st_folder_holds(o->snapshot.folder, st_folder_name(o->data)))
            return rc;
        /* Somebody else took the number: the next one. */
    }
    return rc;
}

static void work(struct rec_task *task)
{
    struct arm_order *o = (struct arm_order *)task;

    o->rc = write_numbered(o, &o->error);
    rec_capture_free(&o->capture);
    rec_facts_free(&o->facts);
}

static void describe(struct arm_order *o, struct arm *arm)
{
    const struct arm_options *options = &arm->options;
    const struct arm_cause *c = &o->cause;
    bool trap = c->reason == ARM_TRIGGER;

    o->snapshot = (struct rec_snapshot){
        .folder = arm->folder,
        .room = o->last ? NULL : &o->room,
        .capture = &o->capture,
        .away = o->away.at,
        .naway = o->away.n,
        .facts = &o->facts,
        .pauses = o->pauses.at,
        .npauses = o->pauses.n,
        .kallsyms = o->kallsyms,
        .target = &o->target,
        .argc = arm->argc,
        .argv = arm->argv,
        .reason = reason_word(c->reason),
        .text = c->text,
        .trigger = trap ? trg_text(options->triggers, c->record.trigger) : NULL,
        .fired = trap ? &c->record : NULL,
        .frames = trap && o->frames.seq == c->record.seq ? &o->frames : NULL,
        .source_text = o->source_text,
        .armed = arm->armed,
        .lost_events = (options->triggers ? trg_lost(options->triggers) : 0) +
                       (options->marks ? trg_lost(options->marks) : 0) + arm->marks.lost,
        .traps = arm->traps,
        .marks_since = arm->marks.since,
        .warnings = arm->warnings.at,
        .nwarnings = arm->warnings.n,
    };
}

/* Others may come and go while it is written. */
static int copy_target(struct arm_order *o, const struct st_target *target)
{
    size_t n = target->npids;

    o->target = *target;
    o->target.pids = malloc((n + 1) * sizeof(pid_t));
    if (!o->target.pids)
        return -1;
    if (n)
        memcpy(o->target.pids, target->pids, n * sizeof(pid_t));
    return 0;
}

static int copy_pauses(struct arm_order *o, const struct arm *arm)
{
    size_t n = arm->pauses.n;

    if (st_vec_reserve(&o->pauses, n + 1))
        return -1;
    if (n)
        memcpy(o->pauses.at, arm->pauses.at, n * sizeof(*o->pauses.at));
    o->pauses.n = n;
    return 0;
}

static int tell_waits(struct arm *arm, struct st_error *err)
{
    pid_t tid = arm->cause.reason == ARM_TRIGGER ? (pid_t)arm->cause.record.tid : -1;

    if (!arm->stalls.events.n)
        return 0;
    return rec_sideband_tell_waits(arm->sideband, arm->stalls.events.at[0].id, tid, err);
}

int arm_order_make(struct arm *arm, struct arm_order **order, struct st_error *err)
{
    bool outputs = arm->options.triggers || arm->options.marks;
    struct arm_order *o = calloc(1, sizeof(*o));
    int rc =
        o && !copy_pauses(o, arm) && !copy_target(o, &arm->options.target) ? 0 : st_nomem(err, "a snapshot");

    if (!rc)
        rc = tell_waits(arm, err);
    if (!rc)
        rc = rec_facts_take(&o->facts, arm->ops, arm->source, arm->sideband, arm->store,
                            outputs ? &arm->stalls : NULL, &arm->options.target, err);
    if (rc) {
        arm_order_free(o);
        return rc;
    }
    o->task.work = work;
    o->prefix = arm->options.prefix;
    o->cause = arm->cause;
    o->frames = arm->frames;
    o->kallsyms = rec_kallsyms_hold(arm->kallsyms);
    o->trap = arm->traps.fired;
    o->at_end = arm->at_end;
    o->last = arm->finish || arm_enough(arm);
    o->asked = rec_control_asked(arm->control);
    o->capture = arm->capture;
    arm->capture = (struct rec_capture){0};
    o->away = arm->away;
    arm->away = (rec_away_list){0};
    /* Of a target that waits for processes there are more now, or fewer. */
    arm->ops->describe(arm->source, o->source_text, sizeof(o->source_text));
    describe(o, arm);
    *order = o;
    return 0;
}

void arm_order_free(struct arm_order *o)
{
    if (!o)
        return;
    rec_capture_free(&o->capture);
    rec_facts_free(&o->facts);
    rec_kallsyms_close(o->kallsyms);
    st_vec_free(&o->pauses);
    st_vec_free(&o->away);
    free(o->target.pids);
    free(o->data);
    free(o->db);
    free(o);
}
