/* The listing of samples. */
#include "decoder/cmd/dump.h"

#include "base/vec.h"

#include <inttypes.h>
#include <stdlib.h>

/* A sample with a call chain, and when. */
struct listed {
    uint64_t time;

    int32_t tid, cpu;

    const struct pd_record *record;
};

typedef ST_VEC(struct listed) listing;

static int by_time(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int print(FILE *out, const struct listed *s, struct st_error *err)
{
    struct pd_sample sample;
    char time[32];
    int rc = pd_record_sample(s->record, &sample, err);

    if (rc)
        return rc;
    fprintf(out, "%s %d %d", dec_dump_time(s->time, false, time, sizeof(time)), s->tid, s->cpu);
    for (uint64_t i = 0; i < sample.ncallchain; i++)
        if (sample.callchain[i] < PERF_CONTEXT_MAX)
            fprintf(out, " %" PRIx64, sample.callchain[i]);
    if (fputc('\n', out) == EOF)
        return st_fail_errno(err, ST_EFAIL, "cannot write the listing");
    return 0;
}

/* Those that calls are made of, and those that are marks; a switch is both. */
static int list(const struct dec_sideband *sb, listing *l)
{
    for (size_t i = 0; i < sb->samples.n; i++) {
        const struct dec_sample_record *s = &sb->samples.at[i];

        if (st_vec_push(l, (struct listed){s->time, s->tid, s->cpu, &s->record}))
            return -1;
    }
    for (size_t i = 0; i < sb->points.n; i++) {
        const struct dec_point *p = &sb->points.at[i];

        if (p->kind != DEC_POINT_SWITCH && p->record.event->attr.sample_type & PERF_SAMPLE_CALLCHAIN &&
            st_vec_push(l, (struct listed){p->time, p->tid, p->cpu, &p->record}))
            return -1;
    }
    if (l->n)
        qsort(l->at, l->n, sizeof(l->at[0]), by_time);
    return 0;
}

int dec_dump_samples(FILE *out, const struct dec_sideband *sb, struct st_error *err)
{
    listing l = {0};
    int rc = list(sb, &l) ? st_nomem(err, "the listing") : 0;

    for (size_t i = 0; i < l.n && !rc; i++)
        rc = print(out, &l.at[i], err);
    st_vec_free(&l);
    if (!rc && fflush(out))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write the listing");
    return rc;
}
