/* The list of gaps: which threads a loss concerns, what is missing before their first branch, and the times
 * in which nothing was recorded because an earlier snapshot was being taken. */
#include "base/bisect.h"
#include "decoder/model/gap.h"
#include "decoder/model/model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_gap_event(struct dec_model *m, uint32_t ring, struct dec_thread *thread, const struct dec_event *e,
                    const char *detail)
{
    struct dec_gap_row row = {.thread = thread,
                              .cpu = m->sb->rings.at[ring].cpu,
                              .ring = ring,
                              .start = e->time,
                              .end = e->time,
                              .reason = dec_gap_name((enum dec_gap)e->arg),
                              .open = true,
                              .first = m->rings[ring].first == UINT64_MAX};

    if (row.first && e->arg == DEC_GAP_OVERWRITTEN)
        m->rings[ring].overwritten = true;
    if (row.cpu < 0)
        row.cpu = e->cpu;
    return dec_gap_add(&m->rings[ring].gaps, &row, detail);
}

/* Takes what a gap hides of a thread that ran on its CPU meanwhile. */
typedef int hidden_fn(struct dec_model *m, const struct dec_gap_row *gap, struct model_thread *t,
                      const struct dec_slice *slice);

static uint64_t hidden_start(const struct dec_gap_row *gap, const struct dec_slice *slice)
{
    return slice->start > gap->start ? slice->start : gap->start;
}

/* The thread's stack ends there too. */
static int end_stack(struct dec_model *m, const struct dec_gap_row *gap, struct model_thread *t,
                     const struct dec_slice *slice)
{
    return model_keep_gap(m, gap->ring, t, hidden_start(gap, slice), gap->cpu);
}

static int add_row(struct dec_model *m, const struct dec_gap_row *gap, struct model_thread *t,
                   const struct dec_slice *slice)
{
    struct dec_gap_row row = *gap;
    const char *detail = gap->detail;

    row.thread = t->thread;
    row.start = hidden_start(gap, slice);
    row.end = slice->end < gap->end ? slice->end : gap->end;
    return dec_gap_add(&m->gaps, &row, detail) ? st_nomem(&m->error, "the trace's gaps") : 0;
}

/* Turns of one CPU, in the order of their threads. */
typedef ST_VEC(struct dec_turn) turn_list;

static int by_thread(const void *a, const void *b)
{
    const struct dec_turn *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread->index < y->thread->index ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static size_t first_from(const struct dec_cpu *cpu, uint64_t time)
{
    return st_bisect(i, cpu->turns.n, cpu->turns.at[i].start < time);
}

/* What of the CPU's turns overlaps the gap, the thread's own apart. */
static int find_hidden(const struct dec_model *m, const struct dec_gap_row *gap, turn_list *found)
{
    const struct dec_cpu *cpu = NULL;

    for (size_t i = 0; i < m->sb->cpus.n && !cpu; i++)
        if (m->sb->cpus.at[i].cpu == gap->cpu)
            cpu = &m->sb->cpus.at[i];
    for (size_t i = cpu ? first_from(cpu, gap->end) : 0; i-- > 0 && cpu->turns.at[i].reach > gap->start;) {
        const struct dec_turn *turn = &cpu->turns.at[i];

        if (turn->end > gap->start && turn->thread != gap->thread && st_vec_push(found, *turn))
            return -1;
    }
    if (found->n)
        qsort(found->at, found->n, sizeof(*found->at), by_thread);
    return 0;
}

static int hide_others(struct dec_model *m, const struct dec_gap_row *gap, hidden_fn *hidden)
{
    turn_list found = {0};
    int rc = 0;

    if (gap->ring == DEC_NO_RING || m->sb->rings.at[gap->ring].cpu < 0 || gap->first ||
        gap->end <= gap->start)
        return 0;
    if (find_hidden(m, gap, &found))
        rc = st_nomem(&m->error, "the trace's gaps");
    for (size_t i = 0; i < found.n && !rc; i++) {
        const struct dec_turn *turn = &found.at[i];
        const struct dec_slice slice = {.start = turn->start, .end = turn->end, .cpu = gap->cpu};
        size_t index = turn->thread->index;
        struct model_thread *t = index < m->nthreads ? m->threads[index] : NULL;

        if (t)
            rc = hidden(m, gap, t, &slice);
    }
    st_vec_free(&found);
    return rc;
}

int model_gap_closes(struct dec_model *m, uint32_t ring, uint64_t time)
{
    struct dec_gaps *gaps = &m->rings[ring].gaps;
    size_t open = gaps->rows.n;
    int rc = 0;

    while (open > 0 && gaps->rows.at[open - 1].open)
        open--;
    dec_gap_close(gaps, time);
    for (open = model_is_alone(m) ? open : gaps->rows.n; open < gaps->rows.n && !rc; open++)
        rc = hide_others(m, &gaps->rows.at[open], end_stack);
    return rc;
}

int model_gaps_of_cpus(struct dec_model *m)
{
    size_t n = m->gaps.rows.n;
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++) {
        struct dec_gap_row gap = m->gaps.rows.at[i];

        if (!model_is_alone(m)) /* all threads are known only now */
            rc = hide_others(m, &gap, end_stack);
        if (!rc)
            rc = hide_others(m, &gap, add_row);
    }
    return rc;
}

/* What is known of a ring, by the thread or the CPU that it is of. */
struct about_ring {
    int32_t of;

    size_t order;

    uint64_t time;
};

typedef ST_VEC(struct about_ring) ring_list;

static int by_owner(const void *a, const void *b)
{
    const struct about_ring *x = a, *y = b;

    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int add_ring(ring_list *list, int32_t of, uint64_t time)
{
    return st_vec_push(list, (struct about_ring){of, list->n, time});
}

static void sort_rings(ring_list *list)
{
    if (list->n)
        qsort(list->at, list->n, sizeof(list->at[0]), by_owner);
}

/* The first ring of a thread or CPU; the others follow it. list->n: it has none. */
static size_t find_ring(const ring_list *list, int32_t of)
{
    size_t first = st_bisect(i, list->n, list->at[i].of < of);

    return first < list->n && list->at[first].of == of ? first : list->n;
}

/* Rings that were overwritten, with the time of their first branch. */
struct overwritten {
    ring_list of_cpus, of_threads;
};

static int find_overwritten(const struct dec_model *m, struct overwritten *o)
{
    int rc = 0;

    for (size_t i = 0; i < m->sb->rings.n && !rc; i++) {
        const struct dec_ring *ring = &m->sb->rings.at[i];
        bool of_cpu = ring->cpu >= 0;

        if (m->rings[i].overwritten && m->rings[i].first != UINT64_MAX)
            rc = add_ring(of_cpu ? &o->of_cpus : &o->of_threads, of_cpu ? ring->cpu : ring->tid,
                          m->rings[i].first);
    }
    sort_rings(&o->of_cpus);
    sort_rings(&o->of_threads);
    return rc;
}

static void free_overwritten(struct overwritten *o)
{
    st_vec_free(&o->of_cpus);
    st_vec_free(&o->of_threads);
}

/* The time from which on a thread's CPUs are recorded, if it ran there before: 0: it did not. */
static uint64_t overwritten_until(const struct overwritten *o, const struct dec_thread *t)
{
    const ring_list *list = &o->of_cpus;
    uint64_t until = 0;

    for (size_t i = 0; list->n && i < t->slices.n; i++)
        for (size_t k = find_ring(list, t->slices.at[i].cpu);
             k < list->n && list->at[k].of == t->slices.at[i].cpu; k++)
            if (t->slices.at[i].start < list->at[k].time && list->at[k].time > until)
                until = list->at[k].time;
    return until;
}

/* Whether the ring that recorded a thread's first branch was overwritten before it: its own, or that of a CPU
 * it ran on. */
static bool is_overwritten(const struct overwritten *o, const struct dec_thread *t)
{
    return find_ring(&o->of_threads, t->tid) < o->of_threads.n || overwritten_until(o, t);
}

/* The command that was recorded: its recording begins with its exec, and what its thread did before was ours.
 */
static bool is_command(const struct model_thread *t)
{
    const char *target = dec_sideband_meta(t->model->sb, "target");

    return target && !strncmp(target, "-- ", 3) && !t->thread->start && t->thread->execs.n;
}

/* Whether it ran before `time`, as far as anybody knows. What begins at a program's first instruction misses
 * nothing of it. */
static bool ran_before(const struct model_thread *t, uint64_t time)
{
    if (t->calls.n && !(t->calls.first.flags & TDB_CALL_NO_CALL))
        return false;
    if (t->thread->start && t->model->sb->inherited)
        return false;
    if (is_command(t))
        return false;
    return !t->thread->start || (t->thread->first_in && t->thread->first_in < time);
}

/* From the thread's birth, or the beginning of all times (0), to what is recorded of it. */
static int before_first(struct dec_model *m, const struct overwritten *o, const struct model_thread *t)
{
    bool lost = is_overwritten(o, t->thread);
    const struct dec_thread *thread = t->thread;
    uint64_t begun = thread->traced && thread->traced_since ? thread->traced_since : t->first;
    struct dec_gap_row row = {.thread = t->thread, .cpu = -1, .ring = DEC_NO_RING, .start = thread->start};

    if (t->first == UINT64_MAX || (!lost && !ran_before(t, begun)))
        return 0;
    row.reason = dec_gap_name(lost ? DEC_GAP_OVERWRITTEN : DEC_GAP_NOT_ATTACHED);
    row.end = lost ? t->first : begun;
    if (row.end <= row.start)
        return 0;
    return dec_gap_add(&m->gaps, &row,
                       lost ? "older trace was overwritten in the ring"
                            : "the thread ran before its recording began");
}

/* The first gap of a ring is told for each of its threads by before_first. */
static void drop_firsts(struct dec_model *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->gaps.rows.n; i++) {
        struct dec_gap_row row = m->gaps.rows.at[i];

        if (row.first && row.thread && m->rings[row.ring].overwritten &&
            row.end <= m->rings[row.ring].first) {
            free(row.detail);
            continue;
        }
        m->gaps.rows.at[kept++] = row;
    }
    m->gaps.rows.n = kept;
}

static int lost_records(struct dec_model *m)
{
    for (size_t i = 0; i < m->sb->notices.n; i++) {
        const struct dec_notice *n = &m->sb->notices.at[i];
        struct dec_gap_row row = {.cpu = n->cpu,
                                  .ring = DEC_NO_RING,
                                  .start = n->since ? n->since : n->time,
                                  .end = n->until > n->time ? n->until : n->time,
                                  .reason = n->name};

        if (!n->lost || n->of_samples)
            continue;
        row.thread = n->tid > 0 && !n->of_marks ? dec_sideband_thread(m->sb, n->tid, n->cpu, n->time) : NULL;
        if (dec_gap_add(&m->gaps, &row, n->detail))
            return -1;
    }
    return 0;
}

/* The rings in the recorder's list: one without a byte is nowhere else. */
static int find_listed(const struct dec_sideband *sb, ring_list *list)
{
    uint64_t since;
    int of;

    for (size_t i = 0; i < sb->meta.n; i++)
        if (!strncmp(sb->meta.at[i].text, "ring.", 5) &&
            sscanf(sb->meta.at[i].value, "tid=%d cpu=%*d since=%" SCNu64, &of, &since) == 2 &&
            add_ring(list, of, since))
            return -1;
    sort_rings(list);
    return 0;
}

/* Since when the thread has a ring. UINT64_MAX: never. */
static uint64_t ring_since(const ring_list *listed, const struct dec_thread *t)
{
    size_t i = find_ring(listed, t->tid);

    if (t->traced)
        return t->traced_since;
    return i < listed->n ? listed->at[i].time : UINT64_MAX;
}

/* Whether a branch of the thread was found: then its trace itself tells what is missing. */
static bool has_trace(const struct dec_model *m, const struct dec_thread *t)
{
    return t->index < m->nthreads && m->threads[t->index] && m->threads[t->index]->first != UINT64_MAX;
}

/* In rings of CPUs, a thread of which nothing is left: others have overwritten it. */
static int all_overwritten(struct dec_model *m, const struct overwritten *o)
{
    for (size_t i = 0; i < m->sb->threads.n; i++) {
        struct dec_thread *t = m->sb->threads.at[i];
        uint64_t until = overwritten_until(o, t);
        struct dec_gap_row row = {.thread = t,
                                  .cpu = -1,
                                  .ring = DEC_NO_RING,
                                  .start = t->start ? t->start : t->first_in,
                                  .end = t->end < until ? t->end : until,
                                  .reason = dec_gap_name(DEC_GAP_OVERWRITTEN)};

        if (t->tid <= 0 || has_trace(m, t) || row.end <= row.start)
            continue;
        if (dec_gap_add(&m->gaps, &row, "older trace was overwritten in the ring"))
            return -1;
    }
    return 0;
}

/* Where every ring is a thread's, a thread that ran before it had one and has no trace was never recorded: it
 * was born and gone (or all but gone) before the recorder came to it, or the limits allowed no ring. */
static int without_ring(struct dec_model *m, const ring_list *listed)
{
    const struct dec_sideband *sb = m->sb;

    for (size_t i = 0; i < sb->threads.n; i++) {
        struct dec_thread *t = sb->threads.at[i];
        uint64_t since = ring_since(listed, t), end = t->end < sb->last ? t->end : sb->last;
        struct dec_gap_row row = {.thread = t,
                                  .cpu = -1,
                                  .ring = DEC_NO_RING,
                                  .start = t->start ? t->start : t->first_in,
                                  .end = end < since ? end : since,
                                  .reason = dec_gap_name(DEC_GAP_NOT_ATTACHED)};

        if (t->tid <= 0 || t->ringless || has_trace(m, t) || !t->first_in || t->first_in >= since ||
            row.end <= row.start)
            continue;
        if (dec_gap_add(&m->gaps, &row, "the thread had no ring while it ran"))
            return -1;
    }
    return 0;
}

static int without_listed_ring(struct dec_model *m)
{
    ring_list listed = {0};
    int rc = find_listed(m->sb, &listed) || without_ring(m, &listed) ? -1 : 0;

    st_vec_free(&listed);
    return rc;
}

static int never_recorded(struct dec_model *m, const struct overwritten *o)
{
    for (size_t i = 0; i < m->sb->rings.n; i++)
        if (m->sb->rings.at[i].cpu >= 0)
            return all_overwritten(m, o);
    return m->sb->rings.n ? without_listed_ring(m) : 0;
}

static int never_sampled(struct dec_model *m)
{
    for (size_t i = 0; i < m->sb->sample_rings.n; i++)
        if (m->sb->sample_rings.at[i].cpu >= 0)
            return 0;
    return m->sb->sample_rings.n ? without_listed_ring(m) : 0;
}

bool model_next_cpu(const char **list, int32_t *cpu)
{
    char *end;

    if (!*list)
        return false;
    *cpu = (int32_t)strtol(*list, &end, 10);
    if (end == *list)
        return false;
    *list = *end == ',' ? end + 1 : end;
    return true;
}

/* When a CPU was last recorded. 0: never. */
static uint64_t last_seen(const struct dec_model *m, int32_t cpu)
{
    const struct dec_sideband *sb = m->sb;
    uint64_t last = 0;

    for (size_t i = 0; i < sb->rings.n; i++)
        if (sb->rings.at[i].cpu == cpu && m->rings[i].last > last)
            last = m->rings[i].last;
    for (size_t i = 0; i < sb->samples.n; i++)
        if (sb->samples.at[i].cpu == cpu && sb->samples.at[i].time > last)
            last = sb->samples.at[i].time;
    return last;
}

/* CPUs that came or went while the target was recorded on each of them, as the recorder tells. */
static int unseen_cpus(struct dec_model *m)
{
    const char *list = dec_sideband_meta(m->sb, "unseen_cpus");
    int32_t cpu;

    while (model_next_cpu(&list, &cpu)) {
        struct dec_gap_row row = {
            .cpu = cpu, .ring = DEC_NO_RING, .end = m->sb->last, .reason = dec_gap_name(DEC_GAP_CPU)};

        row.start = last_seen(m, row.cpu);
        if (!row.start || row.start >= row.end)
            row.start = m->sb->first;
        if (dec_gap_add(&m->gaps, &row, "the CPU came or went while the recorder was armed"))
            return -1;
    }
    return 0;
}

/* Nothing of such a thread is there, from its birth on. */
static int without_room(struct dec_model *m)
{
    for (size_t i = 0; i < m->sb->threads.n; i++) {
        struct dec_thread *t = m->sb->threads.at[i];
        struct dec_gap_row row = {.thread = t,
                                  .cpu = -1,
                                  .ring = DEC_NO_RING,
                                  .start = t->start,
                                  .end = t->end < m->sb->last ? t->end : m->sb->last,
                                  .reason = dec_gap_name(DEC_GAP_NO_RING)};

        if (!t->ringless || row.end <= row.start)
            continue;
        if (dec_gap_add(&m->gaps, &row,
                        t->ring_since
                            ? "its ring went as it was idle for longest: all together take so much at most"
                            : "there was no room for a ring: all together take so much at most"))
            return -1;
    }
    return 0;
}

static int gaps_of_traced(struct dec_model *m)
{
    struct overwritten o = {0};
    int rc =
        find_overwritten(m, &o) || (m->sb->snapshot && never_recorded(m, &o)) || never_sampled(m) ? -1 : 0;

    for (size_t i = 0; i < m->nthreads && !rc; i++)
        if (m->threads[i] && !m->threads[i]->sampled)
            rc = before_first(m, &o, m->threads[i]);
    free_overwritten(&o);
    return rc;
}

int model_gaps_of_threads(struct dec_model *m)
{
    drop_firsts(m);
    return without_room(m) || gaps_of_traced(m) || model_gaps_of_samples(m) || unseen_cpus(m)
               ? -1
               : lost_records(m);
}

int dec_gap_add(struct dec_gaps *gaps, const struct dec_gap_row *row, const char *detail)
{
    struct dec_gap_row copy = *row;

    copy.detail = detail && *detail ? strdup(detail) : NULL;
    if (detail && *detail && !copy.detail)
        return -1;
    if (st_vec_push(&gaps->rows, copy)) {
        free(copy.detail);
        return -1;
    }
    return 0;
}

void dec_gap_close(struct dec_gaps *gaps, uint64_t time)
{
    for (size_t i = gaps->rows.n; i-- > 0;) {
        struct dec_gap_row *row = &gaps->rows.at[i];

        if (!row->open)
            return;
        row->open = false;
        row->end = time > row->start ? time : row->start;
    }
}

void dec_gap_end(struct dec_gaps *gaps, uint64_t last)
{
    for (size_t i = 0; i < gaps->rows.n; i++) {
        struct dec_gap_row *row = &gaps->rows.at[i];

        if (row->open)
            row->end = last > row->start ? last : row->start;
        row->open = false;
    }
}

void dec_gaps_free(struct dec_gaps *gaps)
{
    for (size_t i = 0; i < gaps->rows.n; i++)
        free(gaps->rows.at[i].detail);
    st_vec_free(&gaps->rows);
}

/* Whether the thread had a CPU meanwhile, as far as anybody knows. */
static bool ran(const struct dec_thread *t, uint64_t start, uint64_t end)
{
    for (size_t i = 0; t && i < t->slices.n; i++)
        if (t->slices.at[i].start < end && t->slices.at[i].end > start)
            return true;
    return !t || !t->slices.n;
}

/* The gap that a pause made in a ring, whose last branch before it was at `last`. False: none, for the ring
 * is of a thread that was off its CPU. */
static bool gap_of(struct dec_model *m, const struct dec_stream_info *info, const struct dec_pause *pause,
                   uint64_t last, struct dec_event *gap)
{
    int32_t cpu = m->sb->rings.at[info->ring].cpu;
    uint64_t start = last > pause->stopped ? last : pause->stopped;

    if (start > pause->done)
        start = pause->done;
    *gap = (struct dec_event){.time = start, .kind = DEC_GAP, .arg = DEC_GAP_PAUSED, .cpu = cpu};
    return cpu >= 0 || ran(dec_sideband_thread(m->sb, info->tid, -1, start), start, pause->resumed);
}

/* Recording goes on with a DEC_ENABLE: the first one behind the pause, or behind several. */
size_t model_find_pause(struct dec_model *m, const struct dec_stream_info *info,
                        const struct dec_event *events, size_t n, struct dec_event *gap)
{
    struct model_ring *ring = &m->rings[info->ring];

    for (size_t i = 0; i < n && ring->pause < m->sb->pauses.n; i++) {
        struct dec_pause pause = m->sb->pauses.at[ring->pause];

        if (events[i].kind != DEC_ENABLE || events[i].time < pause.done)
            continue;
        while (ring->pause < m->sb->pauses.n && m->sb->pauses.at[ring->pause].done <= events[i].time)
            pause.resumed = m->sb->pauses.at[ring->pause++].resumed;
        if (!i && ring->first == UINT64_MAX)
            continue; /* before all that is in the ring */
        if (gap_of(m, info, &pause, i ? events[i - 1].time : ring->last, gap))
            return i;
    }
    return n;
}
