/* Stretches counted by several threads at once, each group of them from its PSB on.
 *
 * What a PSB+ does not tell is guessed: whose code runs there is asked by its time, and the return stack is
 * empty. Where the group before ended otherwise, or one cannot be walked to its end, everything from there on
 * is taken back. */
#include "base/progress.h"
#include "decoder/pt/fast.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    GROUP = 1 << 18, /* bytes of trace, if not said otherwise */
    MOST = 64,       /* threads */
};

struct group {
    size_t first, end; /* PSBs */

    size_t done; /* the first that was not walked */

    bool begun;

    struct fast_state from, to;

    const uint8_t *from_p, *to_p;

    const struct fast *by;

    size_t gaps, gaps_end; /* of its stretches, in the list of that walk */
};

struct fast_pool {
    struct fast *owner;

    struct fast *workers[MOST]; /* the owner is none of them */

    pthread_t threads[MOST];

    unsigned n;

    const psb_list *psbs;

    struct group *groups;

    size_t ngroups;

    uint8_t modes; /* that packets told of before the groups, as walk.modes */

    atomic_size_t next;

    atomic_bool stop;
};

struct task {
    struct fast_pool *pool;

    struct fast *worker;
};

void fast_pool_free(struct fast_pool *pool)
{
    if (!pool)
        return;
    for (unsigned i = 0; i < pool->n; i++)
        fast_free(pool->workers[i]);
    free(pool);
}

int fast_pool_new(struct fast_pool **pool, struct fast *owner, unsigned threads, struct st_error *err)
{
    struct fast_pool *made = calloc(1, sizeof(*made));
    if (!made)
        return st_nomem(err, "the threads of the fast walk");
    made->owner = owner;
    for (; made->n + 1 < threads && made->n < MOST; made->n++) {
        int rc = fast_new(&made->workers[made->n], owner->graph, owner->w, err);
        if (rc) {
            fast_pool_free(made);
            return rc;
        }
    }
    *pool = made;
    return 0;
}

static const uint8_t *psb_at(const struct fast_pool *pool, size_t psb)
{
    const struct fast *owner = pool->owner;
    return psb < pool->psbs->n ? owner->begin + pool->psbs->at[psb] : owner->end;
}

static void walk_group(struct fast_pool *pool, struct fast *f, struct group *g)
{
    g->done = g->first;
    g->by = f;
    g->gaps = g->gaps_end = f->gaps.n;
    if (g == pool->groups) {
        f->s = g->from;
        f->p = g->from_p;
    } else if (!fast_begin(f, psb_at(pool, g->first))) {
        atomic_store(&pool->stop, true);
        return;
    }
    f->s.modes |= pool->modes;
    g->from = f->s;
    g->from_p = f->p;
    g->begun = true;
    for (; g->done < g->end && fast_step(f, psb_at(pool, g->done + 1)); g->done++)
        st_progress_add((uint64_t)(psb_at(pool, g->done + 1) - psb_at(pool, g->done)));
    g->to = f->s;
    g->to_p = f->p;
    g->gaps_end = f->gaps.n;
    if (g->done < g->end)
        atomic_store(&pool->stop, true);
}

static void *work(void *arg)
{
    struct task *task = arg;
    struct fast_pool *pool = task->pool;
    for (size_t i; !atomic_load(&pool->stop) && (i = atomic_fetch_add(&pool->next, 1)) < pool->ngroups;)
        walk_group(pool, task->worker, &pool->groups[i]);
    return NULL;
}

static size_t group_size(const struct fast_pool *pool)
{
    size_t size = pool->owner->w->options->group;
    return size ? size : GROUP;
}

/* Cuts the stretches into groups. */
static int make_groups(struct fast_pool *pool, size_t first, size_t end)
{
    pool->ngroups = 0;
    pool->groups = calloc(end - first, sizeof(*pool->groups));
    if (!pool->groups)
        return -1;
    while (first < end) {
        struct group *g = &pool->groups[pool->ngroups++];
        g->first = first;
        do
            first++;
        while (first < end && pool->psbs->at[first] - pool->psbs->at[g->first] < group_size(pool));
        g->end = first;
    }
    return 0;
}

static bool same_base(const struct time_base *a, const struct time_base *b)
{
    return a->known == b->known && a->tsc == b->tsc && a->tied == b->tied && a->counts == b->counts &&
           (!a->counts || (a->ctc_tsc == b->ctc_tsc && a->ctc == b->ctc && a->last_mtc == b->last_mtc &&
                           a->mtc_known_mask == b->mtc_known_mask));
}

/* Whether a group knew of the modes told before it, where there was more than one in all: it may have met an
 * overflow. */
static bool knew_modes(const struct group *g, uint8_t before)
{
    unsigned all = before | g->to.modes;
    return !(all & (all - 1)) || !(before & ~g->from.modes);
}

/* Whether a group began as the one before it ended; `modes`: that were told up to there. */
static bool joins(const struct group *before, uint8_t modes, const struct group *g)
{
    const struct fast_state *end = &before->to, *begin = &g->from;
    return g->begun && before->done == before->end && end->where.space == begin->where.space &&
           end->mode == begin->mode && !end->begin && !end->lost &&
           same_base(&end->times.base, &begin->times.base) && end->times.ratio == begin->times.ratio &&
           knew_modes(g, modes);
}

/* Walks a group once more, to take it back. */
static void undo(struct fast_pool *pool, const struct group *g)
{
    struct fast *owner = pool->owner;
    owner->s = g->from;
    owner->p = g->from_p;
    owner->delta = -owner->delta;
    for (size_t i = g->first; g->begun && i < g->done; i++)
        fast_step(owner, psb_at(pool, i + 1));
    owner->delta = -owner->delta;
}

static void run_all(struct fast_pool *pool)
{
    struct task tasks[MOST + 1];
    unsigned started = 0;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->stop, false);
    for (unsigned i = 0; i < pool->n; i++) {
        struct fast *worker = pool->workers[i];
        worker->begin = pool->owner->begin;
        worker->end = pool->owner->end;
        worker->ahead.headers.n = 0;
        worker->gaps.n = 0;
        tasks[i] = (struct task){pool, worker};
        if (pthread_create(&pool->threads[i], NULL, work, &tasks[i]))
            break;
        started++;
    }
    tasks[MOST] = (struct task){pool, pool->owner};
    work(&tasks[MOST]);
    for (unsigned i = 0; i < started; i++)
        pthread_join(pool->threads[i], NULL);
}

void fast_pool_walk(struct fast_pool *pool, const psb_list *psbs, size_t *at, size_t end)
{
    pool->psbs = psbs;
    if (end <= *at + 1 || psbs->at[end - 1] - psbs->at[*at] < group_size(pool) || make_groups(pool, *at, end))
        return;
    struct group *groups = pool->groups;
    pool->modes = pool->owner->s.modes;
    groups[0].from = pool->owner->s;
    groups[0].from_p = pool->owner->p;
    run_all(pool);
    size_t good = 1;
    uint8_t modes = groups[0].to.modes;
    while (good < pool->ngroups && joins(&groups[good - 1], modes, &groups[good]))
        modes |= groups[good++].to.modes;
    for (size_t i = good; i < pool->ngroups; i++)
        undo(pool, &groups[i]);
    for (size_t i = 0; i < good; i++) {
        const struct group *g = &groups[i];
        fast_count_gaps(g->by, g->gaps, g->gaps_end);
        pool->owner->w->out->idle &= !g->to.did;
    }
    pool->owner->gaps.n = 0;
    pool->owner->s = groups[good - 1].to;
    pool->owner->s.modes = modes;
    pool->owner->p = groups[good - 1].to_p;
    *at = groups[good - 1].done;
    free(groups);
    pool->groups = NULL;
}

void fast_pool_count(struct fast_pool *pool, struct dec_flow_counts *counts)
{
    for (unsigned i = 0; i < pool->n; i++)
        fast_count(pool->workers[i], counts);
}
