/* PREFIX.N.data and PREFIX.N.db. */
#ifndef ST_RECORDER_SNAPSHOT_NAME_H
#define ST_RECORDER_SNAPSHOT_NAME_H

#include "base/error.h"

/* Opens the folder of the snapshots: by its path, this one time. Says now whether files can be created there,
 * which would otherwise be found out at the first trap, and removes what a killed recording or decoding of
 * the same prefix had begun. Returns the descriptor, the caller's. ST_EFAIL, ST_EUSAGE, ST_ENOMEM. */
int rec_snapshot_folder(const char *prefix, struct st_error *err);

/* The number behind the highest N of PREFIX.N.data, PREFIX.N.db, PREFIX.N.code that are in the open folder
 * `folder` (1 where none is). ST_EFAIL when it cannot be read. */
int rec_snapshot_next(int folder, const char *prefix, unsigned *n, struct st_error *err);

/* "PREFIX.N.SUFFIX", malloc'd; NULL when memory ran out. */
char *rec_snapshot_path(const char *prefix, unsigned n, const char *suffix);

#endif
