/* One recording: everything `arm` has open, and the parts of its work. */
#ifndef ST_RECORDER_ARM_H
#define ST_RECORDER_ARM_H

#include "recorder/alive.h"
#include "recorder/arm_options.h"
#include "recorder/capture.h"
#include "recorder/control.h"
#include "recorder/event_group.h"
#include "recorder/jobs.h"
#include "recorder/kallsyms.h"
#include "recorder/launch.h"
#include "recorder/loop.h"
#include "recorder/mark_rings.h"
#include "recorder/metrics.h"
#include "recorder/perf_clock.h"
#include "recorder/record_store.h"
#include "recorder/sideband.h"
#include "recorder/source.h"

/* Why a snapshot is taken. */
enum arm_reason {
    ARM_NONE,
    ARM_TRIGGER,
    ARM_INTERRUPT, /* Ctrl-C: the last one */
    ARM_SIGNAL,    /* SIGUSR2 */
    ARM_SNAP,      /* `stalltrap snap` */
    ARM_END,       /* the target ended */
};

struct arm_cause {
    enum arm_reason reason; /* ARM_NONE: nothing is pending */

    struct st_stall_record record; /* ARM_TRIGGER */

    bool told; /* its line was printed */

    char text[700]; /* the sentence */
};

struct arm {
    struct arm_options options;

    int argc;

    char **argv;

    int loop;

    struct rec_watch signals, timeout, after, launched, source_ready; /* fd -1: not open */

    struct rec_launch launch;

    struct rec_clock clock;

    struct rec_store *store;

    struct rec_sideband *sideband;

    struct rec_group stalls; /* bpf-output events */

    struct rec_mark_rings marks;

    const struct rec_source_ops *ops;

    struct rec_source *source;

    struct rec_alive alive;

    struct rec_control *control;

    struct rec_jobs *jobs;

    struct rec_metrics *metrics;

    struct rec_kallsyms *kallsyms; /* read at the first trap */

    bool kallsyms_tried;

    ST_VEC(const char *) warnings; /* for the snapshot */

    char source_text[256];

    uint64_t armed; /* perf clock */

    bool live; /* traps count */

    struct arm_cause cause; /* of the snapshot that is pending or being written */

    bool frozen; /* the source is, for that snapshot */

    bool captured; /* it is copied, and waits for the actions that come before it */

    struct rec_action_run before;

    unsigned dropped; /* traps whose snapshot was not written because such an action failed */

    bool at_end; /* the snapshot of --at-end is being taken */

    bool ended_by_signal; /* SIGTERM or SIGHUP: nothing more is done */

    struct rec_capture capture;

    ST_VEC(struct rec_pause) pauses; /* for snapshots before this one, the last of them */

    unsigned traps; /* that fired */

    unsigned written; /* snapshots */

    char *last_data, *last_db; /* of the last one; NULL: none */

    enum arm_reason last_reason;

    bool failed; /* to write one */

    bool finish; /* the loop ends */
};

/* arm_setup.c: opens everything in the order in which nothing is missed, and prints the armed line. On error
 * everything that was opened stays for arm_close. */
int arm_open(struct arm *arm, struct st_error *err);

/* Detaches from the target: nothing is recorded any more. What was written is still decoded. */
void arm_detach(struct arm *arm);

/* Frees the rest. */
void arm_close(struct arm *arm);

/* arm_loop.c: the callbacks of the loop. */
int arm_on_signal(void *ctx, struct st_error *err);
int arm_on_timeout(void *ctx, struct st_error *err);
int arm_on_after(void *ctx, struct st_error *err);
int arm_on_launched(void *ctx, struct st_error *err);
int arm_on_source(void *ctx, struct st_error *err);
int arm_on_stalls(void *ctx, struct st_error *err);
int arm_on_ended(void *ctx, struct st_error *err);
int arm_on_snap(void *ctx, struct st_error *err);

/* Waits and works until the recording is over and every job is done. */
int arm_run(struct arm *arm, struct st_error *err);

/* arm_trap.c: reads what the triggers wrote; a record that fires makes a snapshot pending. */
int arm_drain_stalls(struct arm *arm, struct st_error *err);

/* A snapshot is wanted: now, or with --after and a trigger, later. A pending one serves all who ask
 * meanwhile. */
int arm_want(struct arm *arm, enum arm_reason reason, const struct st_stall_record *record,
             struct st_error *err);

/* arm_snapshot.c: prints what the pending snapshot is for, once. */
void arm_tell(struct arm *arm);

/* Freezes the source for the pending snapshot, if it is not frozen yet. */
int arm_freeze(struct arm *arm, struct st_error *err);

/* Takes and writes the pending snapshot, now. An error that concerns this snapshot only is printed. */
int arm_take(struct arm *arm, struct st_error *err);

#endif
