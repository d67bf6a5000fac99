/* jit-PID.dump: the functions that a JIT compiler made, in a file that its process keeps mapped so that it
 * can be found (Linux, tools/perf/Documentation/jitdump-specification.txt). */
#ifndef ST_RECORDER_JITDUMP_H
#define ST_RECORDER_JITDUMP_H

#include "recorder/perf_map.h"

/* Adds the names of the code in [start, end) as it is now: of what was made or moved there last. A file that
 * is damaged, or not the process's own, adds what can be read of it, or nothing. 0, or -1 when memory ran
 * out. */
int rec_jitdump_read(struct rec_perf_map *map, pid_t pid, uint64_t start, uint64_t end);

#endif
