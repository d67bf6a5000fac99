/* Samples with call chains, as the file has them. */
#include "decoder/sideband_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_switch(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

bool sb_is_sample(const struct pd_record *r)
{
    return r->event && r->event->attr.sample_type & PERF_SAMPLE_CALLCHAIN && r->id.has & PERF_SAMPLE_TIME &&
           r->id.has & PERF_SAMPLE_TID && (int32_t)r->id.tid >= 0 && r->id.time;
}

int sb_sample(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct dec_sideband *sb = c->sb;
    struct dec_sample_record s = {.time = r->id.time,
                                  .pid = (int32_t)r->id.pid,
                                  .tid = (int32_t)r->id.tid,
                                  .cpu = r->id.has & PERF_SAMPLE_CPU ? (int32_t)r->id.cpu : -1,
                                  .at_switch = is_switch(&r->event->attr),
                                  .record = *r};

    if (s.time > INT64_MAX)
        return st_fail(err, ST_EBADFILE, "%s: at offset 0x%" PRIx64 ": SAMPLE (9): its time is no time",
                       r->file, r->offset);
    if (!sb->first || s.time < sb->first)
        sb->first = s.time;
    if (s.time > sb->last)
        sb->last = s.time;
    if (!sb->sampled || (is_switch(sb->sampled) && !s.at_switch))
        sb->sampled = &r->event->attr;
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

void sb_sort_samples(struct dec_sideband *sb)
{
    if (sb->samples.n)
        qsort(sb->samples.at, sb->samples.n, sizeof(sb->samples.at[0]), by_thread);
}

/* "ring.N=tid=T cpu=C since=TIME offset=BYTES ..." */
int sb_sample_rings(struct sb_context *c)
{
    for (size_t i = 0; i < c->sb->meta.n; i++) {
        struct dec_sample_ring ring;
        uint64_t offset;
        unsigned idx;

        if (sscanf(c->sb->meta.at[i].text, "ring.%u=tid=%d cpu=%d since=%" SCNu64 " offset=%" SCNu64, &idx,
                   &ring.tid, &ring.cpu, &ring.since, &offset) != 5)
            continue;
        ring.overwritten = offset > 0;
        if (st_vec_push(&c->sb->sample_rings, ring))
            return -1;
    }
    return 0;
}
