/* A snapshot that is taken and not written yet: it owns all that goes into the file, so that the recording
 * goes on while the clerk writes it. */
#ifndef ST_RECORDER_ARM_ORDER_H
#define ST_RECORDER_ARM_ORDER_H

#include "recorder/arm/arm.h"
#include "recorder/arm/clerk.h"
#include "recorder/snapshot/snapshot.h"

struct arm_order {
    struct rec_task task; /* the first member */

    struct rec_snapshot snapshot; /* of what follows, and of what lives as long as arm does */

    const char *prefix;

    char source_text[384];

    struct st_target target; /* as it was; its processes are the order's own */

    struct rec_facts facts;

    struct rec_capture capture;

    rec_away_list away;

    struct arm_cause cause;

    struct trg_frames frames;

    ST_VEC(struct rec_pause) pauses;

    struct rec_kallsyms *kallsyms;

    unsigned trap; /* its number */

    unsigned asked; /* those who asked by then for a snapshot get this one (rec_control_asked) */

    bool last, at_end; /* nothing is recorded after it; it is that of --at-end */

    /* What became of it: 0 or an error. */
    int rc;

    struct st_error error;

    char *data, *db;

    struct rec_written file;

    struct rec_room room;
};

/* Moves the capture of the pending snapshot into an order, with all that is known of it now. ST_ENOMEM: the
 * capture is still arm's. */
int arm_order_make(struct arm *arm, struct arm_order **order, struct st_error *err);

/* NULL is allowed. */
void arm_order_free(struct arm_order *order);

#endif
