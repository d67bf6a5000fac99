/* The limits of this process that a recording raises for itself. */
#ifndef ST_RECORDER_ARM_RLIMITS_H
#define ST_RECORDER_ARM_RLIMITS_H

/* Open files: as many as this user may have, for there are some descriptors a thread and CPU. */
void rec_limits_raise(void);

/* In a child, before its exec: as they were before rec_limits_raise. */
void rec_limits_restore(void);

#endif
