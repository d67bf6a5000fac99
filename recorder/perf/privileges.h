/* What this process may do. */
#ifndef ST_RECORDER_PERF_PRIVILEGES_H
#define ST_RECORDER_PERF_PRIVILEGES_H

#include <stdbool.h>

/* Whether this process has any capability. */
bool rec_has_capabilities(void);

/* Whether this process has capability `cap` (CAP_* of <linux/capability.h>) in effect. */
bool rec_has_capability(int cap);

#endif
