/* States of threads in words. */
#include "base/task_state.h"

#include <stdio.h>

/* In sched_switch's state only: it could have run on; TASK_IDLE. */
enum { SWITCH_PREEMPTED = 0x100, SWITCH_IDLE = 0x80 };

const char *st_task_state(uint32_t state, char *buf, size_t size)
{
    static const struct {
        uint32_t bit;

        const char *name;
    } names[] = {{0x400, "idle"},  {0x2, "disk sleep"},   {0x1, "sleeping"},
                 {0x4, "stopped"}, {0x8, "tracing stop"}, {0x20, "zombie"},
                 {0x10, "dead"},   {0x80, "dead"},        {0x40, "parked"}};

    /* With CONFIG_PREEMPT, sched_switch sets a bit above these for a thread that was preempted. */
    if (!(state & 0x7ff))
        return "runnable";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (state & names[i].bit)
            return names[i].name;
    snprintf(buf, size, "state 0x%x", state);
    return buf;
}

const char *st_switch_state(uint64_t prev_state, char *buf, size_t size)
{
    return prev_state & SWITCH_PREEMPTED ? "preempted"
           : prev_state & SWITCH_IDLE    ? "idle"
                                         : st_task_state((uint32_t)prev_state, buf, size);
}
