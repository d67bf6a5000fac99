/* What a writer holds. Private to perfdata. */
#ifndef ST_PERFDATA_WRITER_STATE_H
#define ST_PERFDATA_WRITER_STATE_H

#include "base/outfile.h"
#include "base/vec.h"
#include "perfdata/events.h"
#include "perfdata/writer.h"

struct pd_pmu {
    uint32_t type;

    char *name;
};

/* Bytes of the features, before they are written. */
struct pd_blob {
    ST_VEC(uint8_t) bytes;

    bool failed; /* memory ran out; what follows is dropped */
};

/* The folder of directory form. */
struct pd_folder {
    char *path; /* as it was asked for, without slashes at its end */

    const char *name; /* its last part: its name in the end */

    char temp[NAME_MAX + 1]; /* its name while it is written */

    int parent, fd, kcore; /* descriptors of folders; -1: none */
};

struct pd_writer {
    struct st_outfile out;

    struct pd_folder folder; /* directory form */

    uint8_t *buffer;

    size_t buffered;

    uint64_t size; /* of the file, buffer included */

    struct pd_file_header header;

    bool begun; /* the events are written and records may come */

    int failed; /* the code of the first failure: such a file is never committed */

    struct pd_events events;

    ST_VEC(struct pd_auxtrace_index_entry) auxtrace;

    struct pd_blob build_ids, tracing;

    ST_VEC(char *) cmdline;

    ST_VEC(struct pd_pmu) pmus;

    char *strings[PD_FEAT_CPUID + 1];

    uint64_t first_time, last_time; /* of the records; 0: none had one */
};

/* Appends bytes to the file. */
int pd_emit(struct pd_writer *w, const void *data, size_t n, struct st_error *err);

/* Brings everything appended so far into the file. */
int pd_flush(struct pd_writer *w, struct st_error *err);

/* Appends the table of features and the features. */
int pd_write_features(struct pd_writer *w, struct st_error *err);

/* Sets the string features and PMU numbers of this machine, as far as they can be known. ST_ENOMEM only. */
int pd_describe_machine(struct pd_writer *w, struct st_error *err);

void pd_blob_add(struct pd_blob *blob, const void *data, size_t n);

/* None yet. */
void pd_folder_init(struct pd_folder *folder);

/* Creates the folder beside its name, in the open folder `parent` (-1: in the one that `path` leads to),
 * which stays the caller's. What was taken is freed by pd_folder_free, also on error. */
int pd_folder_open(struct pd_folder *folder, int parent, const char *path, struct st_error *err);

/* Syncs the folder and gives it its name. The file in it is committed. */
int pd_folder_commit(struct pd_folder *folder, struct st_error *err);

/* Removes the folder and the files that were written to it. */
void pd_folder_remove(struct pd_folder *folder);

/* Closes and frees; what is on disk stays. */
void pd_folder_free(struct pd_folder *folder);

#endif
