/* Where marks are written: a ring a CPU that the kernel overwrites. */
#include "recorder/arm/mark_rings.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARK_RING = 1 << 20, LEAST_RING = 4096 };

static int open_ring(struct rec_mark_ring *r, const struct perf_event_attr *attr, struct st_error *err)
{
    struct perf_event_attr own = *attr;
    int rc;

    own.write_backward = 1;
    own.watermark = 1; /* and that is never reached */
    own.wakeup_watermark = 1u << 30;
    r->ring.fd = rec_perf_event(&own, -1, r->ring.cpu);
    if (r->ring.fd < 0)
        return rec_perf_refused("take marks on every CPU", err);
    do
        rc = smp_ring_map(&r->ring, err);
    while (rc == ST_ECANNOT && (r->ring.bytes /= 2) >= LEAST_RING);
    if (rc)
        close(r->ring.fd);
    return rc;
}

int rec_mark_rings_open(struct rec_mark_rings *rings, const struct perf_event_attr *attr,
                        const struct rec_group *group, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < group->events.n; i++) {
        struct rec_mark_ring r = {.ring = {.cpu = group->rings.at[i].cpu, .bytes = MARK_RING},
                                  .id = group->events.at[i].id};

        rc = open_ring(&r, attr, err);
        if (!rc && st_vec_push(&rings->each, r)) {
            smp_ring_unmap(&r.ring);
            close(r.ring.fd);
            rc = st_nomem(err, "the rings of marks");
        }
    }
    return rc;
}

/* The bytes of a paused ring in one piece, to be freed; the newest record comes first. */
static char *copy_ring(const struct smp_ring *ring, size_t *size, bool *overwritten)
{
    struct rec_ring parts;
    char *bytes;

    smp_ring_parts(ring, &parts);
    *size = parts.size[0] + parts.size[1];
    *overwritten = parts.offset > 0;
    bytes = malloc(*size + 1);
    if (!bytes)
        return NULL;
    memcpy(bytes, parts.part[0], parts.size[0]);
    memcpy(bytes + parts.size[0], parts.part[1], parts.size[1]);
    return bytes;
}

struct lost_record {
    struct perf_event_header header;

    uint64_t id, lost;
};

static int add(struct rec_mark_rings *rings, const struct rec_mark_ring *r, struct perf_event_header *record,
               struct rec_store *store, struct st_error *err)
{
    if (record->type == PERF_RECORD_LOST)
        rings->lost += ((const struct lost_record *)record)->lost;
    if (record->type != PERF_RECORD_SAMPLE)
        return 0;
    ((struct rec_sample_head *)record)->id = r->id;
    return rec_store_add(store, record, rec_record_time(record), err);
}

/* Whether the oldest one is a part only: the newest are written over it. */
static bool whole(const struct perf_event_header *record, size_t left)
{
    return left >= sizeof(*record) && record->size >= sizeof(struct rec_sample_head) && !(record->size & 7) &&
           record->size <= left;
}

static int take_ring(struct rec_mark_rings *rings, struct rec_mark_ring *r, struct rec_store *store,
                     struct st_error *err)
{
    ST_VEC(size_t) at = {0};
    size_t size, i = 0;
    bool cut, seen = false;
    uint64_t time = 0;
    char *bytes = copy_ring(&r->ring, &size, &cut);
    int rc = bytes ? 0 : st_nomem(err, "the marks");

    while (!rc && !seen && i < size && whole((const void *)(bytes + i), size - i)) {
        const struct perf_event_header *record = (const void *)(bytes + i);

        seen = rec_record_time(record) <= r->taken;
        time = seen ? time : rec_record_time(record);
        rc = seen || !st_vec_push(&at, i) ? 0 : st_nomem(err, "the marks");
        i += record->size;
    }
    if (!rc && cut && !seen && time > rings->since)
        rings->since = time;
    while (!rc && at.n) {
        struct perf_event_header *record = (void *)(bytes + at.at[--at.n]);

        r->taken = rec_record_time(record);
        rc = add(rings, r, record, store, err);
    }
    st_vec_free(&at);
    free(bytes);
    return rc;
}

int rec_mark_rings_take(struct rec_mark_rings *rings, struct rec_store *store, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < rings->each.n; i++) {
        struct rec_mark_ring *r = &rings->each.at[i];
        int resumed;

        rc = smp_ring_pause(&r->ring, true, err);
        if (rc)
            return rc;
        rc = take_ring(rings, r, store, err);
        resumed = smp_ring_pause(&r->ring, false, rc ? NULL : err);
        rc = rc ? rc : resumed;
    }
    return rc;
}

void rec_mark_rings_close(struct rec_mark_rings *rings)
{
    for (size_t i = 0; i < rings->each.n; i++) {
        smp_ring_unmap(&rings->each.at[i].ring);
        close(rings->each.at[i].ring.fd);
    }
    st_vec_free(&rings->each);
}
