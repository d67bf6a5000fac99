/* The side-band in memory. */
#include "recorder/sideband/record_store.h"
#include "recorder/sideband/record_log.h"

#include <stdlib.h>

struct rec_store {
    struct rec_log state, events, samples;

    struct rec_store_bounds bounds;

    size_t compact_at; /* bytes of state */

    uint64_t seq;
};

int rec_store_open(const struct rec_store_bounds *bounds, struct rec_store **store, struct st_error *err)
{
    struct rec_store *s = calloc(1, sizeof(*s));

    if (!s)
        return st_nomem(err, "the side-band");
    if (bounds)
        s->bounds = *bounds;
    if (!s->bounds.state)
        s->bounds.state = 16 << 20;
    if (!s->bounds.events)
        s->bounds.events = 32 << 20;
    if (!s->bounds.samples)
        s->bounds.samples = 16 << 20;
    s->compact_at = s->bounds.state;
    *store = s;
    return 0;
}

static struct rec_log *log_of(struct rec_store *s, uint32_t type)
{
    switch (type) {
    case PERF_RECORD_SAMPLE:
        return &s->samples;
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
    case PERF_RECORD_AUX:
    case PERF_RECORD_READ:
        return &s->events;
    default:
        return &s->state;
    }
}

/* Where memory runs out the state simply stays as long as it is. */
static void compact(struct rec_store *s)
{
    struct rec_stored *list = NULL;
    bool *drop = calloc(s->state.n + 1, sizeof(*drop));
    struct rec_log kept;

    if (drop && !rec_log_list(&s->state, &list) && !rec_store_mark_stale(list, s->state.n, drop) &&
        !rec_log_filter(&s->state, drop, &kept)) {
        rec_log_free(&s->state);
        s->state = kept;
    }
    free(list);
    free(drop);
    /* What is left is alive and may be more than the bound: then it is looked at again when it has doubled.
     */
    s->compact_at = s->state.bytes > s->bounds.state / 4 * 3 ? 2 * s->state.bytes : s->bounds.state;
}

int rec_store_add(struct rec_store *store, const struct perf_event_header *record, uint64_t time,
                  struct st_error *err)
{
    if (rec_log_add(log_of(store, record->type), record, time, store->seq++))
        return st_nomem(err, "the side-band");
    rec_log_trim(&store->events, store->bounds.events);
    rec_log_trim(&store->samples, store->bounds.samples);
    if (store->state.bytes > store->compact_at)
        compact(store);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct rec_stored *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int rec_store_view(const struct rec_store *store, struct rec_view *view)
{
    *view =
        (struct rec_view){.events_dropped = store->events.dropped, .samples_dropped = store->samples.dropped};
    if (!rec_log_hold(&store->state, view) && !rec_log_hold(&store->events, view) &&
        !rec_log_hold(&store->samples, view))
        return 0;
    rec_view_free(view);
    return -1;
}

int rec_view_sorted(const struct rec_view *view, struct rec_stored **sorted, struct st_error *err)
{
    struct rec_stored *list = calloc(view->n + 1, sizeof(*list));
    size_t at = 0;

    if (!list)
        return st_nomem(err, "the snapshot's side-band");
    for (size_t i = 0; i < view->chunks.n; i++)
        at += rec_chunk_fill(view->chunks.at[i].chunk, view->chunks.at[i].used, list + at);
    qsort(list, view->n, sizeof(*list), by_time);
    *sorted = list;
    return 0;
}

void rec_view_free(struct rec_view *view)
{
    for (size_t i = 0; i < view->chunks.n; i++)
        rec_chunk_drop(view->chunks.at[i].chunk);
    st_vec_free(&view->chunks);
    view->n = 0;
}

size_t rec_store_bytes(const struct rec_store *store)
{
    return store->state.bytes + store->events.bytes + store->samples.bytes;
}

void rec_store_close(struct rec_store *store)
{
    if (!store)
        return;
    rec_log_free(&store->state);
    rec_log_free(&store->events);
    rec_log_free(&store->samples);
    free(store);
}
