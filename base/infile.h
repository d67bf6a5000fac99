/* Files that others named. What is opened is looked at first: to open a device may start it, to open a pipe
 * waits for its writer. */
#ifndef ST_BASE_INFILE_H
#define ST_BASE_INFILE_H

#include <stdbool.h>
#include <sys/stat.h>

enum st_infile_kind {
    ST_INFILE_FILE,   /* regular files only */
    ST_INFILE_FOLDER, /* folders only */
    ST_INFILE_INPUT,  /* what the user named: a regular file, a folder, or a pipe */
};

/* Opens `path` for reading. Returns a descriptor (close-on-exec), the caller's, or -1 with errno: ENODEV
 * where it is something else than `kind` allows. */
int st_infile_open(const char *path, enum st_infile_kind kind);

/* Opens for reading what the descriptor `place` (O_PATH will do) stands for; `place` stays the caller's. As
 * st_infile_open. */
int st_infile_reopen(int place, enum st_infile_kind kind);

/* The same below the open folder `folder`, whatever links are in the path: nothing outside it is opened. */
int st_infile_open_below(int folder, const char *path, enum st_infile_kind kind);

/* The regular file `path` in *st; 0, or -1 with errno, as st_infile_open. */
int st_infile_stat(const char *path, struct stat *st);

/* From now on st_infile_open asks `open` instead of the kernel: for a process that may open nothing itself.
 * NULL: as before. */
void st_infile_by(int (*open)(const char *path, enum st_infile_kind kind));

#endif
