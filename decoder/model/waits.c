/* The stacks that offcpu triggers took of waits: where a thread waited, also where no sample was taken as it
 * left its CPU. */
#include "base/bisect.h"
#include "decoder/model/model_impl.h"

#include <stdlib.h>

static int by_thread_and_start(const void *a, const void *b)
{
    const struct model_wait *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static struct model_wait wait_of(const struct dec_stall_sample *s)
{
    const struct st_stall_record *r = &s->record;
    struct model_wait wait = {
        .start = s->time - r->now_ktime + r->start_ktime, .tid = (int32_t)r->tid, .cpu = (int32_t)r->cpu};

    if (r->kstack_n)
        wait.kernel = r;
    if (r->ustack_n && !(r->flags & ST_STALL_STACK_LATE))
        wait.user = r;
    return wait;
}

/* A stall that is told of as it goes on, and again when it ends, is one wait: the latter knows more of the
 * user's code. */
static void join(struct model_wait *wait, const struct model_wait *again)
{
    if (!wait->kernel)
        wait->kernel = again->kernel;
    if (again->user && (!wait->user || again->user->ustack_n > wait->user->ustack_n))
        wait->user = again->user;
}

int model_waits_gather(const struct dec_sideband *sb, model_waits *waits)
{
    size_t kept = 0;

    for (size_t i = 0; i < sb->stalls.n; i++)
        if (sb->stalls.at[i].record.kind == ST_STALL_OFFCPU && st_vec_push(waits, wait_of(&sb->stalls.at[i])))
            return -1;
    if (waits->n)
        qsort(waits->at, waits->n, sizeof(waits->at[0]), by_thread_and_start);
    for (size_t i = 0; i < waits->n; i++)
        if (kept && !by_thread_and_start(&waits->at[kept - 1], &waits->at[i]))
            join(&waits->at[kept - 1], &waits->at[i]);
        else
            waits->at[kept++] = waits->at[i];
    waits->n = kept;
    return 0;
}

size_t model_waits_find(const model_waits *waits, int32_t tid, uint64_t from)
{
    const struct model_wait key = {.tid = tid, .start = from};

    return st_bisect(i, waits->n, by_thread_and_start(&waits->at[i], &key) < 0);
}
