/* Context switches: when each thread was on which CPU, and who was on each CPU. */
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

/* The thread leaves its CPU. Where its coming was not seen, it ran since the recording began. */
static int went_out(struct sb_context *c, struct dec_thread *t, uint64_t time, int32_t cpu, bool preempted)
{
    uint64_t since = t->ran_since;

    if (!since && !t->slices.n && !t->off_since)
        since = t->start > c->sb->first ? t->start : c->sb->first;
    t->ran_since = 0;
    if (!t->off_since) {
        t->off_since = time;
        t->off_preempted = preempted;
    }
    if (!since || since > time)
        return 0;
    if (st_vec_push(&t->slices, (struct dec_slice){since, time, cpu}))
        return -1;
    return add_turn(c, t, since, time, cpu);
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
    c->sb->has_switches = true;
    return out ? went_out(c, thread, time, cpu, preempted) : came_in(thread, time, cpu);
}

static int end_thread(struct sb_context *c, struct dec_thread *t)
{
    uint64_t end = t->end < c->sb->last ? t->end : c->sb->last;

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
