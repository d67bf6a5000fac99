/* The tracks: a thread's state, and its calls by depth. */
#include "base/units.h"
#include "viewer/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int vw_track_rows(const struct vw_view *v, int thread)
{
    const struct vw_thread *t = &v->trace->threads[thread];

    return t->collapsed ? 1 : 1 + t->depths;
}

int vw_track_row(const struct vw_view *v, int thread)
{
    int row = 0;

    for (int i = 0; i < thread; i++)
        row += vw_track_rows(v, i);
    return row;
}

/* What a track is drawn with. */
struct drawing {
    struct vw_view *v;

    int first, rows; /* of the screen */

    int row0; /* of the track, among all rows, minus those scrolled away; may be negative */

    unsigned char *off; /* a flag a column: off the CPU there */

    unsigned short *density; /* calls too short to draw, a counter a column and depth */

    int depths;
};

static int row_on_screen(const struct drawing *d, int row)
{
    int y = d->row0 + row;

    return y >= 0 && y < d->rows ? d->first + y : -1;
}

static uint32_t name_hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static enum vw_style bar_style(const struct drawing *d, const struct vw_call *c)
{
    if (d->v->selected && d->v->found.call.id == c->id)
        return VW_STYLE_SELECTED;
    if (c->kernel)
        return VW_STYLE_KERNEL;
    return (enum vw_style)(VW_STYLE_BAR + name_hash(c->module) % (VW_STYLE_BAR_LAST - VW_STYLE_BAR + 1));
}

/* A name that does not fit loses its middle: both ends tell functions of one family apart. */
static void put_name(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *name)
{
    char text[256];
    size_t n = strlen(name);

    if (width <= 0)
        return;
    if (n <= (size_t)width || width < 6 || n >= sizeof(text)) {
        vw_put_text(s, x, y, width, style, name);
        return;
    }
    snprintf(text, sizeof(text), "%.*s..%s", (width - 2 + 1) / 2, name, name + n - (size_t)((width - 2) / 2));
    vw_put_text(s, x, y, width, style, text);
}

static void draw_bar(struct drawing *d, const struct vw_call *c, int y, int x0, int x1)
{
    struct vw_screen *s = d->v->screen;
    enum vw_style style = bar_style(d, c);
    bool opens = x0 >= 0, closes = x1 <= s->width;
    int from = opens ? x0 : 0, to = closes ? x1 : s->width;

    for (int x = from; x < to; x++) {
        if (d->off[x])
            vw_put(s, x, y, 0x2591, '.', style == VW_STYLE_SELECTED ? style : VW_STYLE_OFFCPU);
        else
            vw_put(s, x, y, c->kernel ? 0x2550 : 0x2500, c->kernel ? '=' : '-', style);
    }
    vw_put(s, from, y, opens ? '[' : 0x2039, opens ? '[' : '<', style);
    vw_put(s, to - 1, y, closes ? ']' : 0x203a, closes ? ']' : '>', style);
    put_name(s, from + 1, y, to - from - 2, style, c->function);
}

/* Calls narrower than a column share it: one alone is a stroke, more are shades. */
static void draw_dense(struct drawing *d, const struct vw_call *c, int y, int x)
{
    static const struct {
        unsigned least;

        uint32_t cp;

        char fallback;
    } shades[] = {{64, 0x2588, '@'}, {8, 0x2593, '#'}, {2, 0x2592, ':'}, {1, 0x2502, '|'}};
    unsigned short *count;
    int i = 0;

    if (x < 0 || x >= d->v->screen->width || c->depth >= d->depths)
        return;
    count = &d->density[c->depth * d->v->screen->width + x];
    if (*count < 0xffff)
        ++*count;
    while (*count < shades[i].least)
        i++;
    vw_put(d->v->screen, x, y, shades[i].cp, shades[i].fallback, bar_style(d, c));
}

static int draw_call(void *ctx, const struct vw_call *c)
{
    struct drawing *d = ctx;
    int y = row_on_screen(d, 1 + c->depth);
    int x0 = vw_column(d->v, c->start), x1 = vw_column(d->v, c->end);

    if (y < 0 || (c->kernel && d->v->hide_kernel))
        return 0;
    if (c->start < d->v->window.from)
        x0 = -1;
    if (x1 - x0 >= 2)
        draw_bar(d, c, y, x0, x1);
    else
        draw_dense(d, c, y, x0 < 0 ? 0 : x0);
    return 0;
}

struct strip {
    struct drawing *d;

    uint32_t cp;

    char fallback;

    enum vw_style style;

    bool mark_off;
};

static int draw_span(void *ctx, int64_t start, int64_t end, const char *text)
{
    struct strip *p = ctx;
    struct vw_view *v = p->d->v;
    int y = row_on_screen(p->d, 0);
    int x0 = vw_column(v, start), x1 = vw_column(v, end);

    (void)text;
    if (x0 < 0)
        x0 = 0;
    if (x1 == x0)
        x1++;
    for (int x = x0; x < x1 && x < v->screen->width; x++) {
        if (p->mark_off)
            p->d->off[x] = 1;
        if (y >= 0)
            vw_put(v->screen, x, y, p->cp, p->fallback, p->style);
    }
    return 0;
}

/* The track's own row: on a CPU, off it, not known; and who it is. */
static int draw_state(struct drawing *d, int thread, struct st_error *err)
{
    struct vw_view *v = d->v;
    const struct vw_thread *t = &v->trace->threads[thread];
    struct strip slice = {d, 0x2584, '_', VW_STYLE_TRACK, false};
    struct strip offcpu = {d, 0x2591, '.', VW_STYLE_OFFCPU, true};
    struct strip gap = {d, 0x2571, '/', VW_STYLE_GAP, false};
    int rc = vw_each_span(v->trace, "slice", t->id, v->window.from, v->window.to, draw_span, &slice, err);
    int y = row_on_screen(d, 0);
    char text[128];

    if (!rc)
        rc = vw_each_span(v->trace, "offcpu", t->id, v->window.from, v->window.to, draw_span, &offcpu, err);
    if (!rc)
        rc = vw_each_span(v->trace, "gap", t->id, v->window.from, v->window.to, draw_span, &gap, err);
    if (y >= 0) {
        snprintf(text, sizeof(text), "%s %s %lld%s ",
                 t->collapsed          ? "+"
                 : thread == v->thread ? ">"
                                       : "-",
                 t->name, (long long)t->tid, t->calls ? "" : " (no calls)");
        vw_put_text(v->screen, 0, y, v->screen->width,
                    thread == v->thread ? VW_STYLE_SELECTED : VW_STYLE_TRACK, text);
    }
    return rc;
}

static int draw_track(struct vw_view *v, int thread, struct drawing *d, struct st_error *err)
{
    const struct vw_thread *t = &v->trace->threads[thread];
    size_t width = (size_t)v->screen->width;
    int rc;

    d->depths = t->depths;
    d->off = calloc(width, 1);
    d->density = calloc(width * (size_t)(t->depths + 1), sizeof(*d->density));
    if (!d->off || !d->density)
        rc = st_nomem(err, "a track");
    else
        rc = draw_state(d, thread, err);
    if (!rc && !t->collapsed)
        rc = vw_each_call(v->trace, t->id, v->window.from, v->window.to, draw_call, d, err);
    free(d->off);
    free(d->density);
    return rc;
}

static void draw_stall_line(struct vw_view *v, int first, int rows)
{
    int x = vw_column(v, v->trace->stall_end);

    if (!v->trace->stall_id || v->trace->stall_end < v->window.from || v->trace->stall_end > v->window.to)
        return;
    for (int y = first; y < first + rows; y++)
        if (x >= 0 && x < v->screen->width && v->screen->cells[y * v->screen->width + x].cp == ' ')
            vw_put(v->screen, x, y, 0x250a, '!', VW_STYLE_STALL);
}

int vw_draw_tracks(struct vw_view *v, int first, int rows, struct st_error *err)
{
    int rc = 0;

    for (int i = 0; !rc && i < v->trace->nthreads; i++) {
        struct drawing d = {.v = v, .first = first, .rows = rows, .row0 = vw_track_row(v, i) - v->top};

        if (d.row0 >= rows)
            break;
        if (d.row0 + vw_track_rows(v, i) > 0)
            rc = draw_track(v, i, &d, err);
    }
    if (!v->trace->nthreads)
        vw_put_text(v->screen, 0, first, v->screen->width, VW_STYLE_DIM, "this trace holds no thread");
    draw_stall_line(v, first, rows);
    return rc;
}
