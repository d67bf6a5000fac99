/* One file of a recording, and the way from record to record in it. Private to perfdata. */
#ifndef ST_PERFDATA_PART_H
#define ST_PERFDATA_PART_H

#include "base/vec.h"
#include "perfdata/format.h"
#include "perfdata/reader.h"

#include <zstd.h>

/* A compressed record, opened: the rest of the record before it, then what came out. */
struct pd_block {
    void *data;

    size_t size;

    size_t whole; /* the bytes of `data` that are whole records */
};

struct pd_part {
    char *name; /* for messages */

    const uint8_t *map; /* NULL: empty */

    uint64_t size; /* of the file */

    uint64_t start; /* of the first record */

    uint64_t end; /* of the last one, by the file's own account; may lie beyond size */

    bool unfinished; /* the recording was killed: its size was never written */

    ST_VEC(void *) copies; /* of records that are not aligned, in order */

    ST_VEC(struct pd_block) blocks; /* one for each compressed record met so far */

    uint64_t packed, opened; /* bytes of them in the file, and out of it */

    ZSTD_DStream *zstd; /* the state behind the last block */

    bool zstd_broken;
};

/* A place in a part during a walk. The next copy and block of a walk are those of the walks before. */
struct pd_cursor {
    uint64_t at;

    uint64_t before; /* the last record before `at` of a type that is known; UINT64_MAX: there is none */

    size_t copy, block;
};

/* What lies at a place: a record whose bytes are all there. */
struct pd_span {
    struct perf_event_header header;

    const uint8_t *bytes; /* header.size; not aligned */

    const uint8_t *payload; /* what follows it, not counted by header.size, or NULL */

    uint64_t payload_size;

    uint64_t next; /* the place behind both */
};

/* Maps the file of `fd` (a pipe is read to its end first). ST_EFAIL: fd is neither; ST_ENOMEM. `name` is
 * copied. */
int pd_part_open(int fd, const char *name, struct pd_part **part, struct st_error *err);

/* Memory need not hold these bytes of the file any longer; of others, nothing happens. */
void pd_part_forget(const struct pd_part *part, const uint8_t *bytes, uint64_t size);

void pd_part_close(struct pd_part *part);

/* The span at offset `at`, which is below part->end. ST_EBADFILE with the place: its size field, or the
 * file's end. */
int pd_part_span(const struct pd_part *part, uint64_t at, struct pd_span *span, struct st_error *err);

/* The bytes of a span at an aligned address that lives as long as the part; NULL: no memory. */
const struct perf_event_header *pd_part_aligned(struct pd_part *part, struct pd_cursor *cursor,
                                                const struct pd_span *span);

/* Opens the compressed record of a span into the cursor's next block, of at most `limit` new bytes.
 * ST_EBADFILE with the place. */
int pd_part_inflate(struct pd_part *part, struct pd_cursor *cursor, const struct pd_span *span,
                    uint64_t limit, struct pd_block *block, struct st_error *err);

/* Fails with "FILE: at offset 0x...: NAME (TYPE): ...". */
int pd_bad_record(struct st_error *err, const char *file, uint64_t offset, uint32_t type, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));

/* Fails with "FILE: at offset 0x...: ...". */
int pd_bad_place(struct st_error *err, const char *file, uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
