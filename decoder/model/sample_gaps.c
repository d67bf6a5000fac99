/* What is missing of the samples of a recording. */
#include "base/bisect.h"
#include "decoder/model/model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PERIODS = 3 /* between two samples of a thread that has a CPU */ };

bool model_samples_break(const struct dec_notice *n)
{
    return n->of_samples && (n->lost || !strcmp(n->name, "throttled"));
}

/* Whether older samples of the thread were overwritten. */
static bool overwritten(const struct dec_sideband *sb, const struct dec_thread *thread)
{
    for (size_t i = 0; i < sb->sample_rings.n; i++)
        if (sb->sample_rings.at[i].overwritten &&
            (sb->sample_rings.at[i].cpu >= 0 || sb->sample_rings.at[i].tid == thread->tid))
            return true;
    return false;
}

/* Whether the rings of CPUs, or one of its own, were there as it was born: a ring of its own comes a moment
 * later, when the recorder has heard of the thread. */
static bool had_ring(const struct dec_sideband *sb, const struct dec_thread *thread)
{
    for (size_t i = 0; i < sb->sample_rings.n; i++) {
        const struct dec_sample_ring *ring = &sb->sample_rings.at[i];

        if (ring->since <= thread->start && (ring->cpu >= 0 || ring->tid == thread->tid))
            return true;
    }
    return false;
}

/* Whether it was sampled from its birth on: before its first sample is less than a period, or a wait. */
bool model_from_birth(const struct dec_sideband *sb, const struct dec_thread *thread)
{
    return thread->start && thread->start <= thread->first_in && !overwritten(sb, thread) &&
           had_ring(sb, thread);
}

struct model_left_out model_left_out(const struct dec_model *m)
{
    const char *text = dec_sideband_meta(m->sb, "left_out");
    struct model_left_out l = {0};

    if (!text || sscanf(text, "since=%" SCNu64 " switches=%u wakes=%u rate=%u of=%u", &l.since, &l.switches,
                        &l.wakes, &l.rate, &l.of) != 5)
        return (struct model_left_out){.since = UINT64_MAX};
    return l;
}

static bool concerns(const struct dec_sideband *sb, const struct dec_notice *n,
                     const struct dec_thread *thread, const struct dec_chain *before,
                     const struct dec_chain *after)
{
    bool of_cpus = sb->sample_rings.n && sb->sample_rings.at[0].cpu >= 0;

    return n->tid == thread->tid || (of_cpus && (n->cpu == before->cpu || n->cpu == after->cpu));
}

const struct dec_notice *model_loss_between(const struct dec_model *m, const struct dec_thread *thread,
                                            const struct dec_chain *before, const struct dec_chain *after)
{
    const struct dec_sideband *sb = m->sb;
    size_t first = st_bisect(i, sb->notices.n, sb->notices.at[i].time <= before->time);

    for (size_t i = first; i < sb->notices.n; i++)
        if (sb->notices.at[i].time > after->time)
            break;
        else if (model_samples_break(&sb->notices.at[i]) &&
                 concerns(sb, &sb->notices.at[i], thread, before, after))
            return &sb->notices.at[i];
    return NULL;
}

uint64_t model_sample_period(const struct dec_model *m)
{
    const struct perf_event_attr *attr = m->sb->sampled;

    if (!attr)
        return 0;
    if (attr->freq)
        return attr->sample_freq ? 1000000000 / attr->sample_freq : 0;
    return attr->type == PERF_TYPE_SOFTWARE &&
                   (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK)
               ? attr->sample_period
               : 0;
}

/* ns between two samples of a thread that ran until `time`: the longest that the recorder may have chosen. */
static uint64_t period_until(uint64_t period, const struct model_left_out *left, uint64_t time)
{
    uint64_t longest = time >= left->since && left->rate ? 1000000000 / left->rate : 0;

    return period && longest > period ? longest : period;
}

/* Time that the thread had a CPU between two moments; *i is the first interval off it that ends behind the
 * first of them. */
static uint64_t had_cpu(const struct dec_thread *t, size_t *i, uint64_t from, uint64_t to)
{
    uint64_t time = to - from;

    while (*i < t->offcpu.n && t->offcpu.at[*i].end <= from)
        ++*i;
    for (size_t k = *i; k < t->offcpu.n && t->offcpu.at[k].start < to; k++) {
        const struct dec_offcpu *o = &t->offcpu.at[k];

        time -= (o->end < to ? o->end : to) - (o->start > from ? o->start : from);
    }
    return time;
}

/* Holes with one sample between them are one. */
static bool continues_hole(struct dec_model *m, const struct dec_gap_row *row)
{
    struct dec_gap_row *last = m->gaps.rows.n ? &m->gaps.rows.at[m->gaps.rows.n - 1] : NULL;

    if (!last || last->reason != row->reason || last->thread != row->thread || last->end != row->start)
        return false;
    last->end = row->end;
    return true;
}

int model_sample_holes(struct dec_model *m, struct dec_thread *thread, const struct dec_chain *chains,
                       size_t n)
{
    const struct model_left_out left = model_left_out(m);
    uint64_t period = model_sample_period(m);
    size_t at = 0;

    for (size_t i = 0; period && m->sb->has_switches && i + 1 < n; i++) {
        uint64_t from = chains[i].time, to = chains[i + 1].time;
        struct dec_gap_row row = {.thread = thread,
                                  .cpu = -1,
                                  .ring = DEC_NO_RING,
                                  .start = from,
                                  .end = to,
                                  .reason = dec_gap_name(DEC_GAP_NOT_SAMPLED)};

        if (had_cpu(thread, &at, from, to) <= MOST_PERIODS * period_until(period, &left, to) ||
            model_loss_between(m, thread, &chains[i], &chains[i + 1]))
            continue;
        if (continues_hole(m, &row))
            continue;
        if (dec_gap_add(&m->gaps, &row,
                        "the thread had a CPU: the machine stood still, or interrupts were off"))
            return -1;
    }
    return 0;
}

static int before_samples(struct dec_model *m, const struct model_thread *t)
{
    bool over = overwritten(m->sb, t->thread);
    struct dec_gap_row row = {
        .thread = t->thread, .cpu = -1, .ring = DEC_NO_RING, .start = t->thread->start, .end = t->first};

    if (row.end <= row.start || (!over && model_from_birth(m->sb, t->thread)))
        return 0;
    row.reason = dec_gap_name(over ? DEC_GAP_OVERWRITTEN : DEC_GAP_NOT_ATTACHED);
    return dec_gap_add(&m->gaps, &row,
                       over ? "older samples were overwritten in the ring"
                            : "the thread ran before its recording began");
}

/* Samples were lost from the last one that is there until the kernel had room again. */
static uint64_t last_before(const struct dec_model *m, const struct dec_notice *n, bool same_thread)
{
    uint64_t last = 0;

    for (size_t i = 0; i < m->sb->samples.n; i++) {
        const struct dec_sample_record *s = &m->sb->samples.at[i];

        if (s->time <= n->time && s->time > last && (same_thread ? s->tid == n->tid : s->cpu == n->cpu))
            last = s->time;
    }
    return last ? last : n->time;
}

static uint64_t unthrottled(const struct dec_model *m, size_t i)
{
    const struct dec_notice *from = &m->sb->notices.at[i];

    for (; i < m->sb->notices.n; i++) {
        const struct dec_notice *n = &m->sb->notices.at[i];

        if (n->of_samples && n->tid == from->tid && !strcmp(n->name, "unthrottled"))
            return n->time;
    }
    return m->sb->last;
}

/* What the recorder left out of its samples is missing everywhere from then on. */
static int left_out(struct dec_model *m)
{
    const struct model_left_out l = model_left_out(m);
    struct dec_gap_row row = {.cpu = -1,
                              .ring = DEC_NO_RING,
                              .start = l.since,
                              .end = m->sb->last,
                              .reason = dec_gap_name(DEC_GAP_LEFT_OUT)};
    char switches[80] = "", wakes[80] = "", rate[80] = "", text[256];

    if (l.since > m->sb->last)
        return 0;
    if (l.switches > 1)
        snprintf(switches, sizeof(switches), ", down to one in %u context switches of a thread", l.switches);
    if (l.wakes > 1)
        snprintf(wakes, sizeof(wakes), ", down to one in %u wake-ups", l.wakes);
    if (l.rate < l.of)
        snprintf(rate, sizeof(rate), ", %u samples a second instead of %u where threads switch often", l.rate,
                 l.of);
    snprintf(text, sizeof(text), "sampled less often, so that it cost the target no more than it may: %s%s%s",
             *switches ? switches + 2
             : *wakes  ? wakes + 2
             : *rate   ? rate + 2
                       : "",
             *switches ? wakes : "", *switches || *wakes ? rate : "");
    return dec_gap_add(&m->gaps, &row, text);
}

int model_gaps_of_samples(struct dec_model *m)
{
    bool of_cpus = m->sb->sample_rings.n && m->sb->sample_rings.at[0].cpu >= 0;

    if (left_out(m))
        return -1;

    for (size_t i = 0; i < m->nthreads; i++)
        if (m->threads[i] && m->threads[i]->sampled && before_samples(m, m->threads[i]))
            return -1;
    for (size_t i = 0; i < m->sb->notices.n; i++) {
        const struct dec_notice *n = &m->sb->notices.at[i];
        struct dec_gap_row row = {.cpu = of_cpus ? n->cpu : -1, .ring = DEC_NO_RING, .reason = n->name};

        if (!model_samples_break(n))
            continue;
        row.start = n->lost ? last_before(m, n, !of_cpus) : n->time;
        row.end = n->lost ? n->time : unthrottled(m, i);
        if (!of_cpus)
            row.thread = n->tid > 0 ? dec_sideband_thread(m->sb, n->tid, n->cpu, n->time) : NULL;
        if (dec_gap_add(&m->gaps, &row,
                        n->lost ? n->detail : "the kernel held the samples back: too many in a tick"))
            return -1;
    }
    return 0;
}
