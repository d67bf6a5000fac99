/* The file of a snapshot that was written. Whoever owns its folder may put another file in the place of its
 * name at any moment: it is only read, or written to, when it is still this one. */
#ifndef ST_RECORDER_SNAPSHOT_WRITTEN_H
#define ST_RECORDER_SNAPSHOT_WRITTEN_H

#include <sys/types.h>

/* Of a snapshot in perf's directory form: its file `data`. */
struct rec_written {
    dev_t dev;

    ino_t ino;
};

enum rec_written_part {
    REC_WRITTEN_ALL, /* what has the snapshot's name: a file, or a folder */
    REC_WRITTEN_DATA /* the file itself */
};

/* Looks for the snapshot by `name` in the open folder `folder`, following no link. Returns a descriptor
 * (O_PATH, close-on-exec), the caller's; -1: it has gone, or something else has its name. */
int rec_written_find(const struct rec_written *file, int folder, const char *name,
                     enum rec_written_part part);

#endif
