/* Files that the writer would not write, put together by hand. */
#ifndef ST_TEST_HAND_H
#define ST_TEST_HAND_H

#include "perfdata/reader.h"
#include "recording.h"
#include "scratch.h"

#include <zstd.h>

/* Begins file form with an event for each sample_type; event i has the ids 10 * (i + 1) and the one after it.
 * Attributes have `attr_size` bytes: what is beyond those of this machine is 0xee. */
void hand_file(struct file *f, const uint64_t *sample_types, size_t n, bool sample_id_all, size_t attr_size);

/* Sets the size of the data to what came behind hand_file(). */
void hand_end(struct file *f);

/* Appends a COMPRESSED (or COMPRESSED2) record with the next bytes of a stream. */
void hand_compressed(struct file *f, ZSTD_CStream *stream, uint32_t type, const void *data, size_t n);

/* What a walk gave. */
struct walked {
    ST_VEC(struct pd_record) records;

    struct pd_reader *reader;

    struct st_error err;

    int rc; /* of opening, or else of the walk */
};

/* Writes the bytes to FOLDER/hand.data, opens it and walks it. */
void hand_walk(void **state, const struct file *f, struct walked *walked);
void walk_path(const char *path, struct walked *walked);
void walk_again(struct walked *walked);
void walked_free(struct walked *walked);

#endif
