/* What a source's rings of records (samples) hold, in a snapshot. */
#include "recorder/perf/tracefs.h"
#include "recorder/snapshot/snapshot_impl.h"

#include <stdlib.h>

static int add_event(struct snap *s, size_t i, struct st_error *err)
{
    const struct rec_fact_event *event = &s->in->facts->recorded.at[i];

    return pd_writer_add_event(s->w, &event->attr, event->ids.at, event->ids.n, event->name, err);
}

int snap_add_record_event(struct snap *s, struct st_error *err)
{
    return add_event(s, 0, err);
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
    const struct rec_facts *facts = s->in->facts;
    ST_VEC(const char *) tracepoints = {0};
    int rc = 0;

    for (size_t i = 1; !rc && i < facts->recorded.n; i++) {
        const struct rec_fact_event *event = &facts->recorded.at[i];

        if (!event->name || !event->ids.n)
            continue;
        if (event->attr.type == PERF_TYPE_TRACEPOINT && st_vec_push(&tracepoints, event->name))
            rc = st_nomem(err, "the names of tracepoints");
        if (!rc)
            rc = add_event(s, i, err);
    }
    if (!rc)
        rc = add_tracing_data(s, tracepoints.at, tracepoints.n, err);
    st_vec_free(&tracepoints);
    return rc;
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

    return rec_filter_keeps(&s->in->facts->filter, record) ? pd_writer_record(s->w, record, err) : 0;
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
