/* The model -> rows. Foreign keys are met in order: what is referred to comes first. */
#include "decoder/dwarf/lines.h"
#include "decoder/model/db/db_impl.h"

#include <stdio.h>
#include <stdlib.h>

int64_t model_time(const struct dec_model *m, uint64_t time)
{
    return (int64_t)(time - m->origin);
}

int64_t model_thread_id(const struct dec_thread *thread)
{
    return (int64_t)thread->index + 1;
}

/* What turned up as rows were written comes behind the others. */
static uint32_t place_of(const uint32_t *ids, size_t n, uint32_t index)
{
    return index < n ? ids[index] : index;
}

static int64_t symbol_id(const struct dec_model *m, uint32_t symbol)
{
    return (int64_t)place_of(m->symbol_ids, m->nsymbol_ids, symbol) + 1;
}

static int64_t module_id(const struct dec_model *m, uint32_t module)
{
    return (int64_t)place_of(m->module_ids, m->nmodule_ids, module) + 1;
}

struct tdb_value model_symbol_id(const struct dec_model *m, uint32_t symbol)
{
    return TDB_N(symbol_id(m, symbol));
}

static void earlier(uint64_t *origin, uint64_t time)
{
    if (time && time < *origin)
        *origin = time;
}

/* The earliest time of any row. Times that are 0 are not known. */
static uint64_t find_origin(const struct dec_model *m)
{
    uint64_t origin = model_first_stall(m);

    for (size_t i = 0; i < m->nthreads; i++) {
        const struct model_thread *t = m->threads[i];

        if (t && t->calls.n)
            earlier(&origin, t->calls.first.start);
    }
    for (size_t i = 0; i < m->sb->threads.n; i++) {
        const struct dec_thread *t = m->sb->threads.at[i];

        earlier(&origin, t->start);
        for (size_t j = 0; j < t->names.n; j++)
            earlier(&origin, t->names.at[j].time);
        if (t->slices.n)
            earlier(&origin, t->slices.at[0].start);
        if (t->offcpu.n)
            earlier(&origin, t->offcpu.at[0].start);
    }
    for (size_t i = 0; i < m->sb->notices.n; i++)
        earlier(&origin, m->sb->notices.at[i].time);
    for (size_t i = 0; i < m->marks.n; i++)
        earlier(&origin, m->marks.at[i].time);
    for (size_t i = 0; i < m->gaps.rows.n; i++)
        earlier(&origin, m->gaps.rows.at[i].start);
    return origin == UINT64_MAX ? 0 : origin;
}

static struct tdb_value time_or_null(const struct dec_model *m, uint64_t time)
{
    return time && time != UINT64_MAX ? TDB_N(model_time(m, time)) : TDB_0;
}

static int write_processes(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->sb->processes.n && !rc; i++) {
        const struct dec_process *p = m->sb->processes.at[i];
        const struct dec_thread *leader = dec_sideband_thread(m->sb, p->pid, 0, p->start);
        const char *name = leader && leader->process == p ? leader->names.at[leader->names.n - 1].name : NULL;
        char unnamed[16];

        for (size_t j = 0; j < m->sb->threads.n && !name; j++)
            if (m->sb->threads.at[j]->process == p)
                name = m->sb->threads.at[j]->names.at[m->sb->threads.at[j]->names.n - 1].name;
        snprintf(unnamed, sizeof(unnamed), ":%d", p->pid);
        rc = tdb_add_row(w, "process",
                         (struct tdb_value[]){TDB_N(i + 1), TDB_N(p->pid), TDB_T(name ? name : unnamed),
                                              p->parent_pid >= 0 ? TDB_N(p->parent_pid) : TDB_0,
                                              time_or_null(m, p->start), time_or_null(m, p->end)},
                         6, err);
    }
    return rc;
}

static int64_t name_since(const struct dec_model *m, const struct dec_name *name)
{
    return name->time ? model_time(m, name->time) : 0;
}

static int write_names(struct dec_model *m, struct tdb_writer *w, const struct dec_thread *t,
                       struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < t->names.n && !rc; i++) {
        int64_t since = name_since(m, &t->names.at[i]);

        if (i + 1 < t->names.n && name_since(m, &t->names.at[i + 1]) <= since)
            continue;
        rc = tdb_add_row(
            w, "thread_name",
            (struct tdb_value[]){TDB_N(model_thread_id(t)), TDB_N(since), TDB_T(t->names.at[i].name)}, 3,
            err);
    }
    return rc;
}

static int write_threads(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->sb->threads.n && !rc; i++) {
        const struct dec_thread *t = m->sb->threads.at[i];

        rc = tdb_add_row(w, "thread",
                         (struct tdb_value[]){TDB_N(model_thread_id(t)), TDB_N(t->process->index + 1),
                                              TDB_N(t->tid), TDB_T(t->names.at[t->names.n - 1].name),
                                              time_or_null(m, t->start), time_or_null(m, t->end)},
                         6, err);
        if (!rc)
            rc = write_names(m, w, t, err);
    }
    return rc;
}

/* By id: the indexes of `n` rows of which `known` have ids. NULL: no memory. */
static uint32_t *by_id(const uint32_t *ids, size_t known, size_t n)
{
    uint32_t *of = calloc(n + 1, sizeof(*of));

    for (uint32_t i = 0; i < n && of; i++)
        of[place_of(ids, known, i)] = i;
    return of;
}

static int write_module_rows(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    size_t n = dec_modules_count(m->symbols);
    uint32_t *of = by_id(m->module_ids, m->nmodule_ids, n);
    int rc = of ? 0 : st_nomem(err, "the modules");

    for (size_t i = 0; i < n && !rc; i++) {
        const struct dec_module_row *row = dec_modules_at(m->symbols, of[i]);

        rc = tdb_add_row(w, "module",
                         (struct tdb_value[]){TDB_N(i + 1), TDB_T(row->name), TDB_T(row->path),
                                              row->build_id[0] ? TDB_T(row->build_id) : TDB_0,
                                              TDB_N(row->kernel)},
                         5, err);
    }
    free(of);
    return rc;
}

static int write_symbol_rows(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    size_t n = dec_symbols_count(m->symbols);
    uint32_t *of = by_id(m->symbol_ids, m->nsymbol_ids, n);
    int rc = of ? 0 : st_nomem(err, "the symbols");

    for (size_t i = 0; i < n && !rc; i++) {
        const struct dec_symbol_row *row = dec_symbols_at(m->symbols, of[i]);

        rc = tdb_add_row(w, "symbol",
                         (struct tdb_value[]){TDB_N(i + 1), TDB_N(module_id(m, row->module)),
                                              TDB_T(row->name), TDB_N(row->address), TDB_N(row->size)},
                         5, err);
    }
    free(of);
    return rc;
}

static int write_symbols(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = write_module_rows(m, w, err);

    return rc ? rc : write_symbol_rows(m, w, err);
}

struct line_writer {
    const struct dec_model *m;

    size_t symbols; /* the queries behind them are of frames */

    struct tdb_writer *w;

    struct st_error *err;
};

static int write_line(void *ctx, const struct dec_line *line)
{
    struct line_writer *l = ctx;
    const struct model_frame *frame;

    if (line->query < l->symbols)
        return tdb_add_row(l->w, "source",
                           (struct tdb_value[]){TDB_N(line->query + 1), TDB_T(line->file), TDB_N(line->line)},
                           3, l->err);
    frame = &l->m->frames.at[line->query - l->symbols];
    return tdb_add_row(l->w, "stack_line",
                       (struct tdb_value[]){TDB_N(frame->stack), TDB_N(frame->depth), TDB_N(line->level),
                                            *line->function ? TDB_T(line->function) : TDB_0,
                                            TDB_T(line->file), TDB_N(line->line)},
                       6, l->err);
}

/* Of functions that were inlined. */
static int write_declarations(struct dec_model *m, struct tdb_writer *w, const uint32_t *of,
                              struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < dec_symbols_count(m->symbols) && !rc; i++) {
        const struct dec_symbol_row *row = dec_symbols_at(m->symbols, of[i]);

        if (row->file && *row->file && row->line)
            rc = tdb_add_row(w, "source",
                             (struct tdb_value[]){TDB_N(i + 1), TDB_T(row->file), TDB_N(row->line)}, 3, err);
    }
    return rc;
}

/* Where each function begins in the source, and where the frames of stacks are, as far as debug information
 * tells. */
static int write_lines(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    size_t n = dec_symbols_count(m->symbols);
    struct line_writer writer = {m, n, w, err};
    struct dec_line_query *queries = calloc(n + m->frames.n + 1, sizeof(*queries));
    uint32_t *of = by_id(m->symbol_ids, m->nsymbol_ids, n);
    int rc = queries && of ? write_declarations(m, w, of, err) : st_nomem(err, "the source lines");

    for (size_t i = 0; i < n && !rc; i++) {
        const struct dec_symbol_row *row = dec_symbols_at(m->symbols, of[i]);

        queries[i] = (struct dec_line_query){row->image, row->address, false};
    }
    for (size_t i = 0; i < m->frames.n && !rc; i++)
        queries[n + i] = (struct dec_line_query){m->frames.at[i].image, m->frames.at[i].address, true};
    if (!rc)
        rc = dec_lines(queries, n + m->frames.n, write_line, &writer);
    free(queries);
    free(of);
    return rc;
}

/* In the order of (thread, start): a thread's calls are one range of ids. The rows themselves are written by
 * the commit. */
static int write_calls(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->nthreads && !rc; i++) {
        struct model_thread *t = m->threads[i];

        if (t)
            rc = tdb_add_calls(w, model_thread_id(t->thread), m->origin, &t->calls, &t->base, err);
    }
    return rc;
}

static int write_slices(struct dec_model *m, struct tdb_writer *w, const struct dec_thread *t,
                        struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < t->slices.n && !rc; i++) {
        const struct dec_slice *s = &t->slices.at[i];

        rc = tdb_add_row(w, "slice",
                         (struct tdb_value[]){TDB_0, TDB_N(model_thread_id(t)), TDB_N(s->cpu),
                                              TDB_N(model_time(m, s->start)), TDB_N(model_time(m, s->end))},
                         5, err);
    }
    return rc;
}

static int write_offcpu(struct dec_model *m, struct tdb_writer *w, const struct dec_thread *t,
                        struct st_error *err)
{
    const struct model_thread *decoded = t->index < m->nthreads ? m->threads[t->index] : NULL;
    int rc = 0;

    for (size_t i = 0; i < t->offcpu.n && !rc; i++) {
        const struct dec_offcpu *o = &t->offcpu.at[i];

        rc =
            tdb_add_row(w, "offcpu",
                        (struct tdb_value[]){TDB_0, TDB_N(model_thread_id(t)), TDB_N(model_time(m, o->start)),
                                             TDB_N(model_time(m, o->end)), TDB_N(o->preempted),
                                             decoded && o->call ? TDB_N(decoded->base + o->call) : TDB_0},
                        6, err);
    }
    return rc;
}

/* An idle thread that is off its CPU tells nothing: others run. */
static int write_cpu_times(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->sb->threads.n && !rc; i++) {
        const struct dec_thread *t = m->sb->threads.at[i];

        rc = write_slices(m, w, t, err);
        if (!rc && t->tid)
            rc = write_offcpu(m, w, t, err);
    }
    return rc;
}

static struct tdb_value cpu_or_null(int32_t cpu)
{
    return cpu >= 0 ? TDB_N(cpu) : TDB_0;
}

static int write_mark(struct dec_model *m, struct tdb_writer *w, const struct dec_thread *thread, int32_t cpu,
                      uint64_t time, const char *name, const char *detail, struct st_error *err)
{
    return tdb_add_row(w, "mark",
                       (struct tdb_value[]){TDB_0, thread ? TDB_N(model_thread_id(thread)) : TDB_0,
                                            cpu_or_null(cpu), TDB_N(time ? model_time(m, time) : 0),
                                            TDB_T(name), *detail ? TDB_T(detail) : TDB_0},
                       6, err);
}

static int write_marks(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->marks.n && !rc; i++) {
        const struct model_mark *k = &m->marks.at[i];

        rc = write_mark(m, w, k->thread, k->cpu, k->time, k->name, k->detail, err);
    }
    for (size_t i = 0; i < m->sb->notices.n && !rc; i++) {
        const struct dec_notice *n = &m->sb->notices.at[i];
        const struct dec_thread *thread =
            n->tid > 0 ? dec_sideband_thread(m->sb, n->tid, n->cpu, n->time) : NULL;

        if (!n->lost)
            rc = write_mark(m, w, thread, n->cpu, n->time, n->name, n->detail, err);
    }
    return rc;
}

/* What reaches back to the beginning of all times begins with the trace. */
static int write_gaps(struct dec_model *m, struct tdb_writer *w, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < m->gaps.rows.n && !rc; i++) {
        const struct dec_gap_row *g = &m->gaps.rows.at[i];

        if (!g->start && g->end && g->end <= m->origin)
            continue;
        rc = tdb_add_row(w, "gap",
                         (struct tdb_value[]){TDB_0, g->thread ? TDB_N(model_thread_id(g->thread)) : TDB_0,
                                              cpu_or_null(g->cpu),
                                              TDB_N(g->start ? model_time(m, g->start) : 0),
                                              TDB_N(g->end ? model_time(m, g->end) : 0), TDB_T(g->reason),
                                              TDB_T(g->detail), TDB_0},
                         8, err);
    }
    return rc;
}

static int write_tables(struct dec_model *m, struct tdb_writer *w, const char *const *triggers, size_t n,
                        struct st_error *err)
{
    int rc = write_processes(m, w, err);

    if (!rc)
        rc = write_threads(m, w, err);
    if (!rc)
        rc = model_write_stalls(m, w, triggers, n, err);
    if (!rc)
        rc = write_symbols(m, w, err);
    if (!rc)
        rc = write_calls(m, w, err);
    if (!rc)
        rc = write_cpu_times(m, w, err);
    if (!rc)
        rc = write_marks(m, w, err);
    return rc ? rc : write_gaps(m, w, err);
}

int dec_model_write(struct dec_model *m, struct tdb_writer *w, const struct dec_provenance *from,
                    struct st_error *err)
{
    char **triggers = NULL;
    size_t n = 0;
    int rc = model_triggers(from->reader, &triggers, &n, err);

    if (!rc && model_number_symbols(m))
        rc = st_nomem(err, "the symbols");
    m->origin = find_origin(m);
    if (!rc)
        rc = write_tables(m, w, (const char *const *)triggers, n, err);
    if (!rc && from->lines)
        rc = write_lines(m, w, err);
    if (!rc)
        rc = model_write_meta(m, w, from, (const char *const *)triggers, n, err);
    for (size_t i = 0; i < n; i++)
        free(triggers[i]);
    free(triggers);
    return rc;
}
