/* The parts of recorder/snapshot.c. */
#ifndef ST_RECORDER_SNAPSHOT_IMPL_H
#define ST_RECORDER_SNAPSHOT_IMPL_H

#include "perfdata/writer.h"
#include "recorder/snapshot.h"

/* The events' places in the file. */
enum snap_event { SNAP_TRACE, SNAP_STATE, SNAP_SWITCHES, SNAP_STALLS, SNAP_META, SNAP_EVENTS };

struct snap {
    const struct rec_snapshot *in;

    struct pd_writer *w;

    uint64_t ids[SNAP_EVENTS]; /* one of each event, for records made here */

    uint64_t time; /* of samples made here: the end of the freeze */
};

/* snapshot_meta.c: how the snapshot came about. */
int snap_write_meta(struct snap *s, struct st_error *err);

/* snapshot_names.c: the names of the kernel addresses that the stall records in `list` hold. */
int snap_write_names(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* snapshot_code.c: executable memory that no file holds. */
int snap_write_code(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* snapshot_files.c: the build ids of the files, for the header. */
int snap_write_build_ids(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* A sample made here, of event SNAP_STALLS or SNAP_META. */
int snap_write_sample(struct snap *s, enum snap_event event, const void *raw, size_t size,
                      struct st_error *err);

#endif
