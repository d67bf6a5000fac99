/* Gaps where the kernel dropped samples or held them back. */
#include "decoder/model_impl.h"

#include <stdlib.h>
#include <string.h>

/* Something of a thread or a CPU, at a time or, of notices, a place among them. */
struct moment {
    int32_t of;

    uint64_t at;
};

typedef ST_VEC(struct moment) moment_list; /* sorted */

struct losses {
    const struct dec_sideband *sb;

    bool of_cpus; /* rings are of CPUs: their losses are */

    moment_list samples, unthrottled;
};

static int by_owner(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sort(moment_list *list)
{
    if (list->n)
        qsort(list->at, list->n, sizeof(list->at[0]), by_owner);
}

/* The first that is not before `at`, of the same or a later owner. */
static size_t first_from(const moment_list *list, int32_t of, uint64_t at)
{
    const struct moment wanted = {of, at};
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (by_owner(&list->at[mid], &wanted) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int find_samples(struct losses *l)
{
    for (size_t i = 0; i < l->sb->samples.n; i++) {
        const struct dec_sample_record *s = &l->sb->samples.at[i];

        if (st_vec_push(&l->samples, (struct moment){l->of_cpus ? s->cpu : s->tid, s->time}))
            return -1;
    }
    sort(&l->samples);
    return 0;
}

static int find_unthrottled(struct losses *l)
{
    for (size_t i = 0; i < l->sb->notices.n; i++) {
        const struct dec_notice *n = &l->sb->notices.at[i];

        if (n->of_samples && !strcmp(n->name, "unthrottled") &&
            st_vec_push(&l->unthrottled, (struct moment){n->tid, i}))
            return -1;
    }
    sort(&l->unthrottled);
    return 0;
}

/* Samples were lost from the last one that is there until the kernel had room again. */
static uint64_t last_before(const struct losses *l, const struct dec_notice *n)
{
    int32_t of = l->of_cpus ? n->cpu : n->tid;
    size_t i = first_from(&l->samples, of, n->time + 1);

    return i && l->samples.at[i - 1].of == of ? l->samples.at[i - 1].at : n->time;
}

static uint64_t unthrottled(const struct losses *l, size_t notice)
{
    int32_t of = l->sb->notices.at[notice].tid;
    size_t i = first_from(&l->unthrottled, of, notice);

    return i < l->unthrottled.n && l->unthrottled.at[i].of == of
               ? l->sb->notices.at[l->unthrottled.at[i].at].time
               : l->sb->last;
}

static int add_gap(struct dec_model *m, const struct losses *l, size_t i)
{
    const struct dec_notice *n = &l->sb->notices.at[i];
    struct dec_gap_row row = {.cpu = l->of_cpus ? n->cpu : -1, .ring = DEC_NO_RING, .reason = n->name};

    row.start = n->lost ? last_before(l, n) : n->time;
    row.end = n->lost ? n->time : unthrottled(l, i);
    if (!l->of_cpus)
        row.thread = n->tid > 0 ? dec_sideband_thread(l->sb, n->tid, n->cpu, n->time) : NULL;
    return dec_gap_add(&m->gaps, &row,
                       n->lost ? n->detail : "the kernel held the samples back: too many in a tick");
}

int model_gaps_of_losses(struct dec_model *m)
{
    const struct dec_sideband *sb = m->sb;
    struct losses l = {.sb = sb, .of_cpus = sb->sample_rings.n && sb->sample_rings.at[0].cpu >= 0};
    int rc = find_samples(&l) || find_unthrottled(&l) ? -1 : 0;

    for (size_t i = 0; i < sb->notices.n && !rc; i++)
        if (model_breaks(&sb->notices.at[i]))
            rc = add_gap(m, &l, i);
    st_vec_free(&l.samples);
    st_vec_free(&l.unthrottled);
    return rc;
}
