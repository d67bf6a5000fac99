/* Code that nobody finds by its mapping's name: anonymous (JIT), deleted or replaced files, files of another
 * mount namespace or that need a privilege. It is copied at the snapshot, into the folder PREFIX.N.code
 * beside it, and the snapshot's MMAP2 records name the copies: perf and the decoder then read it like any
 * file. */
#ifndef ST_RECORDER_CODE_FILES_H
#define ST_RECORDER_CODE_FILES_H

#include "base/error.h"
#include "base/vec.h"
#include "recorder/code/proc_maps.h"
#include "recorder/perf/record.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_code_file {
    pid_t pid;

    uint64_t start, end; /* of the mapping */

    uint64_t pgoff; /* in the copy, of `start` */

    uint32_t maj, min; /* of the file; both 0 with ino 0 for anonymous code */

    uint64_t ino;

    bool whole; /* the copy is the whole file, not this mapping only */

    char *name; /* of the mapping, without " (deleted)" */

    const char *path; /* of the copy, absolute: that of its rec_code_copy */
};

/* A file in the folder. */
struct rec_code_copy {
    uint32_t maj, min; /* of the file that it is a copy of; all 0: of memory */

    uint64_t ino;

    char *path; /* absolute */
};

/* What of a process's code may be missing: names that it has, or code that was not copied. */
struct rec_code_missing {
    pid_t pid;

    char why[112];
};

/* More than any program that means no harm has: a process may map tens of thousands of files, and the
 * recording waits while they are copied. */
enum { REC_CODE_MOST_COPIES = 4096 };

struct rec_code_files {
    char folder[PATH_MAX]; /* "" until there is something to copy */

    size_t name; /* where its last part begins in it */

    int parent, fd; /* of the folder it is in, and of itself once it is made; -1: none */

    ST_VEC(struct rec_code_file) files; /* by process and address */

    ST_VEC(struct rec_code_copy) copies;

    uint32_t *slots; /* of copies of files, by which file; place in `copies` plus 1, 0: free */

    ST_VEC(struct rec_code_missing) unnamed, left_out;

    /* What may still be copied: bytes, files, and until when (CLOCK_MONOTONIC, ns). */
    uint64_t left, more, until;

    unsigned patience; /* ms that reading names may still take, which do not count for `until` */

    bool unsynced; /* not every copy is on disk */
};

/* Prepares for the snapshot `data` ("PREFIX.N.data"). Nothing is created yet. ST_EFAIL: its folder cannot be
 * named, or the one that it will be in cannot be opened. */
int rec_code_files_open(struct rec_code_files *files, const char *data, struct st_error *err);

/* The same in the open folder `folder`, which stays the caller's; -1: the one that `data` leads to. */
int rec_code_files_open_at(struct rec_code_files *files, int folder, const char *data, struct st_error *err);

/* Copies what the mappings of process `pid` need. A process that is gone, or a mapping that cannot be read,
 * is left out; what there is no room or time for is too, and files->left_out tells so. ST_EFAIL: the copies
 * cannot be written; ST_ENOMEM. */
int rec_code_files_add(struct rec_code_files *files, pid_t pid, struct st_error *err);

/* Brings to disk what is not there yet. ST_EFAIL. */
int rec_code_files_sync(struct rec_code_files *files, struct st_error *err);

/* The copy that holds the code of an MMAP2 record, or NULL. */
const struct rec_code_file *rec_code_files_find(const struct rec_code_files *files,
                                                const struct rec_mmap2_record *map);

/* Frees the list; the copies stay. */
void rec_code_files_free(struct rec_code_files *files);

/* Removes the copies and their folder, and frees. */
void rec_code_files_abort(struct rec_code_files *files);

#endif
