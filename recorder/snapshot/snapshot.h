/* Writes a snapshot: what was captured, the side-band and the stall records, as a perf.data. */
#ifndef ST_RECORDER_SNAPSHOT_SNAPSHOT_H
#define ST_RECORDER_SNAPSHOT_SNAPSHOT_H

#include "base/error.h"
#include "base/stall_record.h"
#include "base/target.h"
#include "recorder/code/kallsyms.h"
#include "recorder/sideband/away.h"
#include "recorder/snapshot/capture.h"
#include "recorder/snapshot/facts.h"
#include "recorder/snapshot/room.h"
#include "recorder/snapshot/written.h"
#include "triggers/histogram.h"
#include "triggers/trigger.h"

#include <stdint.h>

/* Everything that goes into it. All stays the caller's. */
struct rec_snapshot {
    int folder; /* that it is written to, open; -1: the one that its path leads to */

    const struct rec_capture *capture;

    const struct rec_facts *facts;

    const struct rec_away *away; /* threads that waited as it was captured */

    size_t naway;

    const struct rec_pause *pauses; /* before it, in the order of time */

    size_t npauses;

    const struct rec_kallsyms *kallsyms; /* NULL: names stay out */

    const struct st_target *target;

    int argc; /* the command line, for perf's header */

    char **argv;

    const char *reason; /* as in struct st_meta_record */

    const char *text; /* the sentence about the trap; NULL: none */

    const char *trigger; /* NULL: not a trigger */

    const struct st_stall_record *fired; /* with trigger */

    const struct trg_frames *frames; /* of `fired`, in its program's language; NULL: not known */

    const char *source_text; /* what the source says of itself */

    uint64_t armed; /* perf clock */

    uint64_t lost_events;

    struct trg_traps traps; /* so far, with this one; not yet in `written` */

    uint64_t marks_since; /* marks before were overwritten; 0: none were */

    const char *const *warnings;

    size_t nwarnings;

    struct rec_room
        *room; /* out: where the end of `fired` may be written, if that goes on; NULL: not wanted */
};

/* The attribute of the bpf-output event that carries the stall records: trg_output_attr's, with
 * REC_SAMPLE_TYPE. */
void rec_snapshot_stall_attr(struct perf_event_attr *attr);

/* Writes `path`, of which s->folder makes the last part alone count; `file` (NULL: not wanted) tells it from
 * all other files. ST_EFAIL: cannot be written, or is there already; nothing stands under the name that was
 * not there before. */
int rec_snapshot_write(const struct rec_snapshot *s, const char *path, struct rec_written *file,
                       struct st_error *err);

#endif
