/* /tmp/perf-PID.map: the names that a JIT compiler gives its functions (Linux,
 * tools/perf/Documentation/jit-interface.txt). */
#ifndef ST_RECORDER_CODE_PERF_MAP_H
#define ST_RECORDER_CODE_PERF_MAP_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_perf_symbol {
    uint64_t start, size;

    size_t name; /* offset in `names` */
};

struct rec_perf_range {
    uint64_t start, end;
};

/* Why names were left out. The values are part of no file. */
enum rec_perf_cut {
    REC_PERF_WHOLE,
    REC_PERF_CUT_BYTES, /* the file is larger than what is read of one */
    REC_PERF_CUT_NAMES, /* it has more names than are kept */
    REC_PERF_CUT_TIME,  /* reading it took too long */
};

/* The names of a process's code, and what bounds them: the process writes these files, and may mean harm. */
struct rec_perf_map {
    ST_VEC(struct rec_perf_symbol) symbols;

    ST_VEC(char) names;

    ST_VEC(struct rec_perf_range) within; /* ascending; names of other places are passed over */

    uint64_t stop_at; /* CPU time of this process, ns, at which reading ends; 0: never */

    enum rec_perf_cut cut;
};

enum {
    REC_PERF_MOST_BYTES = 32 << 20, /* of a perf-PID.map that are read: the last ones */
    REC_PERF_MOST_SYMBOLS = 1 << 19,
    REC_PERF_MOST_NAMES = 32 << 20 /* bytes of all names */
};

/* Opens the file as the process sees it (its mount and pid namespaces). -1: it is not there, not the
 * process's own, or no regular file. */
int rec_perf_map_open(pid_t pid);

/* Adds the names of an open perf-PID.map and closes it; lines that are none are left out. What its bounds
 * kept out is told in map->cut. 0, or -1 when memory ran out. */
int rec_perf_map_read(struct rec_perf_map *map, int fd);

/* Adds a name of `len` bytes for code at [start, start + size), unless that is not within one of the map's
 * ranges. Returns 0, 1 when the map is full (and says so in `cut`), -1 when memory ran out. */
int rec_perf_map_add(struct rec_perf_map *map, uint64_t start, uint64_t size, const char *name, size_t len);

/* Whether [start, start + size) is within one of the map's ranges. */
bool rec_perf_map_wants(const struct rec_perf_map *map, uint64_t start, uint64_t size);

/* Whether the map's time is over, which `cut` then says. Asks the clock once in a while. */
bool rec_perf_map_late(struct rec_perf_map *map, size_t turn);

/* Puts the symbols in the order of their addresses; those of one address stay in the order in which they
 * came. */
void rec_perf_map_sort(struct rec_perf_map *map);

/* The first symbol of a sorted map that begins at `start` or behind it: an index, up to symbols.n. */
size_t rec_perf_map_find(const struct rec_perf_map *map, uint64_t start);

void rec_perf_map_free(struct rec_perf_map *map);

#endif
