/* What a process has mapped. */
#ifndef ST_TRIGGERS_MAPPINGS_H
#define ST_TRIGGERS_MAPPINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct trg_mapping {
    uint64_t start, end, offset;

    unsigned long long inode; /* 0: no file */

    bool code; /* executable */

    char name[PATH_MAX]; /* "": it has none */
};

/* The first mapping, in the order of /proc/PID/maps, for which `is` says so; others may be noted in ctx. At
 * most 20,000 are looked at. False: there is none, or the process cannot be looked at. */
typedef bool trg_mapping_fn(void *ctx, const struct trg_mapping *mapping);
bool trg_find_mapping(pid_t pid, trg_mapping_fn *is, void *ctx, struct trg_mapping *mapping);

#endif
