/* What a snapshot says of that which is open. */
#include "recorder/snapshot/facts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 16 /* more than any source has */ };

static int take_ids(struct rec_fact_event *event, const uint64_t *ids, size_t n)
{
    if (st_vec_reserve(&event->ids, n + 1))
        return -1;
    if (n)
        memcpy(event->ids.at, ids, n * sizeof(*ids));
    event->ids.n = n;
    return 0;
}

static int add_event(struct rec_facts *f, const struct rec_record_event *from)
{
    struct rec_fact_event event = {.attr = from->attr, .name = from->name};

    if (!take_ids(&event, from->ids, from->nids) && !st_vec_push(&f->recorded, event))
        return 0;
    st_vec_free(&event.ids);
    return -1;
}

static int take_recorded(struct rec_facts *f, const struct rec_source_ops *ops, struct rec_source *source)
{
    struct rec_record_event event = {0};
    int rc = 0;

    if (!ops->records) {
        ops->trace_event(source, &event.attr, &event.name, f->priv, PD_PT_PRIV_MAX);
        return add_event(f, &event);
    }
    for (size_t i = 0; !rc && i < MOST_EVENTS && ops->record_event(source, i, &event); i++)
        rc = add_event(f, &event);
    return rc || !f->recorded.n ? -1 : 0;
}

static int take_group(struct rec_fact_event *event, const struct rec_group *group)
{
    event->attr = group->attr;
    if (st_vec_reserve(&event->ids, group->events.n + group->past.n + 1))
        return -1;
    for (size_t i = 0; i < group->past.n; i++)
        event->ids.at[event->ids.n++] = group->past.at[i];
    for (size_t i = 0; i < group->events.n; i++)
        event->ids.at[event->ids.n++] = group->events.at[i].id;
    return 0;
}

static int take_gone(struct rec_facts *f, const struct rec_ring_total *total)
{
    f->ring_total = total->most;
    if (st_vec_reserve(&f->gone, total->gone.n + 1))
        return -1;
    if (total->gone.n)
        memcpy(f->gone.at, total->gone.at, total->gone.n * sizeof(f->gone.at[0]));
    f->gone.n = total->gone.n;
    return 0;
}

static int take_all(struct rec_facts *f, const struct rec_source_ops *ops, struct rec_source *source,
                    const struct rec_sideband *sideband, const struct rec_group *stalls)
{
    int rc = take_recorded(f, ops, source);

    for (int i = 0; !rc && i < REC_SIDEBAND_GROUPS; i++)
        rc = take_group(&f->group[i], rec_sideband_group(sideband, (enum rec_sideband_group)i));
    if (!rc && stalls)
        rc = take_group(&f->stalls, stalls);
    if (!rc && ops->ring_total)
        rc = take_gone(f, ops->ring_total(source));
    if (!rc && ops->filter)
        rc = ops->filter(source, &f->filter);
    return rc;
}

int rec_facts_take(struct rec_facts *facts, const struct rec_source_ops *ops, struct rec_source *source,
                   const struct rec_sideband *sideband, const struct rec_store *store,
                   const struct rec_group *stalls, const struct st_target *target, struct st_error *err)
{
    *facts = (struct rec_facts){
        .source = ops->name, .records = ops->records, .all = target->kind == ST_TARGET_ALL};
    if (take_all(facts, ops, source, sideband, stalls) || rec_store_view(store, &facts->sideband)) {
        rec_facts_free(facts);
        return st_nomem(err, "what a snapshot is made of");
    }
    if (ops->unseen_cpus)
        ops->unseen_cpus(source, facts->unseen_cpus, sizeof(facts->unseen_cpus));
    if (ops->unmarked_cpus)
        ops->unmarked_cpus(source, facts->unmarked_cpus, sizeof(facts->unmarked_cpus));
    if (ops->left_out)
        ops->left_out(source, facts->left_out, sizeof(facts->left_out));
    return 0;
}

void rec_facts_free(struct rec_facts *facts)
{
    for (size_t i = 0; i < facts->recorded.n; i++)
        st_vec_free(&facts->recorded.at[i].ids);
    st_vec_free(&facts->recorded);
    for (int i = 0; i < REC_SIDEBAND_GROUPS; i++)
        st_vec_free(&facts->group[i].ids);
    st_vec_free(&facts->stalls.ids);
    st_vec_free(&facts->gone);
    rec_filter_free(&facts->filter);
    rec_view_free(&facts->sideband);
}
