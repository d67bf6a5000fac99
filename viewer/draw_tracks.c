/* The tracks: a thread's state, and its calls by depth. */
#include "base/units.h"
#include "viewer/format.h"
#include "viewer/view.h"

#include <math.h>
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

/* What lies in one cell and is too short to be drawn: how much, and the function that took most (a majority
 * vote, as in tracedb/tiles.c). */
struct mix {
    int64_t calls, symbol;

    double weight;
};

/* What a track is drawn with. */
struct drawing {
    struct vw_view *v;

    int first, rows; /* of the screen */

    int row0; /* of the track, among all rows, minus those scrolled away; may be negative */

    int depth0, depths; /* the depths that are on the screen: depth0 to depth0 + depths - 1 */

    struct mix *mix; /* a cell each: [(depth - depth0) * width + column] */

    double *on, *off, *taken; /* nanoseconds a column, of the state row; taken: off it, but ready to run */
};

static int row_on_screen(const struct drawing *d, int row)
{
    int y = d->row0 + row;

    return y >= 0 && y < d->rows ? d->first + y : -1;
}

static enum vw_style symbol_style(const struct vw_view *v, const struct vw_symbol *s)
{
    if (v->follow && s->id != v->follow)
        return VW_STYLE_DIM;
    if (s->kernel)
        return VW_STYLE_KERNEL;
    return (enum vw_style)(VW_STYLE_BAR + s->colour % (VW_STYLE_BAR_LAST - VW_STYLE_BAR + 1));
}

/* A name that does not fit loses its middle: both ends tell functions of one family apart. */
static void put_name(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *name)
{
    if (width <= 0)
        return;
    if (width < 6 || vw_text_width(name) <= width)
        vw_put_text(s, x, y, width, style, name);
    else
        vw_put_cut(s, x, y, width, style, name);
}

static double column_ns(const struct vw_view *v)
{
    return (double)(v->window.to - v->window.from) / v->screen->width;
}

/* Off the CPU for most of a column. */
static bool is_off(const struct drawing *d, int x)
{
    return d->off[x] > column_ns(d->v) / 2;
}

/* One call as it is drawn. */
struct bar {
    int64_t id, start, end, symbol_id;

    int depth;
};

static int eighths_at(const struct vw_view *v, int64_t time)
{
    double x = (double)(time - v->window.from) / column_ns(v);

    return (int)((x - floor(x)) * 8);
}

/* For terminals that draw bars as areas: which cells are its own, and where in the outer ones it begins and
 * ends. */
static void fill_bar(struct drawing *d, const struct bar *b, int y, int from, int to)
{
    struct vw_screen *s = d->v->screen;

    for (int x = from; x < to; x++)
        if (!is_off(d, x) || x == from || x == to - 1)
            vw_fill(s, x, y, x == from || x == to - 1 ? VW_FILL_BRACKET : VW_FILL_MIDDLE, 0);
    if (b->start >= d->v->window.from)
        vw_fill(s, from, y, VW_FILL_LEFT_END, eighths_at(d->v, b->start));
    /* The end lies in the column behind the bar, where that is free. */
    if (to < s->width && s->cells[y * s->width + to].cp == ' ') {
        vw_put(s, to, y, ' ', ' ', (enum vw_style)s->cells[y * s->width + from].style);
        vw_fill(s, to, y, VW_FILL_RIGHT_END, eighths_at(d->v, b->end));
    }
}

static void draw_bar(struct drawing *d, const struct bar *b, int y, int x0, int x1)
{
    struct vw_screen *s = d->v->screen;
    const struct vw_symbol *symbol = vw_symbol(d->v->trace, b->symbol_id);
    bool selected = d->v->selected && d->v->found.call.id == b->id;
    enum vw_style style = selected ? VW_STYLE_SELECTED : symbol_style(d->v, symbol);
    bool opens = x0 >= 0, closes = x1 <= s->width;
    int from = opens ? x0 : 0, to = closes ? x1 : s->width;

    for (int x = from; x < to; x++) {
        if (is_off(d, x))
            vw_put(s, x, y, 0x2591, '.', selected ? style : VW_STYLE_OFFCPU);
        else
            vw_put(s, x, y, symbol->kernel ? 0x2550 : 0x2500, symbol->kernel ? '=' : '-', style);
    }
    vw_put(s, from, y, opens ? '[' : 0x2039, opens ? '[' : '<', style);
    vw_put(s, to - 1, y, closes ? ']' : 0x203a, closes ? ']' : '>', style);
    put_name(s, from + 1, y, to - from - 2, style, symbol->name);
    fill_bar(d, b, y, from, to);
}

static void add_to_mix(struct drawing *d, int depth, int x, int64_t calls, int64_t symbol, int64_t ns)
{
    struct mix *m;

    if (x < 0 || x >= d->v->screen->width || depth < d->depth0 || depth >= d->depth0 + d->depths)
        return;
    m = &d->mix[(size_t)(depth - d->depth0) * (size_t)d->v->screen->width + (size_t)x];
    m->calls += calls;
    if (m->symbol == symbol) {
        m->weight += (double)(ns ? ns : 1);
    } else if ((double)ns > m->weight) {
        m->symbol = symbol;
        m->weight = (double)(ns ? ns : 1) - m->weight;
    } else {
        m->weight -= (double)(ns ? ns : 1);
    }
}

static void draw_one(struct drawing *d, const struct bar *b)
{
    int y = row_on_screen(d, 1 + b->depth);
    int x0 = vw_column(d->v, b->start), x1 = vw_column(d->v, b->end);

    if (y < 0 || (d->v->hide_kernel && vw_symbol(d->v->trace, b->symbol_id)->kernel))
        return;
    if (b->start < d->v->window.from)
        x0 = -1;
    if (x1 - x0 >= 2)
        draw_bar(d, b, y, x0, x1);
    else
        add_to_mix(d, b->depth, x0 < 0 ? 0 : x0, 1, b->symbol_id, b->end - b->start);
    if (d->v->selected && d->v->found.call.id == b->id && x1 - x0 < 2)
        vw_put(d->v->screen, x0 < 0 ? 0 : x0, y, 0x2502, '|', VW_STYLE_SELECTED);
}

static int draw_call(void *ctx, const struct vw_call *c)
{
    draw_one(ctx, &(struct bar){c->id, c->start, c->end, c->symbol_id, c->depth});
    return 0;
}

static int draw_block(void *ctx, int depth, const struct tdb_block *b)
{
    struct drawing *d = ctx;

    if (!b->dense) {
        /* What was open when the window began was drawn before. */
        if (b->start >= d->v->window.from)
            draw_one(d, &(struct bar){b->id, b->start, b->start + b->duration, b->symbol_id, depth});
    } else if (!d->v->hide_kernel || !vw_symbol(d->v->trace, b->symbol_id)->kernel) {
        int64_t at = b->start < d->v->window.from ? d->v->window.from : b->start;

        add_to_mix(d, depth, vw_column(d->v, at), b->calls, b->symbol_id, b->busy_ns);
    }
    return 0;
}

/* Calls narrower than a column share it: one alone is a stroke, more are shades. */
static void paint_cell(struct drawing *d, const struct mix *m, int x, int y)
{
    static const struct {
        int64_t least;

        uint32_t cp;

        char fallback;
    } shades[] = {{64, 0x2588, '@'}, {8, 0x2593, '#'}, {2, 0x2592, ':'}, {1, 0x2502, '|'}};
    const struct vw_symbol *s = vw_symbol(d->v->trace, m->symbol);
    int i = 0;

    while (m->calls < shades[i].least)
        i++;
    vw_put(d->v->screen, x, y, shades[i].cp, shades[i].fallback, symbol_style(d->v, s));
}

/* Cells side by side with the same function carry its name, where there is room for it. */
static void name_run(struct drawing *d, const struct mix *m, int x, int y, int length)
{
    const struct vw_symbol *s = vw_symbol(d->v->trace, m->symbol);

    if (length >= 6)
        put_name(d->v->screen, x + 1, y, length - 2, symbol_style(d->v, s), s->name);
}

static void paint_mixed(struct drawing *d)
{
    const struct vw_screen *s = d->v->screen;

    for (int row = 0; row < d->depths; row++) {
        int y = row_on_screen(d, 1 + d->depth0 + row), run = 0;
        const struct mix *m = &d->mix[(size_t)row * (size_t)s->width];

        if (y < 0)
            continue;
        for (int x = 0; x <= s->width; x++) {
            bool mixed = x < s->width && m[x].calls && s->cells[y * s->width + x].cp == ' ';

            if (run && (!mixed || m[x].symbol != m[x - 1].symbol)) {
                name_run(d, &m[x - 1], x - run, y, run);
                run = 0;
            }
            if (!mixed)
                continue;
            paint_cell(d, &m[x], x, y);
            run++;
        }
    }
}

/* Spreads a span over the columns it touches. */
static void spread(const struct vw_view *v, double *columns, int64_t start, int64_t end)
{
    double scale = column_ns(v);
    double from = (double)(start - v->window.from) / scale, to = (double)(end - v->window.from) / scale;

    from = from < 0 ? 0 : from;
    to = to > v->screen->width ? v->screen->width : to;
    for (int x = (int)from; x < v->screen->width && x < to; x++)
        columns[x] += ((to < x + 1 ? to : x + 1) - (from > x ? from : x)) * scale;
}

struct strip {
    struct drawing *d;

    double *columns, *preempted;
};

static int spread_span(void *ctx, int64_t start, int64_t end, bool preempted)
{
    struct strip *p = ctx;

    if (preempted)
        spread(p->d->v, p->preempted, start, end);
    spread(p->d->v, p->columns, start, end);
    return 0;
}

static int spread_block(void *ctx, int depth, const struct tdb_block *b)
{
    struct strip *p = ctx;
    int x = vw_column(p->d->v, b->start);

    if (!b->dense)
        return spread_span(ctx, b->start, b->start + b->duration, depth == TDB_DEPTH_OFFCPU && b->flags & 1);
    if (x >= 0 && x < p->d->v->screen->width)
        p->columns[x] += (double)b->busy_ns;
    return 0;
}

/* Spans of the window into columns: from tiles where there are some, and what was going on when the window
 * began. */
static int read_spans(struct drawing *d, const struct vw_thread *t, int level, const char *what, int depth,
                      double *columns, struct st_error *err)
{
    struct vw_view *v = d->v;
    struct strip p = {d, columns, d->taken};
    int64_t from = v->window.from < 0 ? 0 : v->window.from;
    int64_t tile = level < 0 ? 0 : from >> (level + TDB_TILE_BITS) << (level + TDB_TILE_BITS);
    struct vw_part part = {level, depth, depth, v->window.from, v->window.to};
    int rc;

    if (level < 0)
        return vw_each_span(v->trace, what, t->id, v->window.from, v->window.to, spread_span, &p, err);
    rc = vw_each_block(v->trace, t, &part, spread_block, &p, err);
    return rc ? rc : vw_span_before(v->trace, what, t->id, tile, v->window.from, spread_span, &p, err);
}

static void draw_gap(void *ctx, int64_t start, int64_t end)
{
    struct drawing *d = ctx;
    struct vw_view *v = d->v;
    int y = row_on_screen(d, 0), x0 = vw_column(v, start), x1 = vw_column(v, end);

    x1 = x1 == x0 ? x0 + 1 : x1;
    for (int x = x0 < 0 ? 0 : x0; y >= 0 && x < x1 && x < v->screen->width; x++)
        vw_put(v->screen, x, y, 0x2571, '/', VW_STYLE_GAP);
}

static void paint_state(const struct drawing *d, int y)
{
    double whole = column_ns(d->v);

    for (int x = 0; x < d->v->screen->width; x++) {
        if (d->off[x] > whole / 2 && d->taken[x] > d->off[x] / 2)
            vw_put(d->v->screen, x, y, 0x259a, '%', VW_STYLE_OFFCPU);
        else if (d->off[x] > whole / 2)
            vw_put(d->v->screen, x, y, 0x2591, '.', VW_STYLE_OFFCPU);
        else if (d->off[x] > 0 && d->on[x] > 0 && d->off[x] > whole / 8)
            vw_put(d->v->screen, x, y, 0x2592, ':', VW_STYLE_OFFCPU);
        else if (d->on[x] > 0)
            vw_put(d->v->screen, x, y, 0x2584, '_', VW_STYLE_TRACK);
    }
}

static void put_label(struct vw_view *v, int thread, int y)
{
    const struct vw_thread *t = &v->trace->threads[thread];
    char text[128];

    snprintf(text, sizeof(text), "%s%s %s %lld%s ",
             t->collapsed          ? "+"
             : thread == v->thread ? ">"
                                   : "-",
             t->pinned ? "*" : "", t->name, (long long)t->tid, t->calls ? "" : " (no calls)");
    vw_put_text(v->screen, 0, y, v->screen->width, thread == v->thread ? VW_STYLE_SELECTED : VW_STYLE_TRACK,
                text);
}

/* The track's own row: on a CPU, off it, not known; and who it is. */
static int draw_state(struct drawing *d, int thread, int level, struct st_error *err)
{
    struct vw_view *v = d->v;
    const struct vw_thread *t = &v->trace->threads[thread];
    int y = row_on_screen(d, 0);
    int rc = read_spans(d, t, level, "slice", TDB_DEPTH_SLICE, d->on, err);

    if (!rc)
        rc = read_spans(d, t, level, "offcpu", TDB_DEPTH_OFFCPU, d->off, err);
    if (y < 0)
        return rc;
    paint_state(d, y);
    vw_each_gap(v->trace, t->id, v->window.from, v->window.to, (int64_t)column_ns(v), draw_gap, d);
    put_label(v, thread, y);
    return rc;
}

static int draw_calls(struct drawing *d, const struct vw_thread *t, int level, struct st_error *err)
{
    struct vw_view *v = d->v;
    int rc;

    if (level < 0) {
        rc = vw_each_call(v->trace, t->id, v->window.from, v->window.to, draw_call, d, err);
    } else {
        struct vw_part part = {level, d->depth0, d->depth0 + d->depths - 1, v->window.from, v->window.to};

        rc = vw_calls_at(v->trace, t->id, v->window.from, draw_call, d, err);
        if (!rc)
            rc = vw_each_block(v->trace, t, &part, draw_block, d, err);
    }
    paint_mixed(d);
    return rc;
}

static int draw_track(struct vw_view *v, int thread, struct drawing *d, struct st_error *err)
{
    const struct vw_thread *t = &v->trace->threads[thread];
    size_t width = (size_t)v->screen->width;
    int level = vw_level(t, (int64_t)column_ns(v)), last = d->rows - d->row0 - 1;
    int rc;

    d->depth0 = d->row0 < -1 ? -d->row0 - 1 : 0;
    d->depths = (last < t->depths ? last : t->depths) - d->depth0;
    if (d->depths < 0 || t->collapsed)
        d->depths = 0;
    d->on = calloc(width, sizeof(*d->on));
    d->off = calloc(width, sizeof(*d->off));
    d->taken = calloc(width, sizeof(*d->taken));
    d->mix = calloc(width * (size_t)(d->depths + 1), sizeof(*d->mix));
    if (!d->on || !d->off || !d->taken || !d->mix)
        rc = st_nomem(err, "a track");
    else
        rc = draw_state(d, thread, level, err);
    if (!rc && d->depths)
        rc = draw_calls(d, t, level, err);
    free(d->on);
    free(d->off);
    free(d->taken);
    free(d->mix);
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
