/* In words, in what state a thread left its CPU. */
#ifndef ST_BASE_TASK_STATE_H
#define ST_BASE_TASK_STATE_H

#include <stddef.h>
#include <stdint.h>

/* By the bits of task_struct.__state (include/linux/sched.h): "sleeping", "disk sleep", "stopped"...;
 * "runnable" of none; of one that has no name "state 0x1000", which is written into buf. Returns buf or a
 * constant. */
const char *st_task_state(uint32_t state, char *buf, size_t size);

/* By prev_state of the tracepoint sched:sched_switch (include/trace/events/sched.h): as above, "preempted"
 * and "idle". */
const char *st_switch_state(uint64_t prev_state, char *buf, size_t size);

#endif
