/* CPUs whose events have died. The kernel takes an event of a CPU (not of a thread) off for good when the CPU
 * goes offline, also when it comes back: the list of CPUs is then what it was, and nothing is recorded there.
 */
#ifndef ST_RECORDER_PERF_CPU_WATCH_H
#define ST_RECORDER_PERF_CPU_WATCH_H

#include "recorder/perf/cpus.h"

struct rec_cpu_watch {
    rec_cpu_list cpus; /* that are watched */

    ST_VEC(int) fds; /* an event that counts nothing on each of them */
};

/* Watches those of `cpus` on which an event can be opened. ST_ENOMEM. */
int rec_cpu_watch_open(struct rec_cpu_watch *watch, const rec_cpu_list *cpus, struct st_error *err);

/* Those whose event is dead, as "1,3"; "" where none is. Takes a millisecond. Returns text. */
const char *rec_cpu_watch_dead(const struct rec_cpu_watch *watch, char *text, size_t size);

/* Safe on a zeroed or closed one. */
void rec_cpu_watch_close(struct rec_cpu_watch *watch);

#endif
