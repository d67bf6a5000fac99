/* Writes a snapshot: a perf.data that appears under its name only when it is whole. Once a function that adds
 * to the file has failed (full disk, no memory, a record that cannot be), the writer can only be dropped:
 * pd_writer_commit will fail. A writer is used by one thread at a time. */
#ifndef ST_PERFDATA_WRITER_H
#define ST_PERFDATA_WRITER_H

#include "base/error.h"
#include "perfdata/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct pd_writer;

/* Starts `path`. With `directory` true the result is perf's directory form: PATH/data and PATH/kcore_dir.
 * Mode 0600 (0700). ST_EFAIL: no folder, no permission, no space; ST_EUSAGE: a name that is too long or none;
 * ST_ENOMEM. On error nothing is left behind. */
int pd_writer_open(const char *path, bool directory, struct pd_writer **writer, struct st_error *err);

/* The same in the open folder `folder`, which stays the caller's, under the last part of `path`: the rest of
 * that is for messages. */
int pd_writer_open_at(int folder, const char *path, bool directory, struct pd_writer **writer,
                      struct st_error *err);

/* Adds an event before the first record: its attribute (its size field is set here), the ids of all its
 * instances and its name for perf's lists (all copied). With several events each needs an id, at the same
 * place of the records (PERF_SAMPLE_IDENTIFIER): else the first record fails. ST_EFAIL: too late; ST_ENOMEM.
 */
int pd_writer_add_event(struct pd_writer *w, const struct perf_event_attr *attr, const uint64_t *ids,
                        size_t nids, const char *name, struct st_error *err);

/* Appends one record as it is (header.size bytes, at a multiple of 8). ST_EFAIL: the disk is full, or the
 * record could not be read again (see reader.h: a size that does not fit its fields; AUXTRACE has its own
 * function). Records need not be in order of time: without FINISHED_ROUND, perf sorts all of them. */
int pd_writer_record(struct pd_writer *w, const struct perf_event_header *record, struct st_error *err);

/* Appends a PERF_RECORD_SAMPLE of event `index` made here: `raw` as PERF_SAMPLE_RAW and the given ids in the
 * order the attribute's sample_type asks for (IDENTIFIER, IP (0), TID, TIME, ID, CPU, PERIOD (1), RAW; others
 * are ST_EFAIL, so are data that make the record larger than 65535 bytes). As the kernel does, zeros are
 * added to raw until the record is whole words, and are counted in its size. */
struct pd_made_sample {
    uint32_t pid, tid, cpu;

    uint64_t time, id;

    const void *raw;

    size_t raw_size;
};
int pd_writer_sample(struct pd_writer *w, size_t index, const struct pd_made_sample *s, struct st_error *err);

/* Appends PD_RECORD_AUXTRACE with its bytes, in two pieces (a ring that wrapped), either of which may be
 * empty. `head` is taken as it is except for header and size. The bytes are padded to 8 with zeros (PAD
 * packets) as perf expects of buffers. Nothing is written where both are empty. */
int pd_writer_auxtrace(struct pd_writer *w, const struct pd_auxtrace *head, const void *a, size_t na,
                       const void *b, size_t nb, struct st_error *err);

/* Sets a string feature (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID). The usual ones of this machine
 * are set by default. ST_EFAIL: no such feature; ST_ENOMEM. */
int pd_writer_string(struct pd_writer *w, enum pd_feature feature, const char *text, struct st_error *err);

/* Adds an entry to PD_FEAT_BUILD_ID. ST_EFAIL: the id has more than 20 bytes, or the name more than 64 KiB.
 */
int pd_writer_build_id(struct pd_writer *w, int32_t pid, uint16_t misc, const uint8_t *id, size_t id_size,
                       const char *filename, struct st_error *err);

/* The command line for PD_FEAT_CMDLINE (copied). */
int pd_writer_cmdline(struct pd_writer *w, int argc, char *const *argv, struct st_error *err);

/* PD_FEAT_PMU_MAPPINGS: perf needs the name of the PMU whose number the attributes hold ("intel_pt"). May be
 * called again; takes the place of an entry with this number or name. Those of this machine are set by
 * default. */
int pd_writer_pmu(struct pd_writer *w, uint32_t type, const char *name, struct st_error *err);

/* PD_FEAT_TRACING_DATA: what tracefs says of the tracepoints among the events, without which perf opens no
 * file with such events (copied). ST_ENOMEM. */
int pd_writer_tracing_data(struct pd_writer *w, const void *data, size_t n, struct st_error *err);

/* The folder beside PATH/data for kcore, kallsyms, modules: its descriptor, which stays the writer's. Made
 * (0700) at the first call. The files in it are synced and named with the rest. ST_EFAIL: not directory form,
 * no permission, no space. */
int pd_writer_kcore_dir(struct pd_writer *w, struct st_error *err);

/* Bytes written so far, without what is in kcore_dir. */
uint64_t pd_writer_size(const struct pd_writer *w);

/* The file that is written, which it stays when it gets its name. ST_EFAIL: it cannot be looked at. */
int pd_writer_stat(const struct pd_writer *w, struct stat *st, struct st_error *err);

/* Writes header and features, syncs, renames; frees the writer whatever happens. On error nothing stands
 * under the name; a file that was there before stays and is an error. */
int pd_writer_commit(struct pd_writer *w, struct st_error *err);

/* Drops everything and frees the writer. NULL is allowed. */
void pd_writer_abort(struct pd_writer *w);

#endif
