/* The events of a recording, and which of them a record belongs to. Private to perfdata. */
#ifndef ST_PERFDATA_EVENTS_H
#define ST_PERFDATA_EVENTS_H

#include "base/vec.h"
#include "perfdata/reader.h"

/* What pd_event points to, and to whom it belongs. */
struct pd_event_slot {
    struct pd_event event;

    uint64_t *ids;

    char *name; /* NULL: event.name is "" */
};

struct pd_id_entry {
    uint64_t id;

    size_t index;
};

/* Initialise with {0}. */
struct pd_events {
    ST_VEC(struct pd_event_slot) list;

    ST_VEC(struct pd_id_entry) by_id; /* sorted once sealed */

    int id_pos; /* of a sample's id, in 8-byte words from the header; -1: has none */

    int is_pos; /* of another record's id, in words from its end, 1 = the last; -1: has none */
};

/* Adds an event. `attr` are `attr_bytes` bytes as they stand in a file, `ids` need not be aligned; both are
 * copied. ST_EBADFILE: the attribute's size field is impossible (the text says only why). ST_ENOMEM. The
 * table is unchanged on error. */
int pd_events_add(struct pd_events *events, const void *attr, size_t attr_bytes, const void *ids, size_t nids,
                  struct st_error *err);

/* Gives event `index` a name: the string in `text`, which ends at a NUL or after `max` bytes. ST_ENOMEM:
 * keeps the old one. */
int pd_events_rename(struct pd_events *events, size_t index, const char *text, size_t max,
                     struct st_error *err);

/* No event is added any more. ST_EBADFILE: the events keep the id at different places, so no record could be
 * told to be of one. */
int pd_events_seal(struct pd_events *events, struct st_error *err);

/* The event that has this id, or NULL. Needs a sealed table. */
const struct pd_event *pd_events_find(const struct pd_events *events, uint64_t id);

/* Finds a record's event and takes its identity apart, by the rules of perf's evlist
 * (tools/perf/util/evlist.c, evlist__event2evsel). The record is aligned to 8 and whole. Returns NULL, or
 * what is wrong with it. *event may be NULL then and otherwise. */
const char *pd_events_identify(const struct pd_events *events, const struct perf_event_header *record,
                               const struct pd_event **event, struct pd_sample_id *id);

void pd_events_free(struct pd_events *events);

/* The words of a record that were not read yet. */
struct pd_words {
    const uint64_t *at;

    const uint64_t *end;
};

/* Takes the fields of a sample from the identifier to the CPU. False: the record ends before. */
bool pd_sample_front(struct pd_words *words, uint64_t sample_type, struct pd_sample_id *id,
                     struct pd_sample *sample);

#endif
