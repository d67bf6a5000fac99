/* The states of a recording. */
#include "recorder/arm/state.h"

enum arm_state arm_state_next(enum arm_state state, enum arm_event event)
{
    /* 0, which is ARM_OFF, leads nowhere. */
    static const unsigned char to[ARM_STATES][ARM_EVENTS] = {
        [ARM_OFF] = {[ARM_LIVE] = ARM_ARMED, [ARM_QUIT] = ARM_ENDING},
        [ARM_ARMED] = {[ARM_WANT] = ARM_DELAY, [ARM_QUIT] = ARM_ENDING},
        [ARM_DELAY] = {[ARM_STOP] = ARM_FROZEN, [ARM_DONE] = ARM_ARMED, [ARM_QUIT] = ARM_ENDING},
        [ARM_FROZEN] = {[ARM_COPY] = ARM_CAPTURED, [ARM_DONE] = ARM_ARMED, [ARM_QUIT] = ARM_ENDING},
        [ARM_CAPTURED] = {[ARM_DONE] = ARM_ARMED, [ARM_QUIT] = ARM_ENDING},
        [ARM_ENDING] = {[ARM_LIVE] = ARM_ARMED},
    };

    return to[state][event] ? (enum arm_state)to[state][event] : state;
}

bool arm_state_pending(enum arm_state state)
{
    return state == ARM_DELAY || state == ARM_FROZEN || state == ARM_CAPTURED;
}

bool arm_state_live(enum arm_state state)
{
    return state != ARM_OFF && state != ARM_ENDING;
}
