/* Files that appear under their name only when they are whole. */
#ifndef ST_BASE_OUTFILE_H
#define ST_BASE_OUTFILE_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* A file being written beside its name, as ".NAME.XXXXXX" in the same folder, mode 0600. */
struct st_outfile {
    int fd; /* for writing and reading back; -1 when none */

    char temp[PATH_MAX]; /* for libraries that open by name */

    char path[PATH_MAX];
};

/* Starts the file that will be `path`. On error (ST_EFAIL: no folder, no permission, no space; ST_EUSAGE:
 * name too long) nothing is left behind. */
int st_outfile_open(struct st_outfile *out, const char *path, struct st_error *err);

/* fsync, rename to the name, fsync of the folder. With `replace` false an existing file is an error and
 * stays. On any error the temporary file is removed and nothing stands under the name that did not before.
 * Closes fd. */
int st_outfile_commit(struct st_outfile *out, bool replace, struct st_error *err);

/* Closes and removes the temporary file. Safe on a zeroed or committed struct. */
void st_outfile_abort(struct st_outfile *out);

/* Writes all of it at the current position, EINTR and short writes handled. ST_EFAIL names out->path. */
int st_outfile_write(struct st_outfile *out, const void *data, size_t len, struct st_error *err);

#endif
