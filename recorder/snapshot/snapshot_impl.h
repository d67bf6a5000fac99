/* The parts of recorder/snapshot/snapshot.c. */
#ifndef ST_RECORDER_SNAPSHOT_SNAPSHOT_IMPL_H
#define ST_RECORDER_SNAPSHOT_SNAPSHOT_IMPL_H

#include "base/confined.h"
#include "base/vec.h"
#include "perfdata/writer.h"
#include "recorder/code/files.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot.h"

/* The events' places in the file. */
enum snap_event { SNAP_TRACE, SNAP_STATE, SNAP_SWITCHES, SNAP_STALLS, SNAP_META, SNAP_KERNEL, SNAP_EVENTS };

struct snap {
    const struct rec_snapshot *in;

    struct pd_writer *w;

    uint64_t ids[SNAP_EVENTS]; /* one of each event, for records made here */

    uint64_t time; /* of samples made here: the end of the freeze */

    ST_VEC(pid_t) pids; /* that the side-band tells of; some have ended */

    bool segments; /* snap_wants_segments */

    struct st_confined child; /* that reads files and vdsos of the processes */

    struct rec_code_files code;
};

/* meta.c: how the snapshot came about. */
int snap_write_meta(struct snap *s, struct st_error *err);

/* names.c: the names of the kernel addresses that the stall records in `list` and the samples hold.
 */
int snap_write_names(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* Those of one stall record, as the raw data of a sample: appended to `raw`. 0 or ST_ENOMEM. */
typedef ST_VEC(char) snap_bytes;
int snap_names_of(const struct perf_event_header *record, const struct rec_kallsyms *kallsyms,
                  snap_bytes *raw, struct st_error *err);

/* room.c: room for the end of the stall, where one is wanted (in->room). */
int snap_write_room(struct snap *s, struct st_error *err);

/* code.c: the processes that the side-band in `list` tells of, into s->pids. */
int snap_list_processes(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* Copies code that is not to be found under its name to files beside the snapshot `path`. */
void snap_copy_code(struct snap *s, const char *path);

/* The vdsos of the processes. */
int snap_write_vdsos(struct snap *s, struct st_error *err);

/* An MMAP2 record, with the name of the copy where there is one. */
int snap_write_map(struct snap *s, const struct rec_mmap2_record *map, struct st_error *err);

/* segments.c: whether perf needs more than the code's mappings, as stacks are stored to be unwound.
 */
bool snap_wants_segments(const struct rec_facts *facts);

/* For the child without privilege. No question; answers the program headers (Elf64_Phdr) of a 64-bit ELF
 * file, 64 at most. */
ssize_t snap_read_headers(int fd, const void *question, size_t size, void *answer, size_t room);

/* MMAP2 records (PERF_RECORD_MISC_MMAP_DATA) of the read-only segments of the file that `code` maps; nothing
 * where it cannot be read. */
int snap_write_segments(struct snap *s, const struct rec_mmap2_record *code, struct st_error *err);

/* kernel.c: whether the snapshot is to hold the kernel's code: it was recorded, and can be read. */
bool snap_wants_kernel(const struct rec_facts *facts);

/* Copies the kernel's code as it was before the changes that the side-band in `list` tells of, and writes the
 * record of its mapping. */
int snap_write_kernel(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* The record alone, without which perf names no kernel function; nothing where this user sees no kernel
 * addresses. */
int snap_write_kernel_map(struct snap *s, struct st_error *err);

/* records.c, for sources whose rings hold records. Adds the event that samples. */
int snap_add_record_event(struct snap *s, struct st_error *err);

/* The other events that have records in the rings, and what perf has to know of those that are tracepoints.
 */
int snap_add_other_record_events(struct snap *s, struct st_error *err);

/* The records of a copied ring, the oldest first. Stops at what is not 0 and returns it. */
typedef int snap_record_fn(void *ctx, const struct perf_event_header *record, struct st_error *err);
int snap_each_record(const struct rec_ring *ring, snap_record_fn *fn, void *ctx, struct st_error *err);

int snap_write_records(struct snap *s, struct st_error *err);

/* The call chain of a sample in such a ring (REC_SAMPLE_TYPE, the period, then the chain), with perf's
 * PERF_CONTEXT_* marks. Returns its length; 0 for other records. */
size_t snap_sample_chain(const struct perf_event_header *record, const uint64_t **chain);

/* files.c: the build ids of the files, for the header. */
int snap_write_build_ids(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err);

/* A sample made here, of event SNAP_STALLS or SNAP_META. */
int snap_write_sample(struct snap *s, enum snap_event event, const void *raw, size_t size,
                      struct st_error *err);

#endif
