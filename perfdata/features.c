/* Feature sections: tools/perf/util/header.c, tools/perf/Documentation/perf.data-file-format.txt. */
#include "perfdata/reader_state.h"

#include <inttypes.h>
#include <string.h>

/* What is left of a section. */
struct bytes {
    const uint8_t *at;

    uint64_t left;
};

static const uint8_t *take(struct bytes *b, uint64_t n)
{
    const uint8_t *at = b->at;

    if (n > b->left)
        return NULL;
    b->at += n;
    b->left -= n;
    return at;
}

static bool take_u32(struct bytes *b, uint32_t *value)
{
    const uint8_t *at = take(b, sizeof(*value));

    if (at)
        memcpy(value, at, sizeof(*value));
    return at;
}

/* A length, then so many bytes, of which the string is the first. */
static bool take_string(struct bytes *b, const char **text, uint32_t *room)
{
    const uint8_t *at = NULL;

    if (take_u32(b, room))
        at = take(b, *room);
    *text = (const char *)at;
    return at;
}

/* PD_FEAT_EVENT_DESC: count, size of an attribute; each: the attribute, count of ids, name, ids. In the order
 * of the events. */
static int apply_event_desc(struct pd_reader *reader, struct st_error *err)
{
    const struct pd_section *s = &reader->features[PD_FEAT_EVENT_DESC];
    struct bytes b = {s->data, s->size};
    uint32_t n, attr_size;
    int rc = 0;

    if (!s->data || !take_u32(&b, &n) || !take_u32(&b, &attr_size))
        return 0;
    for (uint32_t i = 0; !rc && i < n && i < reader->events.list.n; i++) {
        uint32_t nids, room;
        const char *name;

        if (!take(&b, attr_size) || !take_u32(&b, &nids) || !take_string(&b, &name, &room) ||
            !take(&b, (uint64_t)nids * 8))
            break;
        rc = pd_events_rename(&reader->events, i, name, room, err);
    }
    return rc;
}

static int apply_compressed(struct pd_reader *reader, struct st_error *err)
{
    const struct pd_section *s = &reader->features[PD_FEAT_COMPRESSED];
    struct pd_compressed_feature f;

    if (!s->data)
        return 0;
    if (s->size < sizeof(f))
        return pd_bad_place(err, reader->parts.at[0]->name, s->offset, "the feature COMPRESSED is too small");
    memcpy(&f, s->data, sizeof(f));
    if (f.type != PD_COMPRESSION_ZSTD)
        return pd_bad_place(err, reader->parts.at[0]->name, s->offset,
                            "records are compressed by method %u; only zstd (%d) is known", f.type,
                            PD_COMPRESSION_ZSTD);
    reader->comp_mmap_len = f.mmap_len;
    return 0;
}

int pd_apply_features(struct pd_reader *reader, struct st_error *err)
{
    int rc = apply_compressed(reader, err);

    return rc ? rc : apply_event_desc(reader, err);
}

const void *pd_reader_feature(const struct pd_reader *reader, enum pd_feature feature, size_t *size)
{
    const struct pd_section *s;

    *size = 0;
    if ((unsigned)feature >= PD_FEAT_BITS)
        return NULL;
    s = &reader->features[feature];
    *size = s->size;
    return s->data;
}

const char *pd_reader_string(const struct pd_reader *reader, enum pd_feature feature)
{
    struct bytes b;
    const char *text;
    uint32_t room;

    if ((unsigned)feature >= PD_FEAT_BITS || !reader->features[feature].data)
        return NULL;
    b = (struct bytes){reader->features[feature].data, reader->features[feature].size};
    if (!take_string(&b, &text, &room) || !memchr(text, '\0', room))
        return NULL;
    return text;
}

static int one_build_id(const struct pd_reader *reader, const struct pd_section *s, pd_build_id_fn *fn,
                        void *ctx, struct st_error *err)
{
    const size_t head = sizeof(struct pd_build_id_entry);
    const char *file = reader->parts.at[0]->name;
    struct pd_build_id_entry entry;
    struct pd_build_id id = {0};

    memcpy(&entry, s->data, head);
    id.pid = entry.pid;
    id.misc = entry.header.misc & (uint16_t)~PD_MISC_BUILD_ID_SIZE;
    id.id_size = entry.header.misc & PD_MISC_BUILD_ID_SIZE ? entry.id_size : sizeof(id.id);
    if (id.id_size > sizeof(id.id))
        return pd_bad_place(err, file, s->offset, "a build id of %u bytes", id.id_size);
    memcpy(id.id, entry.id, id.id_size);
    id.filename = (const char *)s->data + head;
    if (!memchr(id.filename, '\0', s->size - head))
        return pd_bad_place(err, file, s->offset, "the file name of a build id has no end");
    return fn(ctx, &id);
}

static int next_build_id(const struct pd_reader *reader, const struct pd_section *all, uint64_t at,
                         struct pd_section *one, struct st_error *err)
{
    struct perf_event_header header = {0};

    if (all->size - at >= sizeof(header))
        memcpy(&header, all->data + at, sizeof(header));
    if (header.size <= sizeof(struct pd_build_id_entry) || header.size > all->size - at)
        return pd_bad_place(err, reader->parts.at[0]->name, all->offset + at,
                            "a build id whose size %u cannot be", header.size);
    *one = (struct pd_section){all->data + at, header.size, all->offset + at};
    return 0;
}

static int each_build_id(const struct pd_reader *reader, const struct pd_section *all, pd_build_id_fn *fn,
                         void *ctx, struct st_error *err)
{
    struct pd_section one = {0};
    int rc = 0;

    for (uint64_t at = 0; !rc && at < all->size; at += one.size) {
        rc = next_build_id(reader, all, at, &one, err);
        if (!rc)
            rc = one_build_id(reader, &one, fn, ctx, err);
    }
    return rc;
}

int pd_reader_build_ids(const struct pd_reader *reader, pd_build_id_fn *fn, void *ctx, struct st_error *err)
{
    int rc = each_build_id(reader, &reader->features[PD_FEAT_BUILD_ID], fn, ctx, err);

    for (size_t i = 0; !rc && i < reader->build_ids.n; i++)
        rc = each_build_id(reader, &reader->build_ids.at[i], fn, ctx, err);
    return rc;
}
