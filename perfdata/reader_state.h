/* What a reader holds. Private to perfdata. */
#ifndef ST_PERFDATA_READER_STATE_H
#define ST_PERFDATA_READER_STATE_H

#include "base/vec.h"
#include "perfdata/events.h"
#include "perfdata/part.h"
#include "perfdata/reader.h"

struct pd_section {
    const uint8_t *data; /* NULL: the file has none */

    uint64_t size;

    uint64_t offset; /* in the first part */
};

struct pd_reader {
    ST_VEC(struct pd_part *) parts; /* the first has the header */

    struct pd_events events;

    struct pd_section features[PD_FEAT_BITS];

    ST_VEC(struct pd_section) build_ids; /* PD_RECORD_HEADER_BUILD_ID records of pipe mode */

    uint64_t comp_mmap_len; /* of PD_FEAT_COMPRESSED; 0: unknown */

    struct st_error lost; /* features that are not there although the header says so; code 0: none */

    char *kcore_dir;
};

/* Reads attributes and feature sections of file form. */
int pd_read_file_form(struct pd_reader *reader, const struct pd_file_header *header, struct st_error *err);

/* Reads the records of pipe mode that stand for them. Stops without an error at a record that is bad: the
 * walk will meet it. */
int pd_read_pipe_form(struct pd_reader *reader, struct st_error *err);

/* Takes from the features what the reader itself needs: names of events, the size of compressed records. */
int pd_apply_features(struct pd_reader *reader, struct st_error *err);

#endif
