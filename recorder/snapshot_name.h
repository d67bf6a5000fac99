/* PREFIX.N.data and PREFIX.N.db. */
#ifndef ST_RECORDER_SNAPSHOT_NAME_H
#define ST_RECORDER_SNAPSHOT_NAME_H

#include "base/error.h"

/* The number behind the highest N of PREFIX.N.data, PREFIX.N.db, PREFIX.N.code that are there (1 where none
 * is). ST_EFAIL when the folder cannot be read. */
int rec_snapshot_next(const char *prefix, unsigned *n, struct st_error *err);

/* Whether files can be created there: says now what would otherwise be found out at the first trap. */
int rec_snapshot_check(const char *prefix, struct st_error *err);

/* "PREFIX.N.SUFFIX", malloc'd; NULL when memory ran out. */
char *rec_snapshot_path(const char *prefix, unsigned n, const char *suffix);

#endif
