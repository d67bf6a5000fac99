/* Bytes that are written once and read in order, as often as wanted: in memory, and beyond a budget in a file
 * without a name. */
#ifndef ST_BASE_SPOOL_H
#define ST_BASE_SPOOL_H

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

/* ---- what spools share ---- */

struct st_spill;

/* Spools may hold `budget` bytes of memory together; what comes on top goes to a file in the folder of
 * `beside`. It is made when it is needed, has no name (O_TMPFILE, or unlinked at once) and goes with its last
 * user. ST_ENOMEM; ST_EUSAGE: the name is too long. */
int st_spill_new(const char *beside, size_t budget, struct st_spill **spill, struct st_error *err);

/* Its spools are freed before. NULL is allowed. */
void st_spill_free(struct st_spill *spill);

/* `open` gives the file, a descriptor or -1 with errno, for a process that may not make it. */
void st_spill_by(struct st_spill *spill, int (*open)(void));

/* Bytes that went to the file, dropped ones included. */
uint64_t st_spill_bytes(struct st_spill *spill);

/* ---- writing ---- */

/* A piece of a spool. */
struct st_spool_chunk {
    uint8_t *data; /* NULL: it is in the file */

    uint64_t at; /* there */

    uint32_t used, room;
};

/* Begins as {.spill = ...}; NULL: all stays in memory. One thread at a time writes to it; several may read
 * when that is over. */
struct st_spool {
    struct st_spill *spill;

    ST_VEC(struct st_spool_chunk) chunks;
};

/* Where something was put. */
struct st_spool_place {
    uint32_t chunk, offset;
};

/* What a reader may touch behind the end of the bytes, so that it can load whole words. */
enum { ST_SPOOL_SLACK = 16, ST_SPOOL_MOST = 4096 };

/* Begins a chunk, with room for ST_SPOOL_MOST bytes or more. ST_ENOMEM; ST_EFAIL: the last one could not be
 * written. */
int st_spool_grow(struct st_spool *s, struct st_error *err);

/* Room for `most` bytes (up to ST_SPOOL_MOST) in a row at the end, which is *place; NULL: ST_ENOMEM, or
 * ST_EFAIL where the file could not be written (no space): the message names the folder. */
static inline uint8_t *st_spool_room(struct st_spool *s, size_t most, struct st_spool_place *place,
                                     struct st_error *err)
{
    struct st_spool_chunk *c = s->chunks.n ? &s->chunks.at[s->chunks.n - 1] : NULL;

    if (!c || c->room - c->used < most) {
        if (st_spool_grow(s, err))
            return NULL;
        c = &s->chunks.at[s->chunks.n - 1];
    }
    *place = (struct st_spool_place){(uint32_t)s->chunks.n - 1, c->used};
    return c->data + c->used;
}

/* n of those bytes were written. */
static inline void st_spool_wrote(struct st_spool *s, size_t n)
{
    s->chunks.at[s->chunks.n - 1].used += (uint32_t)n;
}

/* Drops all of it; memory and file space are free for others. It can be written to again. */
void st_spool_clear(struct st_spool *s);

/* ---- reading ---- */

/* Begins as {.spool = ...}. */
struct st_spool_reader {
    const struct st_spool *spool;

    const uint8_t *at, *end;

    uint32_t chunk;

    uint8_t *buffer; /* of a chunk that is in the file */

    uint32_t room;

    uint32_t loaded; /* 1 + the chunk that is in `buffer` */
};

/* Sets [at, end) to what was written from a place to the end of its chunk. What was put in one st_spool_room
 * is never cut. ST_ENOMEM; ST_EFAIL: the file could not be read. */
int st_spool_seek(struct st_spool_reader *r, struct st_spool_place place, struct st_error *err);

/* Sets [at, end) to the next chunk; empty: that was the last. As st_spool_seek. */
int st_spool_next(struct st_spool_reader *r, struct st_error *err);

/* Frees the reader's memory. */
void st_spool_close(struct st_spool_reader *r);

#endif
