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
    m->workers = 1;
    pthread_mutex_init(&m->lock, NULL);
    m->nthreads = sb->threads.n;
    m->threads = calloc(m->nthreads + 1, sizeof(struct model_thread *));
    m->rings = calloc(sb->rings.n + 1, sizeof(struct model_ring));
    if (!m->threads || !m->rings || dec_symbols_new(&m->symbols, err) || model_view_new(m, &m->view, err) ||
        dec_model_feed_new(m, &m->feed, err)) {
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
    st_vec_free(&t->used.list);
    free(t->used.seen);
    free(t);
}

static void free_unheard(struct model_thread *t)
{
    struct dec_thread *thread = t->thread;

    free_thread(t);
    dec_sideband_disown(thread);
}

static void free_ring(struct model_ring *r)
{
    st_spool_clear(&r->events);
    st_vec_free(&r->runs);
    st_vec_free(&r->marks);
    dec_gaps_free(&r->gaps);
}

int model_view_new(struct dec_model *m, struct model_view *view, struct st_error *err)
{
    int rc = dec_symbols_view_new(m->symbols, &view->symbols, err);

    return rc ? rc : dec_lengths_new(m->sb->pt.bits, &view->lengths, err);
}

void model_view_free(struct model_view *view)
{
    dec_symbols_view_free(view->symbols);
    dec_lengths_free(view->lengths);
}

int dec_model_feed_new(struct dec_model *m, struct dec_model_feed **feed, struct st_error *err)
{
    struct dec_model_feed *f = calloc(1, sizeof(*f));
    int rc;

    if (!f)
        return st_nomem(err, "the trace's model");
    f->model = m;
    rc = model_view_new(m, &f->view, err);
    if (rc)
        dec_model_feed_free(f);
    else
        *feed = f;
    return rc;
}

void dec_model_feed_free(struct dec_model_feed *feed)
{
    if (!feed)
        return;
    model_view_free(&feed->view);
    free(feed);
}

void dec_model_threads(struct dec_model *m, unsigned threads)
{
    m->workers = threads ? threads : 1;
}

void dec_model_free(struct dec_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->threads && i < m->nthreads; i++)
        free_thread(m->threads[i]);
    for (size_t i = 0; i < m->unheard.n; i++)
        free_unheard(m->unheard.at[i]);
    for (size_t i = 0; m->rings && i < m->sb->rings.n; i++)
        free_ring(&m->rings[i]);
    st_vec_free(&m->unheard);
    free(m->threads);
    free(m->rings);
    st_vec_free(&m->runs);
    st_vec_free(&m->marks);
    st_vec_free(&m->frames);
    dec_gaps_free(&m->gaps);
    dec_model_feed_free(m->feed);
    model_view_free(&m->view);
    dec_symbols_free(m->symbols);
    free(m->symbol_ids);
    free(m->module_ids);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct st_error *dec_model_error(const struct dec_model *m)
{
    for (size_t i = 0; i < m->sb->rings.n && !m->error.code; i++)
        if (m->rings[i].error.code)
            return &m->rings[i].error;
    return &m->error;
}

const struct dec_function *model_function_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_symbols_function_by(t->view->symbols, t->thread->process->space, time, address);
}

static unsigned length_at(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_length_at(t->view->lengths, t->thread->process->space, time, address);
}

static bool call_before(void *ctx, uint64_t time, uint64_t address)
{
    struct model_thread *t = ctx;

    return dec_call_before(t->view->lengths, t->thread->process->space, time, address);
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

    if (!model_is_alone(t->model) && model_use_symbols(&t->used, calls, n))
        return st_nomem(err, "the calls' symbols");
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

static struct model_thread *new_thread(struct dec_model *m, struct dec_thread *thread)
{
    struct model_thread *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    *t = (struct model_thread){
        .model = m, .thread = thread, .view = &m->view, .calls.spool.spill = m->spill, .first = UINT64_MAX};
    if (!open_stack(t))
        return t;
    free_thread(t);
    return NULL;
}

/* Room for threads up to an index. 0 or -1. */
static int reach_thread(struct dec_model *m, size_t index)
{
    struct model_thread **threads;

    if (index < m->nthreads)
        return 0;
    threads = reallocarray(m->threads, index + 1, sizeof(struct model_thread *));
    if (!threads)
        return -1;
    m->threads = threads;
    while (m->nthreads <= index)
        m->threads[m->nthreads++] = NULL;
    return 0;
}

static struct model_thread *known_thread(struct dec_model *m, struct dec_thread *thread)
{
    if (reach_thread(m, thread->index))
        return NULL;
    if (!m->threads[thread->index])
        m->threads[thread->index] = new_thread(m, thread);
    return m->threads[thread->index];
}

struct model_thread *model_thread_of(struct dec_model *m, int32_t pid, int32_t tid, int32_t cpu,
                                     uint64_t time)
{
    struct dec_thread *thread = dec_sideband_need_thread(m->sb, pid, tid, cpu, time);

    return thread ? known_thread(m, thread) : NULL;
}

/* One that the side-band never heard of. */
static struct model_thread *unheard_thread(struct dec_model *m, const struct dec_stream_info *info)
{
    int32_t cpu = m->sb->rings.at[info->ring].cpu;
    struct dec_thread *thread;
    struct model_thread *t;

    for (size_t i = 0; i < m->unheard.n; i++) {
        t = m->unheard.at[i];
        if (t->thread->tid != info->tid || (!info->tid && t->thread->cpu != cpu))
            continue;
        if (info->ring < t->ring)
            t->ring = info->ring;
        return t;
    }
    thread = dec_sideband_unheard(m->sb, info->pid, info->tid, cpu);
    t = thread ? new_thread(m, thread) : NULL;
    if (t && !st_vec_push(&m->unheard, t)) {
        t->ring = info->ring;
        return t;
    }
    free_thread(t);
    dec_sideband_disown(thread);
    return NULL;
}

/* Whose a batch of events is, which are branches from `first` to `last` (UINT64_MAX: there are none). NULL:
 * no memory. */
static struct model_thread *thread_for(struct dec_model *m, const struct dec_stream_info *info, uint64_t time,
                                       uint64_t first, uint64_t last)
{
    struct dec_thread *thread = dec_sideband_thread(m->sb, info->tid, m->sb->rings.at[info->ring].cpu, time);
    struct model_thread *t;

    pthread_mutex_lock(&m->lock);
    t = thread ? known_thread(m, thread) : unheard_thread(m, info);
    if (t && first < t->first)
        t->first = first;
    if (t && first != UINT64_MAX && last > t->last)
        t->last = last;
    pthread_mutex_unlock(&m->lock);
    return t;
}

static int keep_mark(struct model_ring *ring, struct model_thread *t, const struct dec_event *e)
{
    struct model_mark mark = {.thread = t->thread, .cpu = e->cpu, .time = e->time, .name = "ptwrite"};

    snprintf(mark.detail, sizeof(mark.detail), "0x%" PRIx64, e->arg);
    if (e->kind == DEC_POWER) {
        mark.thread = NULL; /* it is the CPU's */
        mark.name = dec_power_text(e->arg, mark.detail, sizeof(mark.detail));
    }
    return st_vec_push(&ring->marks, mark);
}

static int keep_marks(struct model_ring *ring, struct model_thread *t, const struct dec_event *events,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((events[i].kind == DEC_PTWRITE || events[i].kind == DEC_POWER) && keep_mark(ring, t, &events[i]))
            return -1;
    return 0;
}

static void note_times(struct model_ring *ring, uint64_t first, uint64_t last)
{
    if (first < ring->first)
        ring->first = first;
    ring->last = last;
}

static int take_events(struct dec_model_feed *feed, const struct dec_stream_info *info,
                       const struct dec_event *events, size_t n, const char *detail)
{
    struct dec_model *m = feed->model;
    struct model_ring *ring = &m->rings[info->ring];
    struct model_thread *t;
    size_t whole = n;
    int rc;

    if (!n)
        return 0;
    if (events[n - 1].time > INT64_MAX)
        return st_fail(&ring->error, ST_EBADFILE,
                       "the trace's times make no sense: is the time conversion in the file broken?");
    if (events[n - 1].kind == DEC_GAP)
        whole--;
    t = thread_for(m, info, events[0].time, whole ? events[0].time : UINT64_MAX,
                   whole ? events[whole - 1].time : 0);
    if (!t)
        return st_nomem(&ring->error, "a thread");
    if (whole) {
        note_times(ring, events[0].time, events[whole - 1].time);
        rc = model_gap_closes(m, info->ring, events[0].time);
        if (rc)
            return rc;
    }
    if (keep_marks(ring, t, events, n) ||
        (whole < n && model_gap_event(m, info->ring, t->thread, &events[whole], detail)))
        return st_nomem(&ring->error, "the trace's marks and gaps");
    if (m->sb->rings.at[info->ring].cpu >= 0)
        return model_keep_events(feed, info->ring, t, events, n);
    t->view = &feed->view;
    return dec_stack_events(t->stack, events, n, &ring->error);
}

int dec_model_feed_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events,
                        size_t n, const char *detail)
{
    struct dec_model_feed *feed = ctx;
    struct dec_event gap;
    size_t before;
    int rc = 0;

    while (!rc && (before = model_find_pause(feed->model, info, events, n, &gap)) < n) {
        rc = take_events(feed, info, events, before, NULL);
        if (!rc)
            rc = take_events(feed, info, &gap, 1, "stopped for an earlier snapshot");
        events += before;
        n -= before;
    }
    return rc ? rc : take_events(feed, info, events, n, detail);
}

int dec_model_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                   const char *detail)
{
    struct dec_model *m = ctx;

    return dec_model_feed_emit(m->feed, info, events, n, detail);
}

static int by_ring(const void *a, const void *b)
{
    const struct model_thread *const *x = a, *const *y = b;

    return ((*x)->ring > (*y)->ring) - ((*x)->ring < (*y)->ring);
}

/* Threads that turned up become the side-band's, in the order of the rings. */
static int adopt_unheard(struct dec_model *m)
{
    size_t n = m->unheard.n, done = 0;

    if (n)
        qsort(m->unheard.at, n, sizeof(m->unheard.at[0]), by_ring);
    for (; done < n; done++) {
        struct model_thread *t = m->unheard.at[done];

        if (reach_thread(m, m->sb->threads.n) || dec_sideband_adopt(m->sb, t->thread))
            break;
        m->threads[t->thread->index] = t;
    }
    for (size_t i = done; i < n; i++)
        m->unheard.at[i - done] = m->unheard.at[i];
    m->unheard.n -= done;
    return done < n ? -1 : 0;
}

/* What was taken of each ring, one behind the other. */
static int gather_rings(struct dec_model *m)
{
    for (size_t i = 0; i < m->sb->rings.n; i++) {
        struct model_ring *r = &m->rings[i];

        if (st_vec_reserve(&m->runs, r->runs.n) || st_vec_reserve(&m->marks, r->marks.n) ||
            st_vec_reserve(&m->gaps.rows, r->gaps.rows.n))
            return -1;
        for (size_t k = 0; k < r->runs.n; k++) {
            m->runs.at[m->runs.n] = r->runs.at[k];
            m->runs.at[m->runs.n].order = m->runs.n;
            m->runs.n++;
        }
        for (size_t k = 0; k < r->marks.n; k++)
            m->marks.at[m->marks.n++] = r->marks.at[k];
        for (size_t k = 0; k < r->gaps.rows.n; k++)
            m->gaps.rows.at[m->gaps.rows.n++] = r->gaps.rows.at[k];
        r->gaps.rows.n = 0; /* their texts are the model's now */
        st_vec_free(&r->runs);
        st_vec_free(&r->marks);
    }
    return 0;
}

int dec_model_end(struct dec_model *m, struct st_error *err)
{
    uint32_t last = m->sb->rings.n ? (uint32_t)m->sb->rings.n - 1 : 0;
    int rc = m->sb->rings.n ? model_gap_closes(m, last, m->sb->last) : 0;

    if (rc && err)
        *err = *dec_model_error(m);
    if (!rc && (adopt_unheard(m) || gather_rings(m)))
        return st_nomem(err, "the trace's model");
    if (!rc) {
        dec_gap_end(&m->gaps, m->sb->last);
        rc = model_gaps_of_cpus(m);
        if (rc && err)
            *err = *dec_model_error(m);
    }
    if (!rc)
        rc = model_build(m, err);
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
