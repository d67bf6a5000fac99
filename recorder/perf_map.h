/* /tmp/perf-PID.map: the names that a JIT compiler gives its functions (Linux,
 * tools/perf/Documentation/jit-interface.txt). */
#ifndef ST_RECORDER_PERF_MAP_H
#define ST_RECORDER_PERF_MAP_H

#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>

struct rec_perf_symbol {
    uint64_t start, size;

    size_t name; /* offset in `names` */
};

struct rec_perf_map {
    ST_VEC(struct rec_perf_symbol) symbols;

    ST_VEC(char) names;
};

/* Reads the names of [start, end) as the process sees the file (its mount and pid namespaces). Lines that are
 * none are left out; a file that is not there, not the process's own, or no regular file, gives an empty map.
 * 0, or -1 when memory ran out. */
int rec_perf_map_read(struct rec_perf_map *map, pid_t pid, uint64_t start, uint64_t end);

void rec_perf_map_free(struct rec_perf_map *map);

#endif
