/* The executable mappings of a process, from /proc/PID/maps. */
#ifndef ST_RECORDER_CODE_PROC_MAPS_H
#define ST_RECORDER_CODE_PROC_MAPS_H

#include "base/error.h"
#include "recorder/code/build_id.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_map {
    uint64_t start, end, pgoff;

    uint32_t maj, min;

    uint64_t ino;

    uint32_t prot, flags; /* PROT_*, MAP_* */

    bool deleted; /* the file has no name any more */

    char name[PATH_MAX]; /* as in an MMAP2 record: a path, "[vdso]", "//anon" */
};

/* Calls fn for each executable mapping in order of address. Returns 0, fn's non-zero result, or ST_EFAIL when
 * the process is gone or may not be looked at. */
typedef int rec_map_fn(void *ctx, const struct rec_map *map, struct st_error *err);
int rec_proc_maps(pid_t pid, rec_map_fn *fn, void *ctx, struct st_error *err);

/* Opens the file behind a mapping: through /proc/PID/map_files, else by its name as the process sees it, if
 * that is still the same file. Returns the descriptor, or -1. */
int rec_map_open(pid_t pid, const struct rec_map *map);

/* Whether somebody who only has the mapping's name, in our own mount namespace, and no privilege, finds the
 * code's bytes under it. */
bool rec_map_findable(const struct rec_map *map);

/* Reads `size` bytes of the process's memory. Returns how many could be read from the start (0: none). */
size_t rec_proc_read(int memory, uint64_t address, void *to, size_t size);

#endif
