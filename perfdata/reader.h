/* Reads a snapshot, or any perf.data: file form, directory form and pipe mode. Nothing is trusted: every size
 * is checked. Files are mapped: one that shrinks while it is read ends the process (SIGBUS), as with any map;
 * who starts that process says so (decoder/cmd/serve.c). A reader is used by one thread at a time. */
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

    const char *name; /* from PD_FEAT_EVENT_DESC or an EVENT_UPDATE of pipe mode, else "". Foreign text */

    const uint64_t *ids;

    size_t nids;

    size_t index;
};

/* What PERF_SAMPLE_TID|TIME|ID|STREAM_ID|CPU|IDENTIFIER of a record or sample tell; `has` says which are
 * there. Fields that are not are 0. */
struct pd_sample_id {
    uint64_t has; /* PERF_SAMPLE_* bits; IDENTIFIER sets ID too, as both tell the id */

    uint32_t pid, tid;

    uint64_t time; /* perf clock, ns; 0 in records that perf made itself before it recorded */

    uint64_t id;

    uint32_t cpu;
};

/* One record. The memory lives as long as the reader. */
struct pd_record {
    /* The whole record, header->size bytes, at an address that is a multiple of 8, in host byte order. It has
     * the fixed fields of its type; the name of MMAP, MMAP2, COMM, KSYMBOL and CGROUP ends within it; the
     * counts of NAMESPACES and TEXT_POKE fit. Other counts (ID_INDEX, THREAD_MAP, AUXTRACE_INFO...) are the
     * caller's to check. */
    const struct perf_event_header *header;

    const char *file; /* name of the file it stands in (directory form has several) */

    uint64_t offset; /* in that file; for a decompressed record: of the compressed one */

    /* The event by the rules of perf's evlist: by id, the only event, or the first one (records without
     * sample_id_all or with the id 0). NULL where the id is no event's, and for types from 64 on. */
    const struct pd_event *event;

    struct pd_sample_id id;

    const uint8_t *aux; /* PD_RECORD_AUXTRACE: the trace bytes (pd_auxtrace.size of them), else NULL */
};

/* The fields of a PERF_RECORD_SAMPLE beyond pd_sample_id; pointers into the record, NULL where absent. */
struct pd_sample {
    uint64_t ip;

    uint64_t addr;

    uint64_t period; /* without PERF_SAMPLE_PERIOD that of the attribute; 0 where it has a frequency */

    const uint64_t *callchain; /* with PERF_CONTEXT_* marks */

    uint64_t ncallchain;

    const void *raw; /* at a multiple of 4 only: copy what has 8-byte fields */

    uint32_t raw_size; /* with the zeros that pad it to whole words */

    uint64_t user_abi; /* PERF_SAMPLE_REGS_ABI_*, 0: no registers */

    const uint64_t *user_regs; /* one per bit of attr.sample_regs_user, lowest first */

    const void *user_stack;

    uint64_t user_stack_size; /* dynamic size: the bytes that are valid */

    const struct perf_branch_entry *branches; /* newest first */

    uint64_t nbranches;

    const void *aux; /* PERF_SAMPLE_AUX: a piece of the AUX area */

    uint64_t aux_size;
};

/* Opens `path`: a file, a pipe (read to its end into memory first) or a directory of perf's directory form.
 * ST_EFAIL: cannot be opened or read; ST_EBADFILE: not a perf.data, other byte order, attributes or ids
 * beyond the end of the file, a bad attribute, records compressed by other than zstd: the message has the
 * file and the offset. ST_ENOMEM. *reader is set on success only. A file that was cut within its records or
 * features, or whose recording was killed, can be opened: pd_reader_each tells of it behind the records that
 * are there. */
int pd_reader_open(const char *path, struct pd_reader **reader, struct st_error *err);

/* As pd_reader_open, on a descriptor of a regular file (from its beginning) or a pipe, which stays the
 * caller's; `name` is for messages. Directory form needs pd_reader_open. */
int pd_reader_open_fd(int fd, const char *name, struct pd_reader **reader, struct st_error *err);

/* Bytes that came from the reader are not needed soon: where they are the file's own, memory need not hold
 * them; they are read again if they are looked at. May be called by several threads. */
void pd_reader_forget(const struct pd_reader *reader, const void *bytes, uint64_t size);

/* Frees the reader and all that came from it. NULL is allowed. */
void pd_reader_close(struct pd_reader *reader);

/* The events of the recording, and the one at `index`, or NULL where there is none. */
size_t pd_reader_nevents(const struct pd_reader *reader);
const struct pd_event *pd_reader_event(const struct pd_reader *reader, size_t index);

/* Receives records in the order of the file. Non-zero stops and is returned by pd_reader_each. */
typedef int pd_record_fn(void *ctx, const struct pd_record *record, struct st_error *err);

/* Walks all records of all files, compressed ones opened (PD_RECORD_COMPRESSED itself is not delivered).
 * Files of directory form come one after the other, `data` first: records are in the order of their file, not
 * of time. ST_EBADFILE: a size that is too small, not aligned, beyond the end or not fitting the record's
 * fields: "FILE: at offset 0x...: NAME (TYPE): ..."; the records before it were delivered. A file that was
 * cut, or whose recording never finished, is delivered up to there and then reported the same way. The other
 * files of directory form are walked all the same, and the first failure is returned. ST_ENOMEM. May be
 * called again. */
int pd_reader_each(struct pd_reader *reader, pd_record_fn *fn, void *ctx, struct st_error *err);

/* Takes a PERF_RECORD_SAMPLE apart. ST_EBADFILE with the place if a field lies beyond the record's end, or if
 * it is no sample or of no known event; *sample is zeroed then. */
int pd_record_sample(const struct pd_record *record, struct pd_sample *sample, struct st_error *err);

/* The bytes of a feature section (PD_FEAT_*), at any address, or NULL with *size 0 where the file has none.
 */
const void *pd_reader_feature(const struct pd_reader *reader, enum pd_feature feature, size_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID), or NULL. Foreign
 * text. */
const char *pd_reader_string(const struct pd_reader *reader, enum pd_feature feature);

/* Build ids from PD_FEAT_BUILD_ID (pipe mode: from records): calls fn for each. Returns 0, fn's non-zero
 * value, or ST_EBADFILE with the place behind the good ones. */
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
