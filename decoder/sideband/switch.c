/* Context switches: when each thread was on which CPU, and who was on each CPU. */
#include "base/bisect.h"
#include "decoder/sideband/sideband_impl.h"

#include <stdlib.h>

static struct dec_cpu *find_cpu(struct dec_sideband *sb, int32_t cpu)
{
    for (size_t i = 0; i < sb->cpus.n; i++)
        if (sb->cpus.at[i].cpu == cpu)
            return &sb->cpus.at[i];
    if (st_vec_push(&sb->cpus, (struct dec_cpu){.cpu = cpu}))
        return NULL;
    return &sb->cpus.at[sb->cpus.n - 1];
}

static int add_turn(struct sb_context *c, struct dec_thread *thread, uint64_t start, uint64_t end,
                    int32_t cpu)
{
    struct dec_cpu *on = find_cpu(c->sb, cpu);

    return on ? st_vec_push(&on->turns, (struct dec_turn){.start = start, .end = end, .thread = thread}) : -1;
}

/* ------------------------------------------------------------------ */
/* Losses                                                               */

/* Of the holes from the `number`th on, the one that began first; NULL: there are none. `list` has those that
 * none after them began before. */
static const struct dec_hole *first_from(const struct dec_hole *list, size_t n, size_t number)
{
    size_t first = st_bisect(i, n, list[i].number < number);

    return first < n ? &list[first] : NULL;
}

int sb_lost_switches(struct sb_context *c, uint64_t time, int32_t cpu, uint64_t *since)
{
    struct dec_cpu *on = find_cpu(c->sb, cpu);
    struct dec_hole hole = {.number = c->holes, .until = time};

    if (!on)
        return -1;
    *since = hole.since = on->last_switch ? on->last_switch : c->sb->first;
    on->last_switch = time;
    c->holes++;
    while (c->earliest.n && c->earliest.at[c->earliest.n - 1].since >= hole.since)
        c->earliest.n--;
    return st_vec_push(&c->earliest, hole) || st_vec_push(&on->holes, hole) ? -1 : 0;
}

/* A wait that was seen to end before the loss was known may have been two. */
static void cut_waits(struct dec_thread *t, uint64_t since)
{
    while (t->offcpu.n && t->offcpu.at[t->offcpu.n - 1].end > since) {
        struct dec_offcpu *last = &t->offcpu.at[t->offcpu.n - 1];

        last->end = since;
        if (last->start < since)
            return;
        t->offcpu.n--;
    }
}

/* Where the thread was up to the losses since its last record is known, and no longer. */
static int end_before_holes(struct sb_context *c, struct dec_thread *t)
{
    const struct dec_hole *first = first_from(c->earliest.at, c->earliest.n, t->holes_seen), *own = NULL;
    const struct dec_cpu *on = t->ran_since ? find_cpu(c->sb, t->ran_cpu) : NULL;
    int rc = 0;

    if (on)
        own = first_from(on->holes.at, on->holes.n, t->holes_seen);
    t->holes_seen = c->holes;
    if (!first)
        return 0;
    cut_waits(t, first->since);
    if (t->off_since && t->off_since < first->since)
        rc = st_vec_push(&t->offcpu, (struct dec_offcpu){t->off_since, first->since, t->off_preempted, 0});
    t->off_since = 0;
    if (rc || !own)
        return rc;
    if (t->ran_since < own->since &&
        (st_vec_push(&t->slices, (struct dec_slice){t->ran_since, own->since, t->ran_cpu}) ||
         add_turn(c, t, t->ran_since, own->since, t->ran_cpu)))
        return -1;
    t->ran_since = 0;
    return 0;
}

/* ------------------------------------------------------------------ */

/* Since when a thread has had its CPU that was not seen to come onto it: since the last loss there, or else
 * since the recording began. 0: not known. */
static uint64_t came_unseen(const struct sb_context *c, const struct dec_thread *t, const struct dec_cpu *cpu)
{
    if (t->off_since)
        return 0;
    if (cpu->holes.n)
        return cpu->holes.at[cpu->holes.n - 1].until;
    if (t->slices.n)
        return 0;
    return t->start > c->sb->first ? t->start : c->sb->first;
}

static int went_out(struct sb_context *c, struct dec_thread *t, uint64_t time, const struct dec_cpu *cpu,
                    bool preempted)
{
    uint64_t since = t->ran_since ? t->ran_since : came_unseen(c, t, cpu);

    t->ran_since = 0;
    if (!t->off_since) {
        t->off_since = time;
        t->off_preempted = preempted;
    }
    if (!since || since > time)
        return 0;
    if (st_vec_push(&t->slices, (struct dec_slice){since, time, cpu->cpu}))
        return -1;
    return add_turn(c, t, since, time, cpu->cpu);
}

static int came_in(struct dec_thread *t, uint64_t time, int32_t cpu)
{
    uint64_t since = t->off_since;

    if (!t->first_in)
        t->first_in = time;
    t->ran_since = time;
    t->ran_cpu = cpu;
    t->off_since = 0;
    if (!since || since >= time)
        return 0;
    return st_vec_push(&t->offcpu, (struct dec_offcpu){since, time, t->off_preempted, 0});
}

int sb_switch(struct sb_context *c, struct dec_thread *thread, uint64_t time, int32_t cpu, bool out,
              bool preempted)
{
    struct dec_cpu *on = find_cpu(c->sb, cpu);
    int rc = on ? end_before_holes(c, thread) : -1;

    c->sb->has_switches = true;
    if (!rc)
        rc = out ? went_out(c, thread, time, on, preempted) : came_in(thread, time, cpu);
    if (!rc)
        on->last_switch = time;
    return rc;
}

static int end_thread(struct sb_context *c, struct dec_thread *t)
{
    uint64_t end = t->end < c->sb->last ? t->end : c->sb->last;

    if (end_before_holes(c, t))
        return -1;
    if (t->ran_since && t->ran_since < end &&
        (st_vec_push(&t->slices, (struct dec_slice){t->ran_since, end, t->ran_cpu}) ||
         add_turn(c, t, t->ran_since, end, t->ran_cpu)))
        return -1;
    if (t->off_since && t->off_since < end)
        return st_vec_push(&t->offcpu, (struct dec_offcpu){t->off_since, end, t->off_preempted, 0});
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct dec_turn *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void sort_turns(struct dec_cpu *cpu)
{
    uint64_t reach = 0;

    if (cpu->turns.n)
        qsort(cpu->turns.at, cpu->turns.n, sizeof(struct dec_turn), by_start);
    for (size_t i = 0; i < cpu->turns.n; i++) {
        if (cpu->turns.at[i].end > reach)
            reach = cpu->turns.at[i].end;
        cpu->turns.at[i].reach = reach;
    }
}

/* After the threads' slices were changed. */
static int make_turns_again(struct sb_context *c)
{
    for (size_t i = 0; i < c->sb->cpus.n; i++)
        c->sb->cpus.at[i].turns.n = 0;
    for (size_t i = 0; i < c->sb->threads.n; i++) {
        struct dec_thread *t = c->sb->threads.at[i];

        for (size_t k = 0; k < t->slices.n; k++)
            if (add_turn(c, t, t->slices.at[k].start, t->slices.at[k].end, t->slices.at[k].cpu))
                return -1;
    }
    return 0;
}

int sb_end_switches(struct sb_context *c)
{
    bool changed;

    for (size_t i = 0; i < c->sb->threads.n; i++)
        if (end_thread(c, c->sb->threads.at[i]))
            return -1;
    if (sb_add_measured_waits(c, &changed) || (changed && make_turns_again(c)))
        return -1;
    for (size_t i = 0; i < c->sb->cpus.n; i++)
        sort_turns(&c->sb->cpus.at[i]);
    return 0;
}
