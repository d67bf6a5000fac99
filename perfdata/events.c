/* The table of events, and the ways from a record to its event. */
#include "perfdata/events.h"
#include "base/bisect.h"
#include "perfdata/shape.h"

#include <stdlib.h>
#include <string.h>

#define TRAILER                                                                                              \
    (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |         \
     PERF_SAMPLE_IDENTIFIER)

static int words_of(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

static int sample_id_position(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 0;
    if (!(type & PERF_SAMPLE_ID))
        return -1;
    return words_of(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

static int trailer_id_position(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 1;
    if (!(type & PERF_SAMPLE_ID))
        return -1;
    return 1 + words_of(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
}

static int read_attr(struct perf_event_attr *out, const uint8_t *bytes, size_t n, struct st_error *err)
{
    uint32_t size;

    if (n < PERF_ATTR_SIZE_VER0)
        return st_fail(err, ST_EBADFILE, "%zu bytes are too few (%d at least)", n, PERF_ATTR_SIZE_VER0);
    memcpy(&size, bytes + offsetof(struct perf_event_attr, size), sizeof(size));
    if (size == 0)
        size = PERF_ATTR_SIZE_VER0;
    if (size < PERF_ATTR_SIZE_VER0 || size > n)
        return st_fail(err, ST_EBADFILE, "its size field %u is not within %d to %zu", size,
                       PERF_ATTR_SIZE_VER0, n);
    memset(out, 0, sizeof(*out));
    memcpy(out, bytes, size < sizeof(*out) ? size : sizeof(*out));
    return 0;
}

static int index_ids(struct pd_events *events, const struct pd_event *event)
{
    if (st_vec_reserve(&events->by_id, event->nids))
        return -1;
    for (size_t i = 0; i < event->nids; i++)
        events->by_id.at[events->by_id.n++] = (struct pd_id_entry){event->ids[i], event->index};
    return 0;
}

int pd_events_add(struct pd_events *events, const void *attr, size_t attr_bytes, const void *ids, size_t nids,
                  struct st_error *err)
{
    struct pd_event_slot slot = {.event = {.name = "", .nids = nids, .index = events->list.n}};
    int rc = read_attr(&slot.event.attr, attr, attr_bytes, err);

    if (rc)
        return rc;
    if (nids) {
        slot.ids = reallocarray(NULL, nids, sizeof(*slot.ids));
        if (!slot.ids)
            return st_nomem(err, "the ids of an event");
        memcpy(slot.ids, ids, nids * sizeof(*slot.ids));
        slot.event.ids = slot.ids;
    }
    if (st_vec_reserve(&events->list, 1) || index_ids(events, &slot.event)) {
        free(slot.ids);
        return st_nomem(err, "the events of a recording");
    }
    events->list.at[events->list.n++] = slot;
    return 0;
}

int pd_events_rename(struct pd_events *events, size_t index, const char *text, size_t max,
                     struct st_error *err)
{
    struct pd_event_slot *slot = &events->list.at[index];
    size_t n = strnlen(text, max);
    char *name = malloc(n + 1);

    if (!name)
        return st_nomem(err, "the name of an event");
    memcpy(name, text, n);
    name[n] = '\0';
    free(slot->name);
    slot->name = name;
    slot->event.name = name;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    const struct pd_id_entry *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int pd_events_seal(struct pd_events *events, struct st_error *err)
{
    events->id_pos = events->is_pos = -1;
    for (size_t i = 0; i < events->list.n; i++) {
        uint64_t type = events->list.at[i].event.attr.sample_type;
        int id_pos = sample_id_position(type);
        int is_pos = trailer_id_position(type);

        if (i == 0) {
            events->id_pos = id_pos;
            events->is_pos = is_pos;
        }
        if (events->list.n > 1 && id_pos < 0)
            return st_fail(
                err, ST_EBADFILE,
                "event %zu (sample_type 0x%llx) keeps no id, so its records cannot be told from others", i,
                (unsigned long long)type);
        if (id_pos != events->id_pos || is_pos != events->is_pos)
            return st_fail(err, ST_EBADFILE,
                           "event %zu (sample_type 0x%llx) does not keep its id where event 0 "
                           "(sample_type 0x%llx) does, so their records cannot be told apart",
                           i, (unsigned long long)type,
                           (unsigned long long)events->list.at[0].event.attr.sample_type);
    }
    if (events->by_id.n)
        qsort(events->by_id.at, events->by_id.n, sizeof(*events->by_id.at), compare_ids);
    return 0;
}

const struct pd_event *pd_events_find(const struct pd_events *events, uint64_t id)
{
    size_t first = st_bisect(i, events->by_id.n, events->by_id.at[i].id < id);

    if (first == events->by_id.n || events->by_id.at[first].id != id)
        return NULL;
    return &events->list.at[events->by_id.at[first].index].event;
}

/* Records that perf made itself carry the id 0 and are read as of the first event. */
static const struct pd_event *event_of(const struct pd_events *events, const struct perf_event_header *record)
{
    const uint64_t *words = (const uint64_t *)(record + 1);
    size_t n = record->size / 8 - 1;
    const struct pd_event *first;
    uint64_t id;

    if (events->list.n == 0)
        return NULL;
    first = &events->list.at[0].event;
    if (events->list.n == 1)
        return first;
    if (record->type == PERF_RECORD_SAMPLE) {
        if ((size_t)events->id_pos >= n)
            return NULL;
        id = words[events->id_pos];
    } else {
        if (!first->attr.sample_id_all)
            return first;
        if ((size_t)events->is_pos > n)
            return NULL;
        id = words[n - (size_t)events->is_pos];
    }
    return id ? pd_events_find(events, id) : first;
}

static bool take(struct pd_words *words, uint64_t *value)
{
    if (words->at == words->end)
        return false;
    *value = *words->at++;
    return true;
}

static bool take_pair(struct pd_words *words, uint32_t *a, uint32_t *b)
{
    uint64_t both;

    if (!take(words, &both))
        return false;
    *a = (uint32_t)both;
    *b = (uint32_t)(both >> 32);
    return true;
}

bool pd_sample_front(struct pd_words *w, uint64_t type, struct pd_sample_id *id, struct pd_sample *s)
{
    uint64_t stream_id;
    uint32_t reserved;

    id->has = type & TRAILER;
    if (type & PERF_SAMPLE_IDENTIFIER)
        id->has |= PERF_SAMPLE_ID;
    return (!(type & PERF_SAMPLE_IDENTIFIER) || take(w, &id->id)) &&
           (!(type & PERF_SAMPLE_IP) || take(w, &s->ip)) &&
           (!(type & PERF_SAMPLE_TID) || take_pair(w, &id->pid, &id->tid)) &&
           (!(type & PERF_SAMPLE_TIME) || take(w, &id->time)) &&
           (!(type & PERF_SAMPLE_ADDR) || take(w, &s->addr)) &&
           (!(type & PERF_SAMPLE_ID) || take(w, &id->id)) &&
           (!(type & PERF_SAMPLE_STREAM_ID) || take(w, &stream_id)) &&
           (!(type & PERF_SAMPLE_CPU) || take_pair(w, &id->cpu, &reserved));
}

/* sample_id_all: TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER at the end of a record (kernel, struct sample_id).
 */
static void read_trailer(const struct perf_event_header *record, uint64_t type, struct pd_sample_id *id)
{
    size_t n = (size_t)words_of(type & TRAILER);
    const uint64_t *end = (const uint64_t *)((const char *)record + record->size);
    struct pd_words w = {end - n, end};
    uint64_t word;
    uint32_t reserved;

    if (record->size < pd_least_size(record->type) + n * 8)
        return;
    id->has = type & TRAILER;
    if (type & PERF_SAMPLE_IDENTIFIER)
        id->has |= PERF_SAMPLE_ID;
    if (type & PERF_SAMPLE_TID)
        take_pair(&w, &id->pid, &id->tid);
    if (type & PERF_SAMPLE_TIME)
        take(&w, &id->time);
    if (type & PERF_SAMPLE_ID)
        take(&w, &id->id);
    if (type & PERF_SAMPLE_STREAM_ID)
        take(&w, &word);
    if (type & PERF_SAMPLE_CPU)
        take_pair(&w, &id->cpu, &reserved);
    if (type & PERF_SAMPLE_IDENTIFIER)
        take(&w, &id->id);
}

/* Behind the padded name of a record lies the trailer of one of the events, and nothing else. */
static bool fits_its_name(const struct pd_events *events, const struct perf_event_header *record)
{
    size_t at = pd_string_offset(record->type);
    size_t used;

    if (!at)
        return true;
    used = at + (strlen((const char *)record + at) + 8) / 8 * 8;
    for (size_t i = 0; i < events->list.n; i++) {
        const struct perf_event_attr *attr = &events->list.at[i].event.attr;
        size_t trailer = attr->sample_id_all ? (size_t)words_of(attr->sample_type & TRAILER) * 8 : 0;

        if (used + trailer == record->size)
            return true;
    }
    return false;
}

const char *pd_events_identify(const struct pd_events *events, const struct perf_event_header *record,
                               const struct pd_event **event, struct pd_sample_id *id)
{
    struct pd_sample dummy;
    struct pd_words w;

    *event = NULL;
    memset(id, 0, sizeof(*id));
    if (record->type >= PD_RECORD_HEADER_ATTR)
        return NULL;
    *event = event_of(events, record);
    if (!*event)
        return fits_its_name(events, record) ? NULL
                                             : "its size does not fit its name, and no event has its id";
    if (record->type != PERF_RECORD_SAMPLE) {
        if ((*event)->attr.sample_id_all)
            read_trailer(record, (*event)->attr.sample_type, id);
        return NULL;
    }
    w = (struct pd_words){(const uint64_t *)(record + 1),
                          (const uint64_t *)((const char *)record + record->size)};
    if (!pd_sample_front(&w, (*event)->attr.sample_type, id, &dummy)) {
        memset(id, 0, sizeof(*id));
        return "it is too small for the fields of its event";
    }
    return NULL;
}

void pd_events_free(struct pd_events *events)
{
    for (size_t i = 0; i < events->list.n; i++) {
        free(events->list.at[i].ids);
        free(events->list.at[i].name);
    }
    st_vec_free(&events->list);
    st_vec_free(&events->by_id);
}
