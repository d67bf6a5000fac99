/* What a recording is doing about snapshots: the states, and what leads from one to the other. */
#ifndef ST_RECORDER_ARM_STATE_H
#define ST_RECORDER_ARM_STATE_H

#include <stdbool.h>

enum arm_state {
    ARM_OFF,    /* nothing is live yet */
    ARM_ARMED,  /* records; no snapshot is pending */
    ARM_DELAY,  /* one is pending, and the rings record on: --after, --until-end, or the clerk has no room */
    ARM_FROZEN, /* the rings have stopped, and are not copied yet */
    ARM_CAPTURED, /* they are copied and record on: the end of the stall is awaited, or actions run */
    ARM_ENDING,   /* the loop ends: nothing fires, nothing is taken */
    ARM_STATES
};

enum arm_event {
    ARM_LIVE, /* all is live; or, once the loop has ended, one more snapshot is to be taken (--at-end) */
    ARM_WANT, /* a snapshot is wanted */
    ARM_STOP, /* the rings have stopped */
    ARM_COPY, /* they were copied, and record on */
    ARM_DONE, /* the pending snapshot is the clerk's, or will not be written */
    ARM_QUIT, /* the recording is over */
    ARM_EVENTS
};

/* The state after an event; where it means nothing, the state is the same. */
enum arm_state arm_state_next(enum arm_state state, enum arm_event event);

/* Whether a snapshot is pending. */
bool arm_state_pending(enum arm_state state);

/* Whether stalls fire, and snapshots can be asked for. */
bool arm_state_live(enum arm_state state);

#endif
