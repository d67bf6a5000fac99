/* The names that a JIT compiler wrote down for a process's code: its perf-PID.map and its jitdump.
 *
 * The process owns these files and may write anything into them, or put a file system under them that never
 * answers. So a child reads them, which has no privilege left, bounds on its memory and its time, and is
 * killed when it is late. */
#ifndef ST_RECORDER_CODE_NAMES_H
#define ST_RECORDER_CODE_NAMES_H

#include "recorder/code/perf_map.h"

/* Reads the names of the anonymous executable mappings of process `pid` into `map`, sorted, in at most
 * `patience` ms. Whatever cannot be read gives no names. `why` gets a sentence when names were left out that
 * may exist, else "". The map is to be freed. Returns the ms that it took. */
unsigned rec_code_names_read(pid_t pid, unsigned patience, struct rec_perf_map *map, char *why, size_t size);

#endif
