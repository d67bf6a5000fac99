/* Samples with call chains, as the file has them. */
#include "decoder/sideband/sideband_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dec_point_kind sb_point_kind(const struct pd_event *event)
{
    static const struct {
        const char *name;

        enum dec_point_kind kind;
    } points[] = {{"sched:sched_switch", DEC_POINT_SWITCH},
                  {"sched:sched_waking", DEC_POINT_WAKING},
                  {"raw_syscalls:sys_enter", DEC_POINT_ENTRY},
                  {"raw_syscalls:sys_exit", DEC_POINT_EXIT}};

    if (!event || event->attr.type != PERF_TYPE_TRACEPOINT)
        return DEC_POINT_NONE;
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        if (!strcmp(event->name, points[i].name))
            return points[i].kind;
    return DEC_POINT_NONE;
}

static bool is_switch(const struct pd_event *event)
{
    return (event->attr.type == PERF_TYPE_SOFTWARE && event->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES) ||
           sb_point_kind(event) == DEC_POINT_SWITCH;
}

static bool is_placed(const struct pd_record *r)
{
    return r->id.has & PERF_SAMPLE_TIME && r->id.has & PERF_SAMPLE_TID && (int32_t)r->id.tid >= 0 &&
           r->id.time;
}

bool sb_is_sample(const struct pd_record *r)
{
    return r->event && r->event->attr.sample_type & PERF_SAMPLE_CALLCHAIN && is_placed(r) &&
           sb_point_kind(r->event) <= DEC_POINT_SWITCH;
}

/* When it happened belongs to the recording. */
static int take_time(struct dec_sideband *sb, const struct pd_record *r, struct st_error *err)
{
    if (r->id.time > INT64_MAX)
        return st_fail(err, ST_EBADFILE, "%s: at offset 0x%" PRIx64 ": SAMPLE (9): its time is no time",
                       r->file, r->offset);
    if (!sb->first || r->id.time < sb->first)
        sb->first = r->id.time;
    if (r->id.time > sb->last)
        sb->last = r->id.time;
    return 0;
}

int sb_point(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct dec_point p = {.time = r->id.time,
                          .kind = sb_point_kind(r->event),
                          .pid = (int32_t)r->id.pid,
                          .tid = (int32_t)r->id.tid,
                          .cpu = r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : -1,
                          .record = *r};
    int rc;

    if (!is_placed(r) || !(r->event->attr.sample_type & PERF_SAMPLE_RAW))
        return 0;
    rc = take_time(c->sb, r, err);
    if (!rc && st_vec_push(&c->sb->points, p))
        rc = st_nomem(err, "the tracepoints' samples");
    return rc;
}

int sb_sample(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct dec_sideband *sb = c->sb;
    struct dec_sample_record s = {.time = r->id.time,
                                  .pid = (int32_t)r->id.pid,
                                  .tid = (int32_t)r->id.tid,
                                  .cpu = r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : -1,
                                  .at_switch = is_switch(r->event),
                                  .record = *r};
    int rc = take_time(sb, r, err);

    if (rc)
        return rc;
    if (!sb->sampled || (c->sampled_at_switches && !s.at_switch)) {
        sb->sampled = &r->event->attr;
        c->sampled_at_switches = s.at_switch;
    }
    return st_vec_push(&sb->samples, s) ? st_nomem(err, "the samples") : 0;
}

static int by_thread(const void *a, const void *b)
{
    const struct dec_sample_record *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->record.offset < y->record.offset ? -1 : x->record.offset > y->record.offset;
}

static int by_time(const void *a, const void *b)
{
    const struct dec_point *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->record.offset < y->record.offset ? -1 : x->record.offset > y->record.offset;
}

void sb_sort_samples(struct dec_sideband *sb)
{
    if (sb->samples.n)
        qsort(sb->samples.at, sb->samples.n, sizeof(sb->samples.at[0]), by_thread);
    if (sb->points.n)
        qsort(sb->points.at, sb->points.n, sizeof(sb->points.at[0]), by_time);
}

/* "marks.N=cpu=C since=TIME offset=BYTES ..." */
static int take_point_ring(struct dec_sideband *sb, const char *text)
{
    struct dec_sample_ring ring = {.tid = -1};
    uint64_t offset;

    if (sscanf(text, "marks.%*u=cpu=%d since=%" SCNu64 " offset=%" SCNu64, &ring.cpu, &ring.since, &offset) !=
        3)
        return 0;
    ring.overwritten = offset > 0;
    return st_vec_push(&sb->point_rings, ring);
}

/* "ring.N=tid=T cpu=C since=TIME offset=BYTES ..." */
int sb_sample_rings(struct sb_context *c)
{
    for (size_t i = 0; i < c->sb->meta.n; i++) {
        struct dec_sample_ring ring;
        uint64_t offset;
        unsigned idx;

        if (take_point_ring(c->sb, c->sb->meta.at[i].text))
            return -1;
        if (sscanf(c->sb->meta.at[i].text, "ring.%u=tid=%d cpu=%d since=%" SCNu64 " offset=%" SCNu64, &idx,
                   &ring.tid, &ring.cpu, &ring.since, &offset) != 5)
            continue;
        ring.overwritten = offset > 0;
        if (st_vec_push(&c->sb->sample_rings, ring))
            return -1;
    }
    return 0;
}
