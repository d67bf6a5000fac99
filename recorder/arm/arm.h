/* One recording: everything `arm` has open, and the parts of its work. */
#ifndef ST_RECORDER_ARM_ARM_H
#define ST_RECORDER_ARM_ARM_H

#include "base/loop.h"
#include "recorder/arm/alive.h"
#include "recorder/arm/clerk.h"
#include "recorder/arm/control.h"
#include "recorder/arm/jobs.h"
#include "recorder/arm/joins.h"
#include "recorder/arm/launch.h"
#include "recorder/arm/mark_rings.h"
#include "recorder/arm/metrics.h"
#include "recorder/arm/options.h"
#include "recorder/arm/state.h"
#include "recorder/code/kallsyms.h"
#include "recorder/perf/clock.h"
#include "recorder/perf/event_group.h"
#include "recorder/sideband/away.h"
#include "recorder/sideband/record_store.h"
#include "recorder/sideband/sideband.h"
#include "recorder/snapshot/capture.h"
#include "recorder/snapshot/room.h"
#include "recorder/sources/source.h"

/* Why a snapshot is taken. */
enum arm_reason {
    ARM_NONE,
    ARM_TRIGGER,
    ARM_INTERRUPT, /* Ctrl-C: the last one */
    ARM_SIGNAL,    /* SIGUSR2 */
    ARM_SNAP,      /* `stalltrap snap` */
    ARM_END,       /* the target ended */
    ARM_TIMEOUT,   /* --timeout without --on: the last one */
};

struct arm_cause {
    enum arm_reason reason; /* ARM_NONE: nothing is pending, by arm_state_pending too */

    struct st_stall_record record; /* ARM_TRIGGER */

    bool told; /* its line was printed */

    char text[700]; /* the sentence */
};

/* What bounds a recording that has no end (limits.c). */
struct arm_limits {
    struct rec_watch timer; /* looks again whether there is room; fd -1: not open */

    uint64_t keep_free; /* bytes of the disk; 0: no matter */

    unsigned waiting; /* snapshots that may wait to be decoded; 0: any number */

    bool rate; /* traps take tokens, which come back with time */

    unsigned tokens;

    uint64_t refilled; /* when they last were, CLOCK_MONOTONIC ns */

    bool holding; /* nothing fires, for want of room */

    uint64_t until; /* nothing fires before, CLOCK_MONOTONIC ns; UINT64_MAX: until further notice */

    uint64_t cooled; /* when --cooldown or --warm-up is over, CLOCK_MONOTONIC ns */

    bool told; /* that was said */
};

enum arm_waits {
    ARM_FOR_NOTHING, /* or --after, or the clerk */
    ARM_FOR_STALL,   /* its end (until_end.c) */
    ARM_FOR_ACTIONS, /* that come before the snapshot */
};

/* The end of the stall that is the cause: the snapshot waits for it (until_end.c). */
struct arm_end {
    struct rec_watch timer; /* looks whether it still may; fd -1: not open */

    uint64_t until; /* CLOCK_MONOTONIC ns */
};

struct arm_order; /* recorder/arm/order.h */

/* A stall that went on when its snapshot was written (late_end.c). */
struct arm_open_stall {
    struct st_stall_record record;

    unsigned trap; /* its number */

    const struct arm_order *order; /* the snapshot is being written; NULL: it is there */

    char *data, *db, *reason; /* as the jobs had them */

    struct rec_room room;

    struct perf_event_header *end; /* came while it was being written; NULL: did not */
};

enum {
    ARM_MOST_WAITING = 8, /* snapshots, to be decoded */
    ARM_MOST_OPEN = 64,
    ARM_MOST_WRITING = 2, /* snapshots that are being written, or wait for that */
};

struct arm {
    struct arm_options options;

    int argc;

    char **argv;

    int loop;

    int folder; /* of the snapshots and their databases; -1: not open */

    struct rec_watch signals, timeout, after, unseen, look, launched, source_ready; /* fd -1: not open */

    struct arm_end end;

    struct arm_limits limits;

    struct rec_launch launch;

    struct rec_clock clock;

    struct rec_store *store;

    struct trg_select *select; /* NULL: events are opened on threads */

    struct rec_sideband *sideband;

    struct rec_group stalls; /* bpf-output events */

    struct rec_mark_rings marks;

    const struct rec_source_ops *ops;

    struct rec_source *source;

    struct rec_alive alive;

    struct rec_joins joins; /* of a target that waits for processes; watch.fd -1: not open */

    bool told_unwatched; /* that a process cannot be watched */

    struct rec_control *control;

    struct rec_clerk *clerk; /* writes the snapshots */

    struct rec_jobs *jobs;

    struct rec_metrics *metrics;

    struct rec_kallsyms *kallsyms; /* read while arming, for a trap must not wait for it */

    bool kallsyms_tried;

    ST_VEC(const char *) warnings; /* for the snapshot */

    char source_text[384];

    uint64_t armed; /* perf clock */

    enum arm_state state;

    enum arm_waits waits; /* for what, while it is ARM_DELAY or ARM_CAPTURED */

    bool finish; /* the pending snapshot is the last one */

    struct trg_frames frames; /* of the stall that is the cause */

    struct arm_cause cause; /* of the snapshot that is pending or being written */

    struct rec_action_run before;

    unsigned dropped; /* traps whose snapshot was not written because such an action failed */

    bool at_end; /* the snapshot of --at-end is being taken */

    bool ended_by_signal; /* SIGTERM or SIGHUP: nothing more is done */

    struct rec_capture capture;

    rec_away_list away; /* as it was captured */

    ST_VEC(struct perf_event_header *) incomplete; /* records that fired while the source was frozen */

    ST_VEC(struct rec_pause) pauses; /* for snapshots before this one, the last of them */

    struct trg_traps traps;

    unsigned taken; /* snapshots; some are not written yet, or could not be */

    unsigned written;

    char *last_data, *last_db; /* of the last one; NULL: none */

    ST_VEC(struct arm_open_stall) open_stalls; /* the oldest first */

    enum arm_reason last_reason;

    bool failed; /* to write one */
};

/* setup.c: opens everything in the order in which nothing is missed, and prints the armed line. On error
 * everything that was opened stays for arm_close. */
int arm_open(struct arm *arm, struct st_error *err);

/* Detaches from the target: nothing is recorded any more. What was taken is still written and decoded. */
void arm_detach(struct arm *arm);

/* Nobody can ask for a snapshot any more; who waits for one gets an error. */
void arm_hang_up(struct arm *arm);

/* Frees the rest. */
void arm_close(struct arm *arm);

/* loop.c: something has happened to the state. */
void arm_moves(struct arm *arm, enum arm_event event);

/* The callbacks of the loop. */
int arm_on_signal(void *ctx, struct st_error *err);
int arm_on_timeout(void *ctx, struct st_error *err);
int arm_on_after(void *ctx, struct st_error *err);
int arm_on_end_timer(void *ctx, struct st_error *err);
int arm_on_unseen(void *ctx, struct st_error *err);
int arm_on_look(void *ctx, struct st_error *err);
int arm_on_launched(void *ctx, struct st_error *err);
int arm_on_source(void *ctx, struct st_error *err);
int arm_on_stalls(void *ctx, struct st_error *err);
int arm_on_ended(void *ctx, struct st_error *err);
int arm_on_came(void *ctx, const struct rec_join *list, size_t n, struct st_error *err);
int arm_on_left(void *ctx, pid_t pid, struct st_error *err);
int arm_on_gone(void *ctx, struct st_error *err);
int arm_on_snap(void *ctx, struct st_error *err);

/* join.c: begins to hear of processes that come into the target, where it waits for such. */
int arm_open_joins(struct arm *arm, struct st_error *err);

/* Who is recorded, as a part of the armed line with "; " at its end; "" where the source says all. */
void arm_joins_describe(const struct arm *arm, char *text, size_t size);

/* limits.c: takes the limits from the options, and the disk as it is now. */
void arm_limits_set(struct arm *arm);

/* They as a part of the armed line, beginning with ";"; "" when there are none. */
void arm_limits_describe(const struct arm *arm, char *text, size_t size);

/* Lets the triggers fire after the warm-up; where there is no room for a snapshot, when there is. */
int arm_limits_start(struct arm *arm, struct st_error *err);

/* Whether nothing may fire now. The triggers know it too, but a record that was on its way may come later. */
bool arm_limits_hold(const struct arm *arm);

/* A snapshot is taken: the triggers may fire again, after --cooldown and when the limits allow it. `trapped`:
 * a trigger had asked for it. */
int arm_limits_next(struct arm *arm, bool trapped, struct st_error *err);

/* Something that was in the way may have gone: looks at once. */
int arm_limits_again(struct arm *arm, struct st_error *err);

/* The callback of limits.timer. */
int arm_on_limits(void *ctx, struct st_error *err);

/* Waits and works until the recording is over and every job is done. */
int arm_run(struct arm *arm, struct st_error *err);

/* trap.c: reads what the triggers wrote; a record that fires makes a snapshot pending. */
int arm_drain_stalls(struct arm *arm, struct st_error *err);

/* Completes and stores the records that fired while the source was frozen: to be called when it goes on.
 * ST_ENOMEM: those left are lost. */
int arm_complete_stalls(struct arm *arm, struct st_error *err);

/* A snapshot is wanted: now, or with --after and a trigger, later. A pending one serves all who ask
 * meanwhile. */
int arm_want(struct arm *arm, enum arm_reason reason, const struct st_stall_record *record,
             struct st_error *err);

/* snapshot.c: reads the names of kernel addresses, or again when modules came or went. Without them (this
 * user may not see them, no memory) names stay out. */
void arm_load_kallsyms(struct arm *arm);

/* The sentence about a stall, not escaped. */
void arm_describe(struct arm *arm, const struct st_stall_record *record, char *text, size_t size);

/* Prints what the pending snapshot is for, once. */
void arm_tell(struct arm *arm);

/* Freezes the source for a snapshot, if it is not frozen yet: the ring of the thread that `stalled` tells of
 * before the others (NULL: there is none). */
int arm_freeze(struct arm *arm, const struct st_stall_record *stalled, struct st_error *err);

/* Copies what the source holds for the pending snapshot, into arm->capture, and lets it go on. On an error
 * nothing is held. */
int arm_capture(struct arm *arm, struct st_error *err);

/* Whether the pending snapshot is the last one that was asked for. */
bool arm_enough(const struct arm *arm);

/* The callback of the clerk: a snapshot was written, or could not be. */
int arm_on_written(void *ctx, struct rec_task *task, struct st_error *err);

/* Takes the pending snapshot, now, and gives it to the clerk to be written. An error that concerns this
 * snapshot only is printed. */
int arm_take(struct arm *arm, struct st_error *err);

/* There is no such snapshot, for the error that is printed: the recording goes on. */
int arm_take_failed(struct arm *arm, struct st_error *err);

/* until_end.c: whether the stall of the record goes on, and its end is to be awaited. */
bool arm_end_awaited(const struct arm *arm, const struct st_stall_record *record);

/* Whether the source records on past a trap with that record; else the rings stop at once. */
bool arm_records_on(const struct arm *arm, const struct st_stall_record *record);

/* A completion came: if it is that of the cause, the cause is complete. */
void arm_end_told(struct arm *arm, const struct st_stall_record *record);

/* Takes the pending snapshot of a trap if its stall has ended; else waits for that. */
int arm_take_at_end(struct arm *arm, struct st_error *err);

/* It is not awaited any more. */
void arm_end_forget(struct arm *arm);

/* late_end.c: a snapshot is about to be written; where its stall goes on, the end is put into it when it
 * comes. ST_ENOMEM. */
int arm_leave_open(struct arm *arm, const struct arm_order *order, struct st_error *err);

/* It was written, or could not be. If the end came meanwhile, it is put into it now. ST_ENOMEM. */
int arm_open_written(struct arm *arm, const struct arm_order *order, struct st_error *err);

/* A completion came: if it is that of such a stall, its snapshot and its database get it. What fails is told,
 * and no error but ST_ENOMEM. */
int arm_late_end(struct arm *arm, const struct perf_event_header *record, const struct st_stall_record *end,
                 struct st_error *err);

void arm_forget_open(struct arm *arm);

#endif
