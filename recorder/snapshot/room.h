/* A snapshot of a stall that went on when it was written: its end is put into the file once it is known. The
 * file has room for that, a sample of the event stalltrap:meta that says nothing (ST_ROOM_MAGIC), which
 * becomes the record of the end, the names of its kernel functions, and what is left of the room. */
#ifndef ST_RECORDER_SNAPSHOT_ROOM_H
#define ST_RECORDER_SNAPSHOT_ROOM_H

#include "base/error.h"
#include "recorder/code/kallsyms.h"
#include "recorder/snapshot/written.h"

#include <linux/perf_event.h>
#include <stdint.h>

/* Where it is. size 0: there is none. */
struct rec_room {
    struct rec_written file;

    uint64_t offset; /* in it */

    uint32_t size;
};

/* Writes `end`, a stall record as it was drained (a sample of the bpf-output event), into the snapshot `name`
 * in the open folder `folder`, with the names that `kallsyms` (NULL: none) knows. The file is whole
 * at every moment. Returns 0; 1: the file has gone, or is another one, or the room does not do: nothing was
 * changed; ST_EFAIL: it could not be written, and is as it was; ST_ENOMEM. */
int rec_room_fill(const struct rec_room *room, int folder, const char *name,
                  const struct perf_event_header *end, const struct rec_kallsyms *kallsyms,
                  struct st_error *err);

#endif
