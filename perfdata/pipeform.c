/* Attributes and features of pipe mode, where they are records. */
#include "perfdata/reader_state.h"

#include <string.h>

static int take_attr(struct pd_reader *reader, uint64_t at, const struct pd_span *span, struct st_error *err)
{
    const struct pd_part *part = reader->parts.at[0];
    size_t n = span->header.size - sizeof(span->header);
    const uint8_t *attr = span->bytes + sizeof(span->header);
    struct st_error why = {0};
    uint32_t size;
    int rc;

    if (n < PERF_ATTR_SIZE_VER0)
        return pd_bad_record(err, part->name, at, span->header.type, "it is too small for an attribute");
    memcpy(&size, attr + offsetof(struct perf_event_attr, size), sizeof(size));
    if (size == 0)
        size = PERF_ATTR_SIZE_VER0;
    rc = pd_events_add(&reader->events, attr, n, attr + (size < n ? size : n), size < n ? (n - size) / 8 : 0,
                       &why);
    if (rc == ST_EBADFILE)
        return pd_bad_record(err, part->name, at, span->header.type, "its attribute: %s", why.text);
    if (rc && err)
        *err = why;
    return rc;
}

static void take_feature(struct pd_reader *reader, uint64_t at, const struct pd_span *span)
{
    const size_t head = sizeof(struct pd_header_feature);
    uint64_t bit;

    if (span->header.size < head)
        return;
    memcpy(&bit, span->bytes + offsetof(struct pd_header_feature, feature), sizeof(bit));
    if (bit < PD_FEAT_BITS)
        reader->features[bit] = (struct pd_section){span->bytes + head, span->header.size - head, at + head};
}

static int take_build_id(struct pd_reader *reader, uint64_t at, const struct pd_span *span,
                         struct st_error *err)
{
    if (st_vec_push(&reader->build_ids, (struct pd_section){span->bytes, span->header.size, at}))
        return st_nomem(err, "build ids");
    return 0;
}

static int take_span(struct pd_reader *reader, uint64_t at, const struct pd_span *span, struct st_error *err)
{
    switch (span->header.type) {
    case PD_RECORD_HEADER_ATTR:
        return take_attr(reader, at, span, err);
    case PD_RECORD_HEADER_FEATURE:
        take_feature(reader, at, span);
        return 0;
    case PD_RECORD_HEADER_BUILD_ID:
        return take_build_id(reader, at, span, err);
    default:
        return 0;
    }
}

static int take_update(struct pd_reader *reader, const struct pd_span *span, struct st_error *err)
{
    const size_t head = sizeof(struct pd_event_update);
    struct pd_event_update update;
    const struct pd_event *event;

    if (span->header.type != PD_RECORD_EVENT_UPDATE || span->header.size <= head)
        return 0;
    memcpy(&update, span->bytes, head);
    event = pd_events_find(&reader->events, update.id);
    if (update.type != PD_UPDATE_NAME || !event)
        return 0;
    return pd_events_rename(&reader->events, event->index, (const char *)span->bytes + head,
                            span->header.size - head, err);
}

/* Calls take for each span until the first bad one. */
static int each_span(struct pd_reader *reader, bool updates, struct st_error *err)
{
    const struct pd_part *part = reader->parts.at[0];
    struct pd_span span;
    int rc = 0;

    for (uint64_t at = part->start; !rc && at < part->end; at = span.next) {
        if (pd_part_span(part, at, &span, NULL))
            break;
        rc = updates ? take_update(reader, &span, err) : take_span(reader, at, &span, err);
    }
    return rc;
}

int pd_read_pipe_form(struct pd_reader *reader, struct st_error *err)
{
    struct pd_part *part = reader->parts.at[0];
    struct st_error why = {0};
    int rc;

    part->start = sizeof(struct pd_pipe_header);
    rc = each_span(reader, false, err);
    if (!rc && pd_events_seal(&reader->events, &why))
        rc = pd_bad_place(err, part->name, part->start, "%s", why.text);
    /* Names go by id, which needs all of them. */
    return rc ? rc : each_span(reader, true, err);
}
