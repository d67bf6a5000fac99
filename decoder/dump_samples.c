/* The listing of samples. */
#include "decoder/dump.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
    const struct dec_sample_record *x = *(const struct dec_sample_record *const *)a;
    const struct dec_sample_record *y = *(const struct dec_sample_record *const *)b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int print(FILE *out, const struct dec_sample_record *s, struct st_error *err)
{
    struct pd_sample sample;
    char time[32];
    int rc = pd_record_sample(&s->record, &sample, err);

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

int dec_dump_samples(FILE *out, const struct dec_sideband *sb, struct st_error *err)
{
    const struct dec_sample_record **order = calloc(sb->samples.n + 1, sizeof(*order));
    int rc = 0;

    if (!order)
        return st_nomem(err, "the listing");
    for (size_t i = 0; i < sb->samples.n; i++)
        order[i] = &sb->samples.at[i];
    if (sb->samples.n)
        qsort(order, sb->samples.n, sizeof(*order), by_time);
    for (size_t i = 0; i < sb->samples.n && !rc; i++)
        rc = print(out, order[i], err);
    free(order);
    if (!rc && fflush(out))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write the listing");
    return rc;
}
