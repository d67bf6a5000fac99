/* jit-PID.dump: the functions that a JIT compiler made, in a file that its process keeps mapped so that it
 * can be found (Linux, tools/perf/Documentation/jitdump-specification.txt). */
#ifndef ST_RECORDER_CODE_JITDUMP_H
#define ST_RECORDER_CODE_JITDUMP_H

#include "recorder/code/perf_map.h"

/* Opens the dump that the process keeps mapped. -1: there is none, it is not the process's own, or no regular
 * file. */
int rec_jitdump_open(pid_t pid);

/* Adds the names of the code as it is now: of what was made or moved to a place last. Closes `fd`. A file
 * that is damaged adds what can be read of it, or nothing; what the map's bounds kept out is told in
 * map->cut. 0, or -1 when memory ran out. */
int rec_jitdump_read(struct rec_perf_map *map, int fd);

#endif
