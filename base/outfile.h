/* Files that appear under their name only when they are whole. */
#ifndef ST_BASE_OUTFILE_H
#define ST_BASE_OUTFILE_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* A file being written beside its name, as ".NAME.XXXXXX" in the same folder, mode 0600. */
struct st_outfile {
    int fd; /* for writing and reading back; -1 when none */

    int folder; /* that both names are in; -1 when none */

    char temp[NAME_MAX + 1], name[NAME_MAX + 1];

    char path[PATH_MAX]; /* for messages */
};

/* Starts the file that will be `path`. On error (ST_EFAIL: no folder, no permission, no space, or a device,
 * link or folder has the name; ST_EUSAGE: name too long) nothing is left behind. */
int st_outfile_open(struct st_outfile *out, const char *path, struct st_error *err);

/* The same for the file `name` in the open folder `folder`, which stays the caller's; messages call it
 * `path`. */
int st_outfile_open_at(struct st_outfile *out, int folder, const char *name, const char *path,
                       struct st_error *err);

/* fsync, rename to the name, fsync of the folder; of root by way of sudo the file becomes that user's
 * (st_folder_give). With `replace` false an existing file is an error and stays; what is no regular file is
 * never replaced. On any error the temporary file is removed and nothing stands under the name that did not
 * before. Closes fd. */
int st_outfile_commit(struct st_outfile *out, bool replace, struct st_error *err);

/* Closes and removes the temporary file. Safe on a zeroed or committed struct. */
void st_outfile_abort(struct st_outfile *out);

/* Writes all of it at the current position, EINTR and short writes handled. ST_EFAIL names out->path. */
int st_outfile_write(struct st_outfile *out, const void *data, size_t len, struct st_error *err);

#endif
