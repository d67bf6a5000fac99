/* What a snapshot says of that which is open while it is recorded: taken at one moment and owned, so that it
 * can be written while the recording goes on, or after it. */
#ifndef ST_RECORDER_SNAPSHOT_FACTS_H
#define ST_RECORDER_SNAPSHOT_FACTS_H

#include "base/error.h"
#include "base/vec.h"
#include "perfdata/format.h"
#include "recorder/perf/event_group.h"
#include "recorder/sideband/record_store.h"
#include "recorder/sideband/sideband.h"
#include "recorder/sources/source.h"

#include <stdbool.h>
#include <stdint.h>

/* An event of the recording. */
struct rec_fact_event {
    struct perf_event_attr attr;

    const char *name; /* as perf names it; NULL: it has no records */

    ST_VEC(uint64_t) ids;
};

struct rec_facts {
    const char *source; /* its name */

    bool records; /* as rec_source_ops.records */

    bool all; /* the whole machine is the target */

    ST_VEC(struct rec_fact_event) recorded; /* by the source: the first one traces, or samples */

    uint64_t priv[PD_PT_PRIV_MAX]; /* of Intel PT */

    struct rec_fact_event group[REC_SIDEBAND_GROUPS]; /* enum rec_sideband_group */

    struct rec_fact_event stalls; /* no ids: no triggers */

    struct rec_filter filter; /* of what the source's rings hold */

    struct rec_view sideband;

    uint64_t ring_total; /* bytes that all rings may take; 0: not bounded */

    ST_VEC(struct rec_ring_gone) gone; /* threads that have none for that */

    char unseen_cpus[1024], unmarked_cpus[1024], left_out[128]; /* as the source's functions tell them */
};

/* Takes them from what is open. `stalls` may be NULL. ST_ENOMEM: nothing is held. */
int rec_facts_take(struct rec_facts *facts, const struct rec_source_ops *ops, struct rec_source *source,
                   const struct rec_sideband *sideband, const struct rec_store *store,
                   const struct rec_group *stalls, const struct st_target *target, struct st_error *err);

/* Safe on a zeroed struct. */
void rec_facts_free(struct rec_facts *facts);

#endif
