/* A recording whose surroundings are made up: everything around arm_trap.c, arm_snapshot.c and arm_late_end.c
 * is replaced (extra.cmake: --wrap). */
#ifndef ST_UNIT_RECORDER_ARM_WORLD_H
#define ST_UNIT_RECORDER_ARM_WORLD_H

#include "recorder/arm/order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern char steps[256]; /* what was done, a word each: freeze, copy, resume, complete, write, fill */

extern struct rec_pause told[8]; /* of the snapshot that was written last */
extern size_t ntold;

extern struct st_error error; /* printed where it concerns one snapshot only */

extern struct rec_first stopped_first; /* by the last freeze */

extern bool has_fired;    /* the triggers write a record, once */
extern uint32_t fires_as; /* its flags: enum st_stall_flag */

extern bool fails_freezing, fails_copying, fails_resuming, fails_writing;

extern struct rec_task *given[4]; /* to the clerk, which works when it is told to */
extern size_t ngiven;

/* cmocka's; *state is the struct arm. */
int begin_arm(void **state);
int end_arm(void **state);

/* Whether it holds the record of the stall with all that only user space can add to it. */
bool holds_completed(const struct rec_store *store);

/* The clerk writes one snapshot, or all, and hands them back. */
void hand_back(struct arm *arm);
void hand_all_back(struct arm *arm);

#endif
