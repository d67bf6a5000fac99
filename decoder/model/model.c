/* Branches in, calls out: one stack a thread; what CPUs recorded is put together again by thread. */
#include "decoder/model/model.h"
#include "decoder/model/model_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int dec_model_new(struct dec_sideband *sb, struct st_spill *spill, struct dec_model **model,
                  struct st_error *err)
{
    struct dec_model *m = calloc(1, sizeof(*m));

    if (!m)
        return st_nomem(err, "the trace's model");
    m->sb = sb;
    m->spill = spill;
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
    tdb_calls_free(&t->calls);
    free(t);
}

void dec_model_free(struct dec_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->threads && i < m->nthreads; i++)
        free_thread(m->threads[i]);
    for (size_t i = 0; m->rings && i < m->sb->rings.n; i++)
        st_spool_clear(&m->rings[i].events);
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

const struct dec_function *model_function_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_symbols_function(t->model->symbols, t->thread->process->space, time, address);
}

static unsigned length_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_length_at(t->model->lengths, t->thread->process->space, time, address);
}

static bool call_before(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_call_before(t->model->lengths, t->thread->process->space, time, address);
}

static uint32_t inlined_symbol(void *ctx, const struct dec_function *function, uint32_t node)
{
    struct model_thread *t = ctx;

    return dec_symbols_inlined(t->model->symbols, function, node);
}

static int take_calls(void *ctx, const struct tdb_span *calls, const struct tdb_work *work, size_t n,
                      struct st_error *err)
{
    struct model_thread *t = ctx;

    return tdb_calls_add(&t->calls, calls, work, n, err);
}

static int open_stack(struct model_thread *t)
{
    struct dec_stack_config config = {.ctx = t,
                                      .function = model_function_at,
                                      .length = length_at,
                                      .call_before = call_before,
                                      .inlined = t->model->inlines ? inlined_symbol : NULL,
                                      .segment = take_calls,
                                      .spill = t->model->spill,
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
    *t = (struct model_thread){
        .model = m, .thread = thread, .calls.spool.spill = m->spill, .first = UINT64_MAX};
    if (open_stack(t)) {
        free_thread(t);
        return NULL;
    }
    m->threads[thread->index] = t;
    return t;
}

static int keep_mark(struct dec_model *m, struct model_thread *t, const struct dec_event *e)
{
    struct model_mark mark = {.thread = t->thread, .cpu = e->cpu, .time = e->time, .name = "ptwrite"};

    snprintf(mark.detail, sizeof(mark.detail), "0x%" PRIx64, e->arg);
    if (e->kind == DEC_POWER) {
        mark.thread = NULL; /* it is the CPU's */
        mark.name = dec_power_text(e->arg, mark.detail, sizeof(mark.detail));
    }
    return st_vec_push(&m->marks, mark);
}

static int keep_marks(struct dec_model *m, struct model_thread *t, const struct dec_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((events[i].kind == DEC_PTWRITE || events[i].kind == DEC_POWER) && keep_mark(m, t, &events[i]))
            return -1;
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
        if (model_gap_closes(m, info->ring, events[0].time))
            return m->error.code;
    }
    if (keep_marks(m, t, events, n) ||
        (whole < n && model_gap_event(m, info->ring, t->thread, &events[whole], detail)))
        return st_nomem(&m->error, "the trace's marks and gaps");
    if (m->sb->rings.at[info->ring].cpu < 0)
        return dec_stack_events(t->stack, events, n, &m->error);
    return model_keep_events(m, info->ring, t, events, n);
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

int dec_model_end(struct dec_model *m, struct st_error *err)
{
    int rc = m->sb->rings.n ? model_gap_closes(m, (uint32_t)m->sb->rings.n - 1, m->sb->last) : 0;

    dec_gap_end(&m->gaps, m->sb->last);
    if (!rc)
        rc = model_gaps_of_cpus(m);
    if (rc && err)
        *err = m->error;
    if (!rc)
        rc = model_build_runs(m, err);
    for (size_t i = 0; i < m->nthreads && !rc; i++) {
        struct model_thread *t = m->threads[i];

        if (t && !t->sampled)
            rc = dec_stack_finish(t->stack, t->thread->end < m->sb->last ? t->thread->end : m->sb->last, err);
    }
    if (!rc && model_waiting(m))
        return st_nomem(err, "the trace's marks");
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
