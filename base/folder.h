/* Folders that are held open. Others may own the folder that a file goes to, and put a link or another folder
 * in the place of a name at any moment: so a name is looked up once, and everything after that is done by
 * descriptor. */
#ifndef ST_BASE_FOLDER_H
#define ST_BASE_FOLDER_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Opens the folder that the file `path` is in, or will be; *name is the part of `path` behind it. Returns its
 * descriptor, which is the caller's. ST_EFAIL; ST_EUSAGE: `path` names no file, or has a name that is too
 * long. */
int st_folder_of(const char *path, const char **name, struct st_error *err);

/* The part of `path` behind its folder; points into `path`. */
const char *st_folder_name(const char *path);

/* Whether anything stands under `name` in `folder`, be it a link that leads nowhere. */
bool st_folder_holds(int folder, const char *name);

/* Creates the file `name` (mode 0600) in `folder`, for reading and writing: a new one, never through a link.
 * Returns its descriptor or -1 with errno. */
int st_folder_create(int folder, const char *name);

/* As st_folder_create, by a name like ".NAME.x7Kq2a", which is put in `temp`. */
int st_folder_create_temp(int folder, const char *name, char temp[NAME_MAX + 1]);

/* Creates a file without a name in `folder`, which goes with its last descriptor. Returns that, or -1 with
 * errno. */
int st_folder_create_nameless(int folder);

/* Makes the folder `name` (mode 0700) in `parent`. Returns its descriptor, or -1 with errno. */
int st_folder_make(int parent, const char *name);

/* As st_folder_make, with a mark (mode 01700) that it is not finished: st_tempfile_sweep removes it when the
 * process is killed. */
int st_folder_make_unfinished(int parent, const char *name);

/* Takes the mark away. A file system that has no such mark keeps none. */
void st_folder_finish(int folder);

/* As st_folder_make, by a name like ".NAME.x7Kq2a", which is put in `temp`. */
int st_folder_make_temp(int parent, const char *name, char temp[NAME_MAX + 1]);

/* Removes the files of a folder, not what is below other folders in it. */
void st_folder_empty(int folder);

/* Brings a folder to disk. 0 or -1 with errno; that a file system cannot do it is none. */
int st_folder_sync(int folder);

/* Whether `name` in `folder` is the file or folder that `fd` is. */
bool st_folder_has(int folder, const char *name, int fd);

/* Of root by way of sudo: gives the file or folder `fd` in `folder` to the user who ran sudo, where that user
 * owns `folder` or everybody may create files there (as in /tmp). Else, and where it cannot be done, nothing
 * happens. */
void st_folder_give(int folder, int fd);

#endif
