/* Gaps stand in memory, by thread and start: a frame then finds those of its window at once, however many
 * there are. */
#include "base/bisect.h"
#include "base/vec.h"
#include "viewer/trace.h"

#include <stdlib.h>

int vw_gaps_read(struct vw_trace *t, struct st_error *err)
{
    static const char sql[] = "SELECT coalesce(thread_id, 0), start_ns, end_ns FROM gap ORDER BY thread_id, "
                              "start_ns";
    ST_VEC(struct vw_gap) list = {0};
    int64_t most = INT64_C(1) << 61;
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL))
        return vw_sql_failed(t, err);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct vw_gap g = {sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                           sqlite3_column_int64(stmt, 2), 0};
        const struct vw_gap *before = list.n ? &list.at[list.n - 1] : NULL;

        g.start = g.start < -most ? -most : g.start > most ? most : g.start;
        g.end = g.end < g.start ? g.start : g.end > most ? most : g.end;
        g.until = before && before->thread_id == g.thread_id && before->until > g.end ? before->until : g.end;
        if (st_vec_push(&list, g))
            rc = st_nomem(err, "gaps");
    }
    if (!rc && step != SQLITE_DONE)
        rc = vw_sql_failed(t, err);
    sqlite3_finalize(stmt);
    t->gaps = list.at;
    t->ngaps = list.n;
    return rc;
}

/* The first gap of the thread, or of a later one, that ends at `from` or later, or that has one before it
 * that does. */
static size_t first_gap(const struct vw_trace *t, int64_t thread_id, int64_t from)
{
    return st_bisect(i, t->ngaps,
                     t->gaps[i].thread_id < thread_id ||
                         (t->gaps[i].thread_id == thread_id && t->gaps[i].until < from));
}

static void each_of(const struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to, int64_t grain,
                    vw_gap_fn *fn, void *ctx)
{
    int64_t told = INT64_MIN;

    for (size_t i = first_gap(t, thread_id, from); i < t->ngaps; i++) {
        const struct vw_gap *g = &t->gaps[i];

        if (g->thread_id != thread_id || g->start >= to)
            break;
        if (g->end < from || g->end < told)
            continue;
        fn(ctx, g->start, g->end);
        told = grain > 0 ? g->end - g->end % grain + grain : INT64_MIN;
    }
}

void vw_each_gap(const struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to, int64_t grain,
                 vw_gap_fn *fn, void *ctx)
{
    each_of(t, 0, from, to, grain, fn, ctx);
    if (thread_id)
        each_of(t, thread_id, from, to, grain, fn, ctx);
}

int64_t vw_gap_beside(const struct vw_trace *t, int64_t time, bool forward)
{
    int64_t best = INT64_MIN;

    for (size_t i = 0; i < t->ngaps; i++) {
        int64_t start = t->gaps[i].start;

        if (forward ? start > time && (best == INT64_MIN || start < best) : start < time && start > best)
            best = start;
    }
    return best;
}

/* Gaps of the thread and those of no thread may overlap: each is a run of its own in the order of starts, and
 * the earlier of the two is taken. */
int64_t vw_gap_time(const struct vw_trace *t, int64_t thread_id, int64_t from, int64_t to)
{
    size_t at[2] = {first_gap(t, 0, from), first_gap(t, thread_id, from)};
    const int64_t ids[2] = {0, thread_id};
    int64_t sum = 0;

    for (;;) {
        const struct vw_gap *next = NULL;
        int which = 0;

        for (int i = 0; i < (thread_id ? 2 : 1); i++) {
            const struct vw_gap *g = at[i] < t->ngaps ? &t->gaps[at[i]] : NULL;

            if (g && g->thread_id == ids[i] && g->start < to && (!next || g->start < next->start)) {
                next = g;
                which = i;
            }
        }
        if (!next)
            return sum;
        at[which]++;
        if (next->end > from) {
            int64_t start = next->start > from ? next->start : from, end = next->end < to ? next->end : to;

            sum += end > start ? end - start : 0;
            from = end > from ? end : from;
        }
    }
}
