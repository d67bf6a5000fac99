/* How long the system call that a thread is in was asked to wait. */
#ifndef ST_TRIGGERS_TIMEOUT_ASKED_H
#define ST_TRIGGERS_TIMEOUT_ASKED_H

#include "base/stall_record.h"

#include <sys/types.h>

/* ns that CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. */
uint64_t trg_real_offset(void);

/* Of a 64-bit system call that a thread of process `pid` is in with these arguments, since `start`
 * (CLOCK_MONOTONIC ns; 0: not known, and a wait until a time of a clock has no length): ns, 0 where it has no
 * time-out, or none that can be read. */
uint64_t trg_timeout_asked(pid_t pid, int32_t syscall, const uint64_t *args, uint64_t start);

#endif
