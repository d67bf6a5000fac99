/* Goes through the records of all files. */
#include "perfdata/reader_state.h"
#include "perfdata/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct walk {
    struct pd_reader *reader;

    struct pd_part *part;

    struct pd_cursor cursor;

    pd_record_fn *fn;

    void *ctx;

    int bad; /* ST_EBADFILE: the rest of this part cannot be read; the others can */
};

/* A wrong size often shows only at what would be the next record. */
static void blame_before(const struct walk *w, struct st_error *err)
{
    struct perf_event_header before;

    if (!err || w->cursor.before == UINT64_MAX)
        return;
    memcpy(&before, w->part->map + w->cursor.before, sizeof(before));
    st_hint(err, "the record before, at offset 0x%" PRIx64 ": %s (%u), may have a wrong size %u",
            w->cursor.before, pd_record_name(before.type), before.type, before.size);
}

static int deliver(struct walk *w, const struct perf_event_header *header, const uint8_t *payload,
                   struct st_error *err)
{
    struct pd_record record = {
        .header = header, .file = w->part->name, .offset = w->cursor.at, .aux = payload};
    const char *problem = pd_shape_problem(header);

    if (!problem)
        problem = pd_events_identify(&w->reader->events, header, &record.event, &record.id);
    if (problem) {
        pd_bad_record(err, w->part->name, w->cursor.at, header->type, "%s (its size is %u)", problem,
                      header->size);
        return w->bad = ST_EBADFILE;
    }
    if (header->type != PD_RECORD_AUXTRACE)
        record.aux = NULL;
    return w->fn(w->ctx, &record, err);
}

static int bad_inside(struct walk *w, const struct perf_event_header *header, const char *why,
                      struct st_error *err)
{
    pd_bad_record(err, w->part->name, w->cursor.at, header->type,
                  "in the compressed record there: %s (its size is %u)", why, header->size);
    return w->bad = ST_EBADFILE;
}

static int walk_block(struct walk *w, const struct pd_block *block, struct st_error *err)
{
    const char *at = block->data;
    const char *end = at + block->whole;
    int rc = 0;

    while (!rc && at < end) {
        const struct perf_event_header *header = (const void *)at;

        if (header->size < sizeof(*header) || header->size % 8 || header->size > end - at)
            return bad_inside(w, header, "a wrong size", err);
        if (header->type == PD_RECORD_COMPRESSED || header->type == PD_RECORD_COMPRESSED2 ||
            header->type == PD_RECORD_AUXTRACE || header->type == 0)
            return bad_inside(w, header, "it cannot be there", err);
        rc = deliver(w, header, NULL, err);
        at += header->size;
    }
    return rc;
}

static int walk_compressed(struct walk *w, const struct pd_span *span, struct st_error *err)
{
    struct pd_block block;
    int rc;

    if (span->header.size < pd_least_size(span->header.type)) {
        pd_bad_record(err, w->part->name, w->cursor.at, span->header.type,
                      "it is too small for its fields (its size is %u)", span->header.size);
        return w->bad = ST_EBADFILE;
    }
    rc = pd_part_inflate(w->part, &w->cursor, span, w->reader->comp_mmap_len, &block, err);
    if (rc == ST_EBADFILE)
        w->bad = rc;
    return rc ? rc : walk_block(w, &block, err);
}

static int walk_span(struct walk *w, const struct pd_span *span, struct st_error *err)
{
    const struct perf_event_header *header;

    if (span->header.type == PD_RECORD_COMPRESSED || span->header.type == PD_RECORD_COMPRESSED2)
        return walk_compressed(w, span, err);
    header = pd_part_aligned(w->part, &w->cursor, span);
    if (!header)
        return st_nomem(err, "a record");
    return deliver(w, header, span->payload, err);
}

/* All records are out; the file may still promise more than it has. */
static int check_end(struct walk *w, struct st_error *err)
{
    const struct pd_part *part = w->part;
    const struct pd_block *last = w->cursor.block ? &part->blocks.at[w->cursor.block - 1] : NULL;

    if (part->end > part->size)
        return w->bad = pd_bad_place(err, part->name, part->size,
                                     "the file ends here, %" PRIu64 " bytes before the end of its data",
                                     part->end - part->size);
    if (last && last->whole < last->size)
        return w->bad = pd_bad_place(err, part->name, part->end, "the compressed data end within a record");
    if (part->unfinished)
        return w->bad =
                   pd_bad_place(err, part->name, part->end,
                                "the recording was never finished (its header has no size for the data)");
    if (part == w->reader->parts.at[0] && w->reader->lost.code) {
        if (err)
            *err = w->reader->lost;
        return w->bad = ST_EBADFILE;
    }
    return 0;
}

static int walk_part(struct walk *w, struct st_error *err)
{
    uint64_t end = w->part->end < w->part->size ? w->part->end : w->part->size;
    struct pd_span span;

    w->cursor = (struct pd_cursor){.at = w->part->start, .before = UINT64_MAX};
    w->bad = 0;
    while (w->cursor.at < end) {
        int rc = pd_part_span(w->part, w->cursor.at, &span, err);

        if (rc) {
            blame_before(w, err);
            return w->bad = rc;
        }
        rc = walk_span(w, &span, err);
        if (rc)
            return rc;
        if (pd_record_name(span.header.type)[0] != '?')
            w->cursor.before = w->cursor.at;
        w->cursor.at = span.next;
    }
    return check_end(w, err);
}

int pd_reader_each(struct pd_reader *reader, pd_record_fn *fn, void *ctx, struct st_error *err)
{
    struct walk w = {.reader = reader, .fn = fn, .ctx = ctx};
    int first = 0;

    for (size_t i = 0; i < reader->parts.n; i++) {
        struct st_error other = {0};
        int rc;

        w.part = reader->parts.at[i];
        rc = walk_part(&w, first ? &other : err);
        if (rc && rc != w.bad) {
            if (first && err)
                *err = other;
            return rc;
        }
        if (!first)
            first = rc;
    }
    return first;
}
