/* The options of `arm`. */
#ifndef ST_RECORDER_ARM_OPTIONS_H
#define ST_RECORDER_ARM_OPTIONS_H

#include "base/error.h"
#include "base/target.h"
#include "base/vec.h"
#include "recorder/arm/action.h"
#include "recorder/sources/source.h"
#include "triggers/trigger.h"

#include <stdbool.h>
#include <stdint.h>

/* Actions in order. The snapshot is written behind the first `before` of them. */
struct arm_actions {
    ST_VEC(struct rec_action) each; /* without the snapshot */

    bool has_snapshot;

    size_t before;
};

struct arm_options {
    struct st_target target;

    struct trg_set *triggers; /* NULL: no --on */

    struct trg_set *marks; /* NULL: none */

    const char *source;

    int kernel; /* --kernel 1, --no-kernel 0, neither -1 */

    enum rec_rings rings;

    uint64_t ring_bytes; /* 0: the source's default */

    uint64_t ring_total; /* 0: the default */

    long frequency; /* of samples; 0: the source's default */

    enum rec_callgraph callgraph;

    bool every_switch, syscalls;

    const char *prometheus; /* NULL: not wanted */

    const char *prefix;

    long snapshots; /* 0: no limit */

    bool cooldown_given;

    uint64_t keep_free; /* bytes of the disk; UINT64_MAX: not said */

    uint64_t cooldown, after, warm_up, timeout; /* ns; timeout 0: none */

    uint64_t until_end; /* ns that a snapshot waits for the end of its stall at most; 0: not at all */

    struct arm_actions then, at_end;

    bool no_decode;

    long ready_fd; /* -1: none */

    bool quiet, verbose;
};

/* Parses; sets the log level. Returns 0, 1 when help was printed, or a negative code. The options are to be
 * freed in any case. */
int arm_options_parse(struct arm_options *o, int argc, char **argv, struct st_error *err);

void arm_options_free(struct arm_options *o);

#endif
