/* Opens compressed records: one zstd stream a file, flushed at each record (tools/perf/util/zstd.c). */
#include "perfdata/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* However large the ring is that the file says to have had, a single record is no more than this. */
#define MOST ((uint64_t)256 << 20)

/* Of all records so far no more comes out than so many times their bytes, and some for the first ones. perf's
 * own come to 5 to 40 times. */
#define RATIO 128
#define FREE  ((uint64_t)64 << 20)

static ZSTD_inBuffer compressed_bytes(const struct pd_span *span)
{
    ZSTD_inBuffer in = {span->bytes + sizeof(span->header), span->header.size - sizeof(span->header), 0};
    uint64_t size;

    if (span->header.type != PD_RECORD_COMPRESSED2)
        return in;
    memcpy(&size, in.src, sizeof(size));
    in.src = span->bytes + sizeof(struct pd_compressed2);
    in.size = span->header.size - sizeof(struct pd_compressed2);
    if (size < in.size)
        in.size = size;
    return in;
}

static int grow(struct pd_block *block, uint64_t most)
{
    uint64_t size = block->size < 16384 ? 65536 : (uint64_t)block->size * 4;
    void *data;

    if (size > most)
        size = most;
    data = realloc(block->data, size);
    if (!data)
        return -1;
    block->data = data;
    block->size = size;
    return 0;
}

/* Fills the block from `filled` on, to `most` bytes; its size becomes the bytes in use. One byte more is had,
 * to tell a stream that ends there from one that does not. */
static int decompress(struct pd_part *part, uint64_t at, const struct pd_span *span, struct pd_block *block,
                      size_t filled, uint64_t most, struct st_error *err)
{
    ZSTD_inBuffer in = compressed_bytes(span);
    ZSTD_outBuffer out = {NULL, 0, filled};

    do {
        size_t rc;

        if (out.pos == block->size) {
            if (block->size > most)
                return pd_bad_record(err, part->name, at, span->header.type,
                                     "more than %" PRIu64 " bytes come out of it, after %" PRIu64
                                     " of the records before",
                                     most, part->opened);
            if (grow(block, most + 1))
                return st_nomem(err, "compressed records");
        }
        out.dst = block->data;
        out.size = block->size;
        rc = ZSTD_decompressStream(part->zstd, &out, &in);
        if (ZSTD_isError(rc))
            return pd_bad_record(err, part->name, at, span->header.type, "zstd says: %s",
                                 ZSTD_getErrorName(rc));
    } while (in.pos < in.size || out.pos == block->size);
    block->size = out.pos;
    return 0;
}

/* How many bytes are whole records, or a bad one, which the walk will meet. */
static size_t whole_records(const struct pd_block *block)
{
    size_t at = 0;

    while (block->size - at >= sizeof(struct perf_event_header)) {
        struct perf_event_header header;

        memcpy(&header, (const char *)block->data + at, sizeof(header));
        if (header.size < sizeof(header) || header.size % 8)
            return block->size;
        if (header.size > block->size - at)
            break;
        at += header.size;
    }
    return at;
}

static int make_block(struct pd_part *part, uint64_t at, const struct pd_span *span, uint64_t limit,
                      struct pd_block *block, struct st_error *err)
{
    const struct pd_block *last = part->blocks.n ? &part->blocks.at[part->blocks.n - 1] : NULL;
    size_t rest = last ? last->size - last->whole : 0;

    if (rest) {
        block->data = malloc(rest);
        if (!block->data)
            return st_nomem(err, "compressed records");
        memcpy(block->data, (const char *)last->data + last->whole, rest);
        block->size = rest;
    }
    if (limit == 0 || limit > MOST)
        limit = MOST;
    part->packed += span->header.size;
    if (limit > FREE + RATIO * part->packed - part->opened)
        limit = FREE + RATIO * part->packed - part->opened;
    return decompress(part, at, span, block, rest, rest + limit, err);
}

/* Blocks live as long as the reader: what was taken too much is given back. */
static void trim(struct pd_block *block)
{
    void *data = block->size ? realloc(block->data, block->size) : NULL;

    if (data)
        block->data = data;
}

int pd_part_inflate(struct pd_part *part, struct pd_cursor *cursor, const struct pd_span *span,
                    uint64_t limit, struct pd_block *out, struct st_error *err)
{
    struct pd_block block = {0};
    int rc;

    if (cursor->block < part->blocks.n) {
        *out = part->blocks.at[cursor->block++];
        return 0;
    }
    if (part->zstd_broken)
        return pd_bad_record(err, part->name, cursor->at, span->header.type,
                             "the compressed stream is broken here");
    if (!part->zstd)
        part->zstd = ZSTD_createDStream();
    if (!part->zstd || st_vec_reserve(&part->blocks, 1))
        return st_nomem(err, "compressed records");
    rc = make_block(part, cursor->at, span, limit, &block, err);
    if (rc) {
        part->zstd_broken = true;
        free(block.data);
        return rc;
    }
    trim(&block);
    part->opened += block.size;
    block.whole = whole_records(&block);
    part->blocks.at[part->blocks.n++] = block;
    *out = part->blocks.at[cursor->block++];
    return 0;
}
