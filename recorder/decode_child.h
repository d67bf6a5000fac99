/* The child that decodes a snapshot: this program again, as `decode`, without any privilege. */
#ifndef ST_RECORDER_DECODE_CHILD_H
#define ST_RECORDER_DECODE_CHILD_H

#include "base/error.h"
#include "recorder/child.h"

#include <limits.h>
#include <stdbool.h>

struct rec_decode {
    const char *data, *db; /* paths */

    int fd; /* of the snapshot, where the child may not walk to its path; else -1 */

    char folder[PATH_MAX]; /* of our own, where the child may not write to db's; else "" */

    char out[PATH_MAX + 16]; /* what the child writes */
};

/* Prepares: where does the child read and write? A folder that belongs to somebody else takes no file of a
 * root without capabilities; the child then writes to a folder of our own and rec_decode_finish moves the
 * file. `data` and `db` must live as long as the struct. */
int rec_decode_plan(struct rec_decode *decode, const char *data, const char *db, struct st_error *err);

/* rec_child_fn; arg: struct rec_decode. */
void rec_decode_run(void *arg);

/* After the child's end: with `succeeded`, puts the database under its name; frees what the plan took. */
int rec_decode_finish(struct rec_decode *decode, bool succeeded, struct st_error *err);

#endif
