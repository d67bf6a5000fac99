/* Giving up what a child does not need. */
#ifndef ST_RECORDER_PRIVILEGES_H
#define ST_RECORDER_PRIVILEGES_H

#include <stdbool.h>

/* Gives up every capability (effective, permitted, inheritable, ambient, bounding) for this process and all
 * it will exec, for ever; the user id stays. Returns 0, or -1 with errno when a capability would be left. */
int rec_drop_privileges(void);

/* Whether this process has any capability. */
bool rec_has_capabilities(void);

/* Whether this process has capability `cap` (CAP_* of <linux/capability.h>) in effect. */
bool rec_has_capability(int cap);

#endif
