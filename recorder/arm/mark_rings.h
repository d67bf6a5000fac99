/* Where marks are written: a ring a CPU that the kernel overwrites. However many there are, the newest are
 * kept, no stall record is lost for them, and nobody wakes up to read them: they are taken at a snapshot. */
#ifndef ST_RECORDER_ARM_MARK_RINGS_H
#define ST_RECORDER_ARM_MARK_RINGS_H

#include "base/vec.h"
#include "recorder/perf/cpus.h"
#include "recorder/perf/event_group.h"
#include "recorder/sideband/record_store.h"
#include "recorder/sources/sample/ring.h"

struct rec_mark_ring {
    struct smp_ring ring;

    uint64_t id; /* as which event of the file its records are written */

    uint64_t taken; /* up to this time they are in the store already */
};

struct rec_mark_rings {
    ST_VEC(struct rec_mark_ring) each;

    uint64_t lost; /* that came while they were taken */

    uint64_t since; /* marks before this time were overwritten; 0: none were */
};

/* Opens the event `attr` (of BPF output) on each CPU of `group`, whose ids the records get. A ring that the
 * memory limits refuse is made smaller. ST_ECANNOT, ST_EFAIL, ST_ENOMEM: close it. */
int rec_mark_rings_open(struct rec_mark_rings *rings, const struct perf_event_attr *attr,
                        const struct rec_group *group, struct st_error *err);

/* Puts into the store what came since the last time. Marks that come meanwhile are lost, and counted when the
 * ring tells of them: at the next time. */
int rec_mark_rings_take(struct rec_mark_rings *rings, struct rec_store *store, struct st_error *err);

/* Safe on zeroed or closed ones. */
void rec_mark_rings_close(struct rec_mark_rings *rings);

#endif
