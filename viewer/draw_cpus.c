/* The CPUs' tracks below those of the threads: who ran where. A row reads at most two slices a column. */
#include "viewer/view.h"

#include <stdio.h>
#include <string.h>

/* A stretch of columns that one thread had. */
struct stretch {
    int64_t thread_id;

    int from, to;

    bool dense; /* of slices shorter than a column */
};

int64_t vw_cpu_under(const struct vw_view *v, int row)
{
    row -= vw_track_row(v, v->trace->nthreads);
    return row >= 0 && row < v->trace->ncpus ? v->trace->cpus[row] : -1;
}

int vw_all_rows(const struct vw_view *v)
{
    return vw_track_row(v, v->trace->nthreads) + v->trace->ncpus;
}

static int thread_index(const struct vw_trace *t, int64_t id)
{
    for (int i = 0; i < t->nthreads; i++)
        if (t->threads[i].id == id)
            return i;
    return -1;
}

/* Its name stands behind the row's label, which ends at `label`. */
static void draw_stretch(struct vw_view *v, const struct stretch *s, int y, int label)
{
    int i = thread_index(v->trace, s->thread_id);
    int from = s->from < label ? label : s->from + 1, width = s->to - 1 - from;
    enum vw_style style =
        (enum vw_style)(VW_STYLE_BAR + (uint64_t)s->thread_id * 7 % (VW_STYLE_BAR_LAST - VW_STYLE_BAR + 1));
    bool idle = i >= 0 && v->trace->threads[i].tid == 0;

    if (s->thread_id <= 0 || idle)
        return;
    if (i == v->thread)
        style = VW_STYLE_SELECTED;
    for (int x = s->from; x < s->to; x++)
        vw_put(v->screen, x, y, s->dense ? 0x2592 : 0x2584, s->dense ? ':' : '_', style);
    if (i >= 0 && width >= 3) {
        char text[160];

        snprintf(text, sizeof(text), "%s %lld", v->trace->threads[i].name,
                 (long long)v->trace->threads[i].tid);
        vw_put_text(v->screen, from, y, width, style, text);
    }
}

/* Who has the CPU in the middle of a column, and for how many columns that is known without looking again. */
static int look(struct vw_view *v, int64_t cpu, int x, struct stretch *s, struct st_error *err)
{
    double column = (double)(v->window.to - v->window.from) / v->screen->width;
    int64_t middle = v->window.from + (int64_t)(column * (x + 0.5));
    struct vw_slice slice;
    int rc = vw_slice_at(v->trace, cpu, middle, &slice, err), until;

    *s = (struct stretch){.thread_id = 0, .from = x, .to = x + 1};
    if (rc < 0)
        return rc;
    if (rc) {
        s->thread_id = slice.thread_id;
        s->dense = (double)(slice.end - slice.start) < column;
    }
    until = vw_column(v, rc ? slice.end : slice.next);
    /* The columns whose middle lies before that. */
    if (until > x + 1)
        s->to = until < v->screen->width ? until : v->screen->width;
    return 0;
}

static int draw_cpu(struct vw_view *v, int64_t cpu, int y, struct st_error *err)
{
    struct stretch now = {0}, next;
    char text[32];
    int label = snprintf(text, sizeof(text), "CPU %lld ", (long long)cpu), rc = 0;

    for (int x = 0; !rc && x < v->screen->width; x = next.to) {
        rc = look(v, cpu, x, &next, err);
        if (rc)
            break;
        if (next.thread_id != now.thread_id || next.dense != now.dense) {
            draw_stretch(v, &now, y, label);
            now = next;
        }
        now.to = next.to;
    }
    draw_stretch(v, &now, y, label);
    vw_put_text(v->screen, 0, y, v->screen->width, VW_STYLE_TRACK, text);
    return rc;
}

int vw_draw_cpus(struct vw_view *v, int first, int rows, struct st_error *err)
{
    int row0 = vw_track_row(v, v->trace->nthreads) - v->top;
    int rc = 0;

    for (int i = 0; !rc && i < v->trace->ncpus; i++)
        if (row0 + i >= 0 && row0 + i < rows)
            rc = draw_cpu(v, v->trace->cpus[i], first + row0 + i, err);
    return rc;
}
