/* Branches in, calls out: one stack a thread; what CPUs recorded is put together again by thread. */
#include "decoder/model.h"
#include "base/progress.h"
#include "decoder/model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int dec_model_new(struct dec_sideband *sb, struct dec_model **model, struct st_error *err)
{
    struct dec_model *m = calloc(1, sizeof(*m));

    if (!m)
        return st_nomem(err, "the trace's model");
    m->sb = sb;
    m->nthreads = sb->threads.n;
    m->threads = calloc(m->nthreads + 1, sizeof(struct model_thread *));
    m->rings = calloc(sb->rings.n + 1, sizeof(struct model_ring));
    if (!m->threads || !m->rings || dec_symbols_new(&m->symbols, err) ||
        dec_lengths_new(sb->pt.bits, &m->lengths, err)) {
        dec_model_free(m);
        return st_nomem(err, "the trace's model");
    }
    for (size_t i = 0; i < sb->rings.n; i++)
        m->rings[i].first = UINT64_MAX;
    *model = m;
    return 0;
}

void dec_model_set_inlines(struct dec_model *m, struct dec_inlines *inlines)
{
    m->inlines = inlines;
    dec_symbols_set_inlines(m->symbols, inlines);
}

static void free_thread(struct model_thread *t)
{
    if (!t)
        return;
    dec_stack_close(t->stack);
    st_vec_free(&t->calls);
    st_vec_free(&t->work);
    free(t);
}

void dec_model_free(struct dec_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->threads && i < m->nthreads; i++)
        free_thread(m->threads[i]);
    for (size_t i = 0; m->rings && i < m->sb->rings.n; i++)
        st_vec_free(&m->rings[i].events);
    free(m->threads);
    free(m->rings);
    st_vec_free(&m->runs);
    st_vec_free(&m->marks);
    st_vec_free(&m->frames);
    dec_gaps_free(&m->gaps);
    dec_symbols_free(m->symbols);
    dec_lengths_free(m->lengths);
    free(m);
}

const struct st_error *dec_model_error(const struct dec_model *m)
{
    return &m->error;
}

static const struct dec_function *function_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_symbols_function(t->model->symbols, t->thread->process->space, time, address);
}

static unsigned length_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_length_at(t->model->lengths, t->thread->process->space, time, address);
}

static uint32_t inlined_symbol(void *ctx, const struct dec_function *function, uint32_t node)
{
    struct model_thread *t = ctx;

    return dec_symbols_inlined(t->model->symbols, function, node);
}

/* What ran during the n calls that come behind those there are. 0 or -1. */
static int take_work(struct model_thread *t, const struct tdb_work *work, size_t n)
{
    if (!work)
        return 0;
    if (st_vec_reserve(&t->work, t->calls.n + n - t->work.n))
        return -1;
    while (t->work.n < t->calls.n)
        t->work.at[t->work.n++] = (struct tdb_work){0};
    for (size_t i = 0; i < n; i++)
        t->work.at[t->work.n++] = work[i];
    return 0;
}

static int take_segment(void *ctx, const struct tdb_span *calls, const struct tdb_work *work, size_t n,
                        struct st_error *err)
{
    struct model_thread *t = ctx;

    if (st_vec_reserve(&t->calls, n) || take_work(t, work, n))
        return st_nomem(err, "the calls");
    for (size_t i = 0; i < n; i++)
        t->calls.at[t->calls.n++] = calls[i];
    return 0;
}

static int open_stack(struct model_thread *t)
{
    struct dec_stack_config config = {.ctx = t,
                                      .function = function_at,
                                      .length = length_at,
                                      .inlined = t->model->inlines ? inlined_symbol : NULL,
                                      .segment = take_segment,
                                      .offcpu = t->thread->offcpu.at,
                                      .noffcpu = t->thread->offcpu.n,
                                      .execs = t->thread->execs.at,
                                      .nexecs = t->thread->execs.n};

    for (int i = 0; i < DEC_PSEUDO_COUNT; i++) {
        config.pseudo[i] = dec_symbols_pseudo(t->model->symbols, (enum dec_pseudo)i);
        if (config.pseudo[i] == UINT32_MAX)
            return -1;
    }
    return dec_stack_open(&config, &t->stack, NULL);
}

struct model_thread *model_thread_of(struct dec_model *m, int32_t pid, int32_t tid, int32_t cpu,
                                     uint64_t time)
{
    struct dec_thread *thread = dec_sideband_need_thread(m->sb, pid, tid, cpu, time);
    struct model_thread *t;

    if (!thread)
        return NULL;
    if (thread->index >= m->nthreads) {
        struct model_thread **threads =
            reallocarray(m->threads, thread->index + 1, sizeof(struct model_thread *));

        if (!threads)
            return NULL;
        m->threads = threads;
        while (m->nthreads <= thread->index)
            m->threads[m->nthreads++] = NULL;
    }
    if (m->threads[thread->index])
        return m->threads[thread->index];
    t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct model_thread){.model = m, .thread = thread, .first = UINT64_MAX};
    if (open_stack(t)) {
        free_thread(t);
        return NULL;
    }
    m->threads[thread->index] = t;
    return t;
}

/* What the stack builder would do nothing with: not taken, or within one function. */
static bool is_idle(struct model_thread *t, const struct dec_event *e)
{
    const struct dec_function *f;

    if (e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN))
        return true;
    if ((e->kind != DEC_COND_JUMP && e->kind != DEC_JUMP) || !e->to)
        return false;
    f = function_at(t, e->time, e->to);
    return f && !f->inlined && e->from >= f->start && e->from < f->end && e->to != f->start;
}

static int begin_run(struct dec_model *m, size_t ring, struct model_thread *t, uint64_t time)
{
    struct model_run run = {t, time, ring, m->rings[ring].events.n, 0, m->runs.n};

    m->rings[ring].idle = 0;

    return st_vec_push(&m->runs, run);
}

/* A new run where the thread may have been on another CPU before: it may begin with any event of its own, or
 * with DEC_ENABLE. */
static int keep_events(struct dec_model *m, size_t index, struct model_thread *t,
                       const struct dec_event *events, size_t n)
{
    struct model_ring *ring = &m->rings[index];
    const struct model_run *last = m->runs.n ? &m->runs.at[m->runs.n - 1] : NULL;

    if ((!last || last->ring != index || last->thread != t) && begin_run(m, index, t, events[0].time))
        return -1;
    if (st_vec_reserve(&ring->events, n))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (is_idle(t, &events[i]) && dec_add_counts(&ring->idle, events[i].arg))
            continue;
        if (events[i].kind == DEC_ENABLE && m->sb->rings.n > 1 && begin_run(m, index, t, events[i].time))
            return -1;
        ring->events.at[ring->events.n++] = events[i];
        if (ring->idle && dec_has_counts(events[i].kind) &&
            dec_add_counts(&ring->events.at[ring->events.n - 1].arg, ring->idle))
            ring->idle = 0;
        m->runs.at[m->runs.n - 1].n++;
    }
    return 0;
}

static int keep_marks(struct dec_model *m, struct model_thread *t, const struct dec_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model_mark mark = {
            .thread = t->thread, .cpu = events[i].cpu, .time = events[i].time, .name = "ptwrite"};

        if (events[i].kind != DEC_PTWRITE)
            continue;
        snprintf(mark.detail, sizeof(mark.detail), "0x%" PRIx64, events[i].arg);
        if (st_vec_push(&m->marks, mark))
            return -1;
    }
    return 0;
}

static void note_times(struct model_ring *ring, struct model_thread *t, const struct dec_event *events,
                       size_t n)
{
    if (events[0].time < t->first)
        t->first = events[0].time;
    if (events[n - 1].time > t->last)
        t->last = events[n - 1].time;
    if (events[0].time < ring->first)
        ring->first = events[0].time;
    ring->last = events[n - 1].time;
}

static int take_events(struct dec_model *m, const struct dec_stream_info *info,
                       const struct dec_event *events, size_t n, const char *detail)
{
    struct model_thread *t;
    size_t whole = n;

    if (!n)
        return 0;
    if (events[n - 1].time > INT64_MAX)
        return st_fail(&m->error, ST_EBADFILE,
                       "the trace's times make no sense: is the time conversion in the file broken?");
    t = model_thread_of(m, info->pid, info->tid, m->sb->rings.at[info->ring].cpu, events[0].time);
    if (!t)
        return st_nomem(&m->error, "a thread");
    if (events[n - 1].kind == DEC_GAP)
        whole--;
    if (whole) {
        note_times(&m->rings[info->ring], t, events, whole);
        dec_gap_close(&m->gaps, info->ring, events[0].time);
    }
    if (keep_marks(m, t, events, n) ||
        (whole < n && model_gap_event(m, info->ring, t->thread, &events[whole], detail)))
        return st_nomem(&m->error, "the trace's marks and gaps");
    if (m->sb->rings.at[info->ring].cpu < 0)
        return dec_stack_events(t->stack, events, n, &m->error);
    return keep_events(m, info->ring, t, events, n) ? st_nomem(&m->error, "the branches of a CPU") : 0;
}

int dec_model_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                   const char *detail)
{
    struct dec_model *m = ctx;
    struct dec_event gap;
    size_t before;
    int rc = 0;

    while (!rc && (before = model_find_pause(m, info, events, n, &gap)) < n) {
        rc = take_events(m, info, events, before, NULL);
        if (!rc)
            rc = take_events(m, info, &gap, 1, "stopped for an earlier snapshot");
        events += before;
        n -= before;
    }
    return rc ? rc : take_events(m, info, events, n, detail);
}

static int by_thread(const void *a, const void *b)
{
    const struct model_run *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread->thread->index < y->thread->thread->index ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int build_runs(struct dec_model *m, struct st_error *err)
{
    int rc = 0;

    if (m->runs.n) {
        qsort(m->runs.at, m->runs.n, sizeof(m->runs.at[0]), by_thread);
        st_progress("making calls", m->runs.n);
    }
    for (size_t i = 0; i < m->runs.n && !rc; i++) {
        const struct model_run *run = &m->runs.at[i];

        rc = dec_stack_events(run->thread->stack, &m->rings[run->ring].events.at[run->at], run->n, err);
        st_progress_add(1);
    }
    return rc;
}

int dec_model_end(struct dec_model *m, struct st_error *err)
{
    int rc;

    dec_gap_end(&m->gaps, m->sb->last);
    if (model_gaps_of_cpus(m))
        return st_nomem(err, "the trace's gaps");
    rc = build_runs(m, err);
    for (size_t i = 0; i < m->sb->rings.n; i++)
        st_vec_free(&m->rings[i].events);
    for (size_t i = 0; i < m->nthreads && !rc; i++) {
        struct model_thread *t = m->threads[i];

        if (t && !t->sampled)
            rc = dec_stack_finish(t->stack, t->thread->end < m->sb->last ? t->thread->end : m->sb->last, err);
    }
    if (!rc && model_gaps_of_threads(m))
        return st_nomem(err, "the trace's gaps");
    return rc;
}

struct dec_model_totals dec_model_totals(const struct dec_model *m)
{
    struct dec_model_totals totals = {.gaps = m->gaps.rows.n, .stalls = m->sb->stalls.n, .first = UINT64_MAX};

    for (size_t i = 0; i < m->nthreads; i++) {
        const struct model_thread *t = m->threads[i];

        if (!t)
            continue;
        totals.calls += t->calls.n;
        if (t->first < totals.first)
            totals.first = t->first;
        if (t->last > totals.last)
            totals.last = t->last;
    }
    return totals;
}
