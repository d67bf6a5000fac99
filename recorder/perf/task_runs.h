/* How often a thread got a CPU, and for how long in all: /proc/PID/task/TID/schedstat (fs/proc/base.c,
 * proc_pid_schedstat). It did not run between two readings that are alike. */
#ifndef ST_RECORDER_PERF_TASK_RUNS_H
#define ST_RECORDER_PERF_TASK_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_task_runs {
    uint64_t ns, times;
};

/* False: it has ended, or the kernel does not count (CONFIG_SCHED_INFO). */
bool rec_task_runs(pid_t pid, pid_t tid, struct rec_task_runs *runs);

/* The beginning of a file in /proc/PID/task/TID, as a string. False: it cannot be read. */
bool rec_task_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size);

#endif
