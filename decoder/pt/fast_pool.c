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
};

struct fast_crew {
    struct fast *lead;

    struct fast *members[MOST]; /* the lead is none of them */

    pthread_t threads[MOST];

    unsigned n;

    const psb_list *psbs;

    struct group *groups;

    size_t ngroups;

    atomic_size_t next;

    atomic_bool stop;
};

struct task {
    struct fast_crew *crew;

    struct fast *member;
};

void fast_crew_free(struct fast_crew *crew)
{
    if (!crew)
        return;
    for (unsigned i = 0; i < crew->n; i++)
        fast_free(crew->members[i]);
    free(crew);
}

int fast_crew_new(struct fast_crew **crew, struct fast *lead, unsigned threads, struct st_error *err)
{
    struct fast_crew *made = calloc(1, sizeof(*made));
    if (!made)
        return st_nomem(err, "the threads of the fast walk");
    made->lead = lead;
    for (; made->n + 1 < threads && made->n < MOST; made->n++) {
        int rc = fast_new(&made->members[made->n], lead->graph, lead->w, err);
        if (rc) {
            fast_crew_free(made);
            return rc;
        }
    }
    *crew = made;
    return 0;
}

static const uint8_t *psb_at(const struct fast_crew *crew, size_t psb)
{
    const struct fast *lead = crew->lead;
    return psb < crew->psbs->n ? lead->begin + crew->psbs->at[psb] : lead->end;
}

static void walk_group(struct fast_crew *crew, struct fast *f, struct group *g)
{
    g->done = g->first;
    if (g == crew->groups) {
        f->s = g->from;
        f->p = g->from_p;
    } else if (!fast_begin(f, psb_at(crew, g->first))) {
        atomic_store(&crew->stop, true);
        return;
    }
    g->from = f->s;
    g->from_p = f->p;
    g->begun = true;
    for (; g->done < g->end && fast_step(f, psb_at(crew, g->done + 1)); g->done++)
        st_progress_add((uint64_t)(psb_at(crew, g->done + 1) - psb_at(crew, g->done)));
    g->to = f->s;
    g->to_p = f->p;
    if (g->done < g->end)
        atomic_store(&crew->stop, true);
}

static void *work(void *arg)
{
    struct task *task = arg;
    struct fast_crew *crew = task->crew;
    for (size_t i; !atomic_load(&crew->stop) && (i = atomic_fetch_add(&crew->next, 1)) < crew->ngroups;)
        walk_group(crew, task->member, &crew->groups[i]);
    return NULL;
}

static size_t group_size(const struct fast_crew *crew)
{
    size_t size = crew->lead->w->options->group;
    return size ? size : GROUP;
}

/* Cuts the stretches into groups. */
static int make_groups(struct fast_crew *crew, size_t first, size_t end)
{
    crew->ngroups = 0;
    crew->groups = calloc(end - first, sizeof(*crew->groups));
    if (!crew->groups)
        return -1;
    while (first < end) {
        struct group *g = &crew->groups[crew->ngroups++];
        g->first = first;
        do
            first++;
        while (first < end && crew->psbs->at[first] - crew->psbs->at[g->first] < group_size(crew));
        g->end = first;
    }
    return 0;
}

static bool same_base(const struct time_base *a, const struct time_base *b)
{
    return a->known == b->known && a->tsc == b->tsc && a->tied == b->tied && a->counts == b->counts &&
           (!a->counts || (a->ctc_tsc == b->ctc_tsc && a->ctc == b->ctc && a->last_mtc == b->last_mtc &&
                           a->sure == b->sure));
}

/* Whether a group began as the one before it ended. */
static bool joins(const struct group *before, const struct group *g)
{
    const struct fast_state *end = &before->to, *begin = &g->from;
    return g->begun && before->done == before->end && end->where.space == begin->where.space &&
           end->mode == begin->mode && !end->begin && same_base(&end->times.base, &begin->times.base) &&
           end->times.ratio == begin->times.ratio;
}

/* Walks a group once more, to take it back. */
static void undo(struct fast_crew *crew, const struct group *g)
{
    struct fast *lead = crew->lead;
    lead->s = g->from;
    lead->p = g->from_p;
    lead->delta = -lead->delta;
    for (size_t i = g->first; g->begun && i < g->done; i++)
        fast_step(lead, psb_at(crew, i + 1));
    lead->delta = -lead->delta;
}

static void run_all(struct fast_crew *crew)
{
    struct task tasks[MOST + 1];
    unsigned started = 0;
    atomic_store(&crew->next, 0);
    atomic_store(&crew->stop, false);
    for (unsigned i = 0; i < crew->n; i++) {
        struct fast *member = crew->members[i];
        member->begin = crew->lead->begin;
        member->end = crew->lead->end;
        member->ahead.headers.n = 0;
        tasks[i] = (struct task){crew, member};
        if (pthread_create(&crew->threads[i], NULL, work, &tasks[i]))
            break;
        started++;
    }
    tasks[MOST] = (struct task){crew, crew->lead};
    work(&tasks[MOST]);
    for (unsigned i = 0; i < started; i++)
        pthread_join(crew->threads[i], NULL);
}

void fast_crew_walk(struct fast_crew *crew, const psb_list *psbs, size_t *at, size_t end)
{
    crew->psbs = psbs;
    if (end <= *at + 1 || psbs->at[end - 1] - psbs->at[*at] < group_size(crew) || make_groups(crew, *at, end))
        return;
    struct group *groups = crew->groups;
    groups[0].from = crew->lead->s;
    groups[0].from_p = crew->lead->p;
    run_all(crew);
    size_t good = 1;
    while (good < crew->ngroups && joins(&groups[good - 1], &groups[good]))
        good++;
    for (size_t i = good; i < crew->ngroups; i++)
        undo(crew, &groups[i]);
    bool did = false;
    for (size_t i = 0; i < good; i++)
        did |= groups[i].to.did;
    crew->lead->s = groups[good - 1].to;
    crew->lead->s.did = did;
    crew->lead->p = groups[good - 1].to_p;
    *at = groups[good - 1].done;
    free(groups);
    crew->groups = NULL;
}

void fast_crew_count(struct fast_crew *crew, struct dec_flow_counts *counts)
{
    for (unsigned i = 0; i < crew->n; i++)
        fast_count(crew->members[i], counts);
}
