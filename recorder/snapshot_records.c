/* What a source's rings of records (samples) hold, in a snapshot. */
#include "recorder/snapshot_impl.h"
#include "recorder/tracefs.h"

#include <stdlib.h>

/* More than any source has. */
enum { MOST_EVENTS = 16 };

int snap_add_record_event(struct snap *s, struct st_error *err)
{
    struct rec_record_event event;

    if (!s->in->ops->record_event(s->in->source, 0, &event))
        return st_nomem(err, "the ids of events");
    return pd_writer_add_event(s->w, &event.attr, event.ids, event.nids, event.name, err);
}

static int add_tracing_data(struct snap *s, const char *const *names, size_t n, struct st_error *err)
{
    rec_text text = {0};
    int rc = n ? rec_tracing_data(names, n, &text, err) : 0;

    if (!rc && n)
        rc = pd_writer_tracing_data(s->w, text.at, text.n, err);
    st_vec_free(&text);
    return rc;
}

int snap_add_other_record_events(struct snap *s, struct st_error *err)
{
    const char *tracepoints[MOST_EVENTS];
    struct rec_record_event event;
    size_t n = 0;
    int rc = 0;

    for (size_t i = 1; !rc && i < MOST_EVENTS && s->in->ops->record_event(s->in->source, i, &event); i++) {
        if (!event.name || !event.nids)
            continue;
        if (event.attr.type == PERF_TYPE_TRACEPOINT)
            tracepoints[n++] = event.name;
        rc = pd_writer_add_event(s->w, &event.attr, event.ids, event.nids, event.name, err);
    }
    return rc ? rc : add_tracing_data(s, tracepoints, n, err);
}

int snap_each_record(const struct rec_ring *ring, snap_record_fn *fn, void *ctx, struct st_error *err)
{
    ST_VEC(size_t) at = {0};
    const char *bytes = ring->part[0];
    int rc = 0;

    for (size_t i = 0; !rc && ring->size[0] - i >= sizeof(struct perf_event_header);) {
        const struct perf_event_header *record = (const void *)(bytes + i);

        /* The oldest one is cut by the newest. */
        if (record->size < sizeof(*record) || record->size & 7 || record->size > ring->size[0] - i)
            break;
        rc = st_vec_push(&at, i) ? st_nomem(err, "the records of a ring") : 0;
        i += record->size;
    }
    while (!rc && at.n)
        rc = fn(ctx, (const void *)(bytes + at.at[--at.n]), err);
    st_vec_free(&at);
    return rc;
}

static int write_record(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    struct snap *s = ctx;

    if (s->in->ops->keeps && !s->in->ops->keeps(s->in->source, record))
        return 0;
    return pd_writer_record(s->w, record, err);
}

int snap_write_records(struct snap *s, struct st_error *err)
{
    const struct rec_capture *c = s->in->capture;
    int rc = 0;

    for (size_t i = 0; !rc && i < c->rings.n; i++)
        rc = snap_each_record(&c->rings.at[i], write_record, s, err);
    return rc;
}

size_t snap_sample_chain(const struct perf_event_header *record, const uint64_t **chain)
{
    const struct rec_sample_head *head = (const struct rec_sample_head *)record;
    const uint64_t *words = (const uint64_t *)(head + 1); /* the period, the chain's length, the chain */
    size_t n = record->size / sizeof(*words);
    size_t before = sizeof(*head) / sizeof(*words) + 2;

    *chain = words + 2;
    if (record->type != PERF_RECORD_SAMPLE || n < before)
        return 0;
    return words[1] < n - before ? words[1] : n - before;
}
