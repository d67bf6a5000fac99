/* Files that were begun and have no name yet: none is left behind when the program is ended from outside. */
#ifndef ST_BASE_TEMPFILES_H
#define ST_BASE_TEMPFILES_H

#include <stddef.h>

/* The temporary file `name` in the open folder `folder` is written through `fd`. Until st_tempfile_done it is
 * removed when SIGINT, SIGTERM, SIGHUP, SIGQUIT or SIGPIPE ends the process (unless the program handles the
 * signal itself), and nobody sweeps it away. Returns 0, or -1 when somebody is sweeping it at this very
 * moment: make another one. */
int st_tempfile_begin(int folder, const char *name, int fd);

/* Says that the file or folder `fd` is being written, until it is closed: nobody sweeps it away. Returns 0,
 * or -1 when somebody is sweeping it at this very moment: make another one. */
int st_tempfile_lock(int fd);

/* Makes the signals above remove the files, as st_tempfile_begin does: for a program that had handlers of its
 * own, and has put SIG_DFL back. A signal that is ignored, or has a handler, keeps it so. */
void st_tempfile_catch(void);

/* It has its name, or is gone. */
void st_tempfile_done(int folder);

/* Removes what killed processes of this user left in `folder` and nobody writes any more: files
 * ".NAME.xxxxxx" with `prefix` at the beginning of NAME, folders ".PREFIXn.data.xxxxxx", and folders
 * "PREFIXn.code" that are not finished (st_folder_make_unfinished) and have no "PREFIXn.data" beside them; n
 * is a number. Links are not followed. Returns how many of the files somebody writes. */
size_t st_tempfile_sweep(int folder, const char *prefix);

#endif
