/* The frame around the tracks: title, overview, ruler, details, footer, help. */
#include "base/units.h"
#include "viewer/format.h"
#include "viewer/view.h"

#include "tracedb/tracedb.h"

#include <stdio.h>
#include <string.h>

int vw_column(const struct vw_view *v, int64_t time)
{
    double span = (double)(v->window.to - v->window.from);
    double x = (double)(time - v->window.from) / span * v->screen->width;

    return x < -1e6 ? -1000000 : x > 1e6 ? 1000000 : (int)x;
}

static void draw_title(struct vw_view *v)
{
    struct vw_screen *s = v->screen;
    const struct vw_trace *t = v->trace;
    const char *name = strrchr(t->path, '/');
    char text[1024], period[32], sampled[128] = "";

    for (int x = 0; x < s->width; x++)
        vw_put(s, x, 0, ' ', ' ', VW_STYLE_TITLE);
    if (t->sampled_ns)
        snprintf(sampled, sizeof(sampled), "SAMPLED%s%s: short calls are not there, times are estimates  ",
                 t->sampled_ns > 1 ? " each " : "",
                 t->sampled_ns > 1 ? st_format_duration(t->sampled_ns, period, sizeof(period)) : "");
    snprintf(text, sizeof(text), "%s  %s%s", name ? name + 1 : t->path, sampled,
             t->stall_text ? t->stall_text : "no trigger");
    vw_put_text(s, 0, 0, s->width, VW_STYLE_TITLE, text);
}

/* The whole trace in one row: where the window is, and where the stall. */
static void draw_overview(struct vw_view *v)
{
    struct vw_screen *s = v->screen;
    const struct vw_trace *t = v->trace;
    double span = (double)(t->end - t->start);

    for (int x = 0; x < s->width; x++) {
        int64_t at = t->start + (int64_t)(span * x / s->width);
        int64_t next = t->start + (int64_t)(span * (x + 1) / s->width);
        bool stall = t->stall_id && at < t->stall_end && next > t->stall_start;
        bool shown = at < v->window.to && next > v->window.from;

        if (stall)
            vw_put(s, x, 1, shown ? 0x2593 : 0x2592, shown ? '#' : '!', VW_STYLE_STALL);
        else
            vw_put(s, x, 1, shown ? 0x2501 : 0x2500, shown ? '=' : '-',
                   shown ? VW_STYLE_PLAIN : VW_STYLE_DIM);
    }
}

/* The least of 1, 2, 5 times a power of ten that leaves at least `least` columns between ticks. */
static int64_t tick_step(const struct vw_view *v, int least)
{
    double wanted = (double)(v->window.to - v->window.from) * least / v->screen->width;
    int64_t power = 1;

    for (;; power *= 10)
        for (int i = 1; i <= 5; i += i == 1 ? 1 : 3)
            if ((double)power * i >= wanted || power > INT64_MAX / 100)
                return power * i;
}

/* A time on the ruler, in the unit of the window's end, with as many decimals as the step needs. */
static void tick_text(const struct vw_view *v, int64_t time, int64_t step, char *text, size_t size)
{
    static const struct {
        int64_t unit;

        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    int i = 0, decimals = 0;

    while (i < 3 && v->window.to < units[i].unit)
        i++;
    for (int64_t u = units[i].unit; u > step; u /= 10)
        decimals++;
    snprintf(text, size, "%.*f%s", decimals, (double)time / (double)units[i].unit, units[i].name);
}

static void draw_ruler(struct vw_view *v)
{
    int64_t step = tick_step(v, 14);
    int64_t tick = (v->window.from + step - 1) / step * step;

    for (; tick < v->window.to; tick += step) {
        int x = vw_column(v, tick);
        char text[48];

        tick_text(v, tick, step, text, sizeof(text));
        vw_put(v->screen, x, 2, 0x2502, '|', VW_STYLE_DIM);
        vw_put_text(v->screen, x + 1, 2, 13, VW_STYLE_DIM, text);
        if (tick > INT64_MAX - step)
            break;
    }
}

/* The trace's marks on the ruler: one look into the index a column, however many there are. */
static int draw_trace_marks(struct vw_view *v, struct st_error *err)
{
    double column = (double)(v->window.to - v->window.from) / v->screen->width;
    int64_t at = v->window.from;
    sqlite3_stmt *stmt;
    int rc = vw_statement(v->trace, "SELECT time_ns FROM mark WHERE time_ns >= ?1 ORDER BY time_ns LIMIT 1",
                          &stmt, err);

    for (int x = 0; !rc && x < v->screen->width; x++) {
        int64_t found;

        sqlite3_bind_int64(stmt, 1, at);
        if (sqlite3_step(stmt) != SQLITE_ROW)
            break;
        found = sqlite3_column_int64(stmt, 0);
        sqlite3_reset(stmt);
        if (found >= v->window.to || found < at) /* text is greater than any number, and reads as 0 */
            break;
        x = vw_column(v, found);
        vw_put(v->screen, x, 2, 0x25be, 'v', VW_STYLE_PLAIN);
        at = v->window.from + (int64_t)(column * (x + 1)) + 1;
    }
    if (!rc)
        sqlite3_reset(stmt);
    return rc;
}

static void draw_own_marks(struct vw_view *v)
{
    for (int i = 0; i < VW_MARKS; i++)
        if (v->marks[i] >= v->window.from && v->marks[i] < v->window.to)
            vw_put(v->screen, vw_column(v, v->marks[i]), 2, (uint32_t)('a' + i), (char)('a' + i),
                   VW_STYLE_SELECTED);
}

static void flag_words(unsigned flags, char *text, size_t size)
{
    static const struct {
        unsigned bit;

        const char *word;
    } words[] = {{TDB_CALL_NO_CALL, "call not seen"},
                 {TDB_CALL_NO_RETURN, "return not seen"},
                 {TDB_CALL_TAIL, "tail call"},
                 {TDB_CALL_INLINED, "inlined"},
                 {TDB_CALL_INTERPOLATED, "time interpolated"},
                 {TDB_CALL_SAMPLED, "sampled"},
                 {TDB_CALL_SEVERAL, "may be several in a row"},
                 {TDB_CALL_PART, "may be a part of one"}};
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (flags & words[i].bit && n < size)
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", words[i].word);
}

static const char *bound_word(unsigned flags)
{
    const char *bound = vw_call_bound(flags);

    return !*bound ? "" : !strcmp(bound, "≥ ") ? "at least " : !strcmp(bound, "≤ ") ? "at most " : "about ";
}

static void draw_details(struct vw_view *v, int y)
{
    const struct vw_call *c = &v->found.call;
    char duration[32], self[32], start[32], flags[160], text[1024];
    const char *about = c->flags & TDB_CALL_SAMPLED ? "about " : "", *bound = bound_word(c->flags);
    int width = v->screen->width;

    for (int x = 0; x < width; x++)
        vw_put(v->screen, x, y, 0x2500, '-', VW_STYLE_DIM);
    if (!v->selected) {
        vw_put_text(v->screen, 0, y + 1, width, VW_STYLE_DIM,
                    "no call selected (l selects one, t goes to the stall, ? helps)");
        return;
    }
    snprintf(text, sizeof(text), "%s  (%s)", v->found.function, v->found.module);
    vw_put_text(v->screen, 0, y + 1, width, VW_STYLE_SELECTED, text);
    flag_words(c->flags, flags, sizeof(flags));
    snprintf(text, sizeof(text), "%s%s, self %s%s, starts at %s, depth %d%s%s", bound,
             st_format_duration(c->end - c->start, duration, 32), about,
             st_format_duration(c->self, self, 32), st_format_duration(c->start, start, 32), c->depth,
             *flags ? "; " : "", flags);
    vw_put_text(v->screen, 0, y + 2, width, VW_STYLE_PLAIN, text);
}

static int measured(const struct vw_view *v, char *text, size_t size)
{
    int64_t here = v->selected ? v->found.call.start : v->window.from;
    char length[32];

    if (v->measure_from < 0)
        return 0;
    return snprintf(text, size, "measured so far %s (M ends)",
                    st_format_duration(here - v->measure_from, length, sizeof(length)));
}

static int prompt_line(const struct vw_view *v, char *text, size_t size)
{
    switch (v->mode) {
    case VW_MODE_SEARCH:
        return snprintf(text, size, "/%s", v->prompt);
    case VW_MODE_COMMAND:
        return snprintf(text, size, ":%s", v->prompt);
    case VW_MODE_SQL:
        return snprintf(text, size, ";%s", v->prompt);
    case VW_MODE_SET_MARK:
        return snprintf(text, size, "mark: a to z");
    case VW_MODE_GO_MARK:
        return snprintf(text, size, "go to mark: a to z");
    default:
        return v->message[0] ? snprintf(text, size, "%s", v->message) : measured(v, text, size);
    }
}

void vw_draw_footer(struct vw_view *v)
{
    int y = v->screen->height - 1;
    int64_t missing = 0;
    char text[1024], span[32], selection[32] = "-", distance[32] = "";

    if (v->trace->nthreads)
        missing = vw_gap_time(v->trace, v->trace->threads[v->thread].id, v->window.from, v->window.to);
    if (v->selected)
        st_format_duration(v->found.call.end - v->found.call.start, selection, sizeof(selection));
    if (v->last_mark >= 0)
        st_format_duration((v->selected ? v->found.call.start : v->window.from) - v->marks[v->last_mark],
                           distance, sizeof(distance));
    if (!prompt_line(v, text, sizeof(text)))
        snprintf(text, sizeof(text), "view %s  selection %s%s%s%s  untraced %.0f%%  ? help  q quit",
                 st_format_duration(v->window.to - v->window.from, span, sizeof(span)), selection,
                 v->last_mark >= 0 ? "  from mark " : "", distance, "",
                 100.0 * (double)missing / (double)(v->window.to - v->window.from));
    for (int x = 0; x < v->screen->width; x++)
        vw_put(v->screen, x, y, ' ', ' ', VW_STYLE_TITLE);
    vw_put_text(v->screen, 0, y, v->screen->width, VW_STYLE_TITLE, text);
}

void vw_draw_help(struct vw_view *v)
{
    int column = 0, y = 1;

    vw_screen_clear(v->screen);
    vw_put_text(v->screen, 0, 0, v->screen->width, VW_STYLE_TITLE,
                "Keys (each also as :command). Any key goes back.");
    for (const struct vw_binding *b = vw_bindings; b->request != VW_REQ_NONE; b++) {
        char text[128];

        if (!b->help)
            continue;
        if (y >= v->screen->height && column + 40 < v->screen->width) {
            column += 40;
            y = 1;
        }
        snprintf(text, sizeof(text), "%-8s %s", b->shown, b->help);
        vw_put_text(v->screen, column, y++, 39, VW_STYLE_PLAIN, text);
    }
}

int vw_list_area(const struct vw_view *v)
{
    int height = v->screen->height;

    return !v->list_open ? 0 : height < 16 ? height - 4 : height / 2 - 2;
}

int vw_detail_area(const struct vw_view *v)
{
    if (v->list_open)
        return 0;
    return VW_DETAIL_ROWS + (v->details && v->screen->height >= 20 ? VW_MORE_DETAIL_ROWS : 0);
}

int vw_track_area(const struct vw_view *v)
{
    return v->screen->height - 3 - vw_detail_area(v) - vw_list_area(v) - 1;
}

static int draw_panes(struct vw_view *v, struct st_error *err)
{
    int tracks = vw_track_area(v), more = vw_detail_area(v) - VW_DETAIL_ROWS;
    int rc = 0;

    draw_title(v);
    draw_overview(v);
    draw_ruler(v);
    rc = draw_trace_marks(v, err);
    draw_own_marks(v);
    if (!rc && tracks > 0)
        rc = vw_draw_tracks(v, 3, tracks, err);
    if (!rc && tracks > 0)
        rc = vw_draw_cpus(v, 3, tracks, err);
    if (v->list_open)
        vw_list_draw(&v->list, v->screen, 3 + (tracks > 0 ? tracks : 0), vw_list_area(v));
    else if (tracks > 0)
        draw_details(v, 3 + tracks);
    if (!rc && more > 0)
        rc = vw_draw_details(v, 3 + tracks + VW_DETAIL_ROWS, more, err);
    if (!rc)
        vw_draw_footer(v);
    return rc;
}

int vw_draw(struct vw_view *v, struct st_error *err)
{
    int rc;

    vw_screen_clear(v->screen);
    if (v->mode == VW_MODE_HELP) {
        vw_draw_help(v);
        return 0;
    }
    vw_trace_hold(v->trace);
    rc = draw_panes(v, err);
    vw_trace_release(v->trace);
    return rc;
}
