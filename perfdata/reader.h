/* Reads a snapshot, or any perf.data: file form, directory form and pipe mode. Nothing is trusted: every size is checked. */
#ifndef ST_PERFDATA_READER_H
#define ST_PERFDATA_READER_H

#include "base/error.h"
#include "perfdata/format.h"

#include <stdbool.h>
#include <stddef.h>

struct pd_reader;

/* One event of the recording. Owned by the reader. */
struct pd_event {
    struct perf_event_attr attr; /* fields beyond what the file holds are 0 */

    const char *name; /* from HEADER_EVENT_DESC, else "" */

    const uint64_t *ids;

    size_t nids;

    size_t index;
};

/* What PERF_SAMPLE_TID|TIME|ID|STREAM_ID|CPU|IDENTIFIER of a record or sample tell; `has` says which are there. */
struct pd_sample_id {
    uint64_t has; /* PERF_SAMPLE_* bits */

    uint32_t pid, tid;

    uint64_t time; /* perf clock, ns */

    uint64_t id;

    uint32_t cpu;
};

/* One record. The memory lives as long as the reader. */
struct pd_record {
    const struct perf_event_header *header; /* whole record, header->size bytes; host byte order */

    const char *file; /* name of the file it stands in (directory form has several) */

    uint64_t offset; /* in that file; for a decompressed record: of the compressed one */

    const struct pd_event *event; /* NULL where no id or sample_id_all leads to one */

    struct pd_sample_id id;

    const uint8_t *aux; /* PD_RECORD_AUXTRACE: the trace bytes (pd_auxtrace.size of them), else NULL */
};

/* The fields of a PERF_RECORD_SAMPLE beyond pd_sample_id; pointers into the record, NULL where absent. */
struct pd_sample {
    uint64_t ip;

    uint64_t addr;

    uint64_t period;

    const uint64_t *callchain; /* with PERF_CONTEXT_* marks */

    uint64_t ncallchain;

    const void *raw;

    uint32_t raw_size;

    uint64_t user_abi; /* PERF_SAMPLE_REGS_ABI_*, 0: no registers */

    const uint64_t *user_regs; /* one per bit of attr.sample_regs_user, lowest first */

    const void *user_stack;

    uint64_t user_stack_size; /* dynamic size: the bytes that are valid */

    const struct perf_branch_entry *branches;

    uint64_t nbranches;
};

/* Opens `path`, a file or a directory of perf's directory form. ST_EFAIL: cannot be opened; ST_EBADFILE: not a perf.data,
 * other byte order, a section beyond the end of the file, a bad attribute: the message has the file and the offset. */
int pd_reader_open(const char *path, struct pd_reader **reader, struct st_error *err);

/* As pd_reader_open, on a descriptor that stays the caller's and must be seekable (a regular file); `name` is for messages.
 * Directory form needs pd_reader_open. */
int pd_reader_open_fd(int fd, const char *name, struct pd_reader **reader, struct st_error *err);

void pd_reader_close(struct pd_reader *reader);

size_t pd_reader_nevents(const struct pd_reader *reader);
const struct pd_event *pd_reader_event(const struct pd_reader *reader, size_t index);

/* Receives records in the order of the file. Non-zero stops and is returned by pd_reader_each. */
typedef int pd_record_fn(void *ctx, const struct pd_record *record, struct st_error *err);

/* Walks all records of all files, compressed ones opened. ST_EBADFILE: a size field that is too small, not aligned or beyond the end:
 * "FILE: at offset 0x...: NAME (TYPE): ..."; the records before it were delivered. A file that was cut after a whole record, or within
 * its last one, is delivered up to there and then reported the same way. May be called again. */
int pd_reader_each(struct pd_reader *reader, pd_record_fn *fn, void *ctx, struct st_error *err);

/* Takes a PERF_RECORD_SAMPLE apart. ST_EBADFILE with the place if a field lies beyond the record's end. */
int pd_record_sample(const struct pd_record *record, struct pd_sample *sample, struct st_error *err);

/* The bytes of a feature section (PD_FEAT_*), or NULL with *size 0 where the file has none. */
const void *pd_reader_feature(const struct pd_reader *reader, enum pd_feature feature, size_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID), or NULL. */
const char *pd_reader_string(const struct pd_reader *reader, enum pd_feature feature);

/* Build ids from PD_FEAT_BUILD_ID: calls fn for each. Returns 0, fn's non-zero value, or ST_EBADFILE. */
struct pd_build_id {
    int32_t pid; /* -1: every process */

    uint16_t misc; /* PERF_RECORD_MISC_*: kernel or user */

    uint8_t id[20];

    uint8_t id_size;

    const char *filename;
};
typedef int pd_build_id_fn(void *ctx, const struct pd_build_id *id);
int pd_reader_build_ids(const struct pd_reader *reader, pd_build_id_fn *fn, void *ctx, struct st_error *err);

/* The path of kcore_dir (directory form with --kcore), or NULL. Owned by the reader. */
const char *pd_reader_kcore_dir(const struct pd_reader *reader);

/* "MMAP2" for 10 ...; "?" for a type nobody knows. */
const char *pd_record_name(uint32_t type);

#endif
