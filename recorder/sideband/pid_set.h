/* The processes of the target, kept up to date by the kernel's records. */
#ifndef ST_RECORDER_SIDEBAND_PID_SET_H
#define ST_RECORDER_SIDEBAND_PID_SET_H

#include "base/vec.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/types.h>

typedef ST_VEC(pid_t) rec_pid_set; /* in order */

bool rec_pid_set_has(const rec_pid_set *set, pid_t pid);

/* 0, or -1 when memory ran out. */
int rec_pid_set_add(rec_pid_set *set, pid_t pid);

void rec_pid_set_remove(rec_pid_set *set, pid_t pid);

/* Whether a record of processes (MMAP, MMAP2, COMM, FORK, EXIT) is of one in the set; true for any other
 * kind. What a process in the set forks is added; one that has the number of such a process and another
 * parent is no longer in it. Negative: out of memory. */
int rec_pid_set_takes(rec_pid_set *set, const struct perf_event_header *record);

#endif
