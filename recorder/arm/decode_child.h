/* The child that decodes a snapshot: this program again, as `decode`, which lets go of every privilege where
 * it parses (decoder/cmd/worker.h). */
#ifndef ST_RECORDER_ARM_DECODE_CHILD_H
#define ST_RECORDER_ARM_DECODE_CHILD_H

#include "recorder/arm/child.h"

#include <stdbool.h>

struct rec_decode {
    const char *data, *db; /* paths, for messages; must live until the child runs */

    int in; /* the snapshot, open (O_PATH will do) */

    int folder; /* that it is in, and `db` will be */

    bool beside; /* a recording that goes on: what it records comes first */

    bool again; /* `db` is there, and is replaced when the new one is whole */
};

/* rec_child_fn; arg: struct rec_decode. */
void rec_decode_run(void *arg);

/* The recording has ended: the child, and its own, get this process's share of the CPUs. Without the right to
 * (CAP_SYS_NICE) they stay as they are. */
void rec_decode_hurry(pid_t pid);

#endif
