/* The header, attributes and feature sections of a perf.data in file form. */
#include "perfdata/reader_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool within(const struct pd_part *part, const struct pd_file_section *s)
{
    return s->offset <= part->size && s->size <= part->size - s->offset;
}

static int read_attr(struct pd_reader *reader, uint64_t at, uint64_t attr_size, size_t *ids_left,
                     struct st_error *err)
{
    const struct pd_part *part = reader->parts.at[0];
    const uint8_t *bytes = part->map + at;
    uint64_t attr_bytes = attr_size - sizeof(struct pd_file_section);
    size_t index = reader->events.list.n;
    struct pd_file_section ids;
    struct st_error why = {0};
    int rc;

    memcpy(&ids, bytes + attr_bytes, sizeof(ids));
    if (!within(part, &ids))
        return pd_bad_place(err, part->name, at + attr_bytes,
                            "attribute %zu: its ids (%" PRIu64 " bytes at 0x%" PRIx64
                            ") lie beyond the end of the file",
                            index, ids.size, ids.offset);
    if (ids.size % 8 || ids.size / 8 > *ids_left)
        return pd_bad_place(err, part->name, at + attr_bytes,
                            "attribute %zu: %" PRIu64 " bytes of ids cannot be", index, ids.size);
    *ids_left -= ids.size / 8;
    rc = pd_events_add(&reader->events, bytes, attr_bytes, part->map + ids.offset, ids.size / 8, &why);
    if (rc == ST_EBADFILE)
        return pd_bad_place(err, part->name, at, "attribute %zu: %s", index, why.text);
    if (rc && err)
        *err = why;
    return rc;
}

static int read_attrs(struct pd_reader *reader, const struct pd_file_header *h, struct st_error *err)
{
    const struct pd_part *part = reader->parts.at[0];
    const uint64_t field = offsetof(struct pd_file_header, attrs);
    size_t ids_left = part->size / 8;
    int rc = 0;

    if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct pd_file_section) || h->attr_size > 65536)
        return pd_bad_place(err, part->name, offsetof(struct pd_file_header, attr_size),
                            "attributes of %" PRIu64 " bytes cannot be", h->attr_size);
    if (!within(part, &h->attrs))
        return pd_bad_place(err, part->name, field,
                            "the attributes (%" PRIu64 " bytes at 0x%" PRIx64
                            ") lie beyond the end of the file",
                            h->attrs.size, h->attrs.offset);
    if (h->attrs.size % h->attr_size)
        return pd_bad_place(err, part->name, field,
                            "%" PRIu64 " bytes of attributes are no multiple of %" PRIu64, h->attrs.size,
                            h->attr_size);
    for (uint64_t at = 0; !rc && at < h->attrs.size; at += h->attr_size)
        rc = read_attr(reader, h->attrs.offset + at, h->attr_size, &ids_left, err);
    return rc;
}

static int place_data(struct pd_part *part, const struct pd_file_header *h, struct st_error *err)
{
    const uint64_t field = offsetof(struct pd_file_header, data);

    if (h->data.offset > part->size || h->data.offset < sizeof(h->magic) + sizeof(h->size))
        return pd_bad_place(err, part->name, field,
                            "the data begin at 0x%" PRIx64 ", beyond the end of the file", h->data.offset);
    if (h->data.size > UINT64_MAX - h->data.offset)
        return pd_bad_place(err, part->name, field, "the data cannot have a size of %" PRIu64, h->data.size);
    part->start = h->data.offset;
    part->unfinished = h->data.size == 0;
    part->end = part->unfinished ? part->size : h->data.offset + h->data.size;
    return 0;
}

static bool has_feature(const struct pd_file_header *h, unsigned bit)
{
    return h->features[bit / 64] >> (bit % 64) & 1;
}

/* The table of sections follows the data, an entry a feature that the header names. A file that was cut has
 * lost some: that is told behind its records, not here, so that the records can be had. */
static void read_feature_table(struct pd_reader *reader, const struct pd_file_header *h)
{
    const struct pd_part *part = reader->parts.at[0];
    uint64_t at = part->end;

    for (unsigned bit = 0; bit < PD_FEAT_BITS; bit++) {
        struct pd_file_section s;

        if (!has_feature(h, bit))
            continue;
        if (at > part->size || part->size - at < sizeof(s)) {
            pd_bad_place(&reader->lost, part->name, part->size, "the file ends before its table of features");
            return;
        }
        memcpy(&s, part->map + at, sizeof(s));
        if (within(part, &s))
            reader->features[bit] = (struct pd_section){part->map + s.offset, s.size, s.offset};
        else if (!reader->lost.code)
            pd_bad_place(&reader->lost, part->name, at,
                         "feature %u (%" PRIu64 " bytes at 0x%" PRIx64 ") lies beyond the end of the file",
                         bit, s.size, s.offset);
        at += sizeof(s);
    }
}

int pd_read_file_form(struct pd_reader *reader, const struct pd_file_header *header, struct st_error *err)
{
    struct pd_part *part = reader->parts.at[0];
    int rc = read_attrs(reader, header, err);

    if (!rc)
        rc = place_data(part, header, err);
    if (!rc && !part->unfinished)
        read_feature_table(reader, header);
    return rc;
}
