/* Requests: moving the window and the selection. */
#include "base/nearest.h"
#include "base/units.h"
#include "viewer/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vw_thread *track(const struct vw_view *v)
{
    return v->trace->nthreads ? &v->trace->threads[v->thread] : NULL;
}

void vw_view_window(struct vw_view *v, int64_t from, int64_t to)
{
    const struct vw_trace *t = v->trace;
    int64_t least = v->screen->width;
    int64_t span = to - from < least ? least : to - from;
    int64_t most = t->end - t->start;

    if (span > most)
        span = most;
    if (from + span > t->end)
        from = t->end - span;
    if (from < t->start)
        from = t->start;
    v->window = (struct vw_window){from, from + span};
}

void vw_view_remember(struct vw_view *v)
{
    if (v->nhistory == VW_ZOOM_HISTORY) {
        memmove(v->history, v->history + 1, sizeof(v->history[0]) * (VW_ZOOM_HISTORY - 1));
        v->nhistory--;
    }
    v->history[v->nhistory++] = v->window;
}

static void message(struct vw_view *v, const char *text)
{
    snprintf(v->message, sizeof(v->message), "%s", text);
}

static int track_of(const struct vw_view *v, int64_t thread_id)
{
    for (int i = 0; i < v->trace->nthreads; i++)
        if (v->trace->threads[i].id == thread_id)
            return i;
    return v->thread;
}

static void show_row(struct vw_view *v, int row)
{
    int rows = v->screen->height - 3 - VW_DETAIL_ROWS - 1;

    if (rows < 1)
        rows = 1;
    if (row < v->top)
        v->top = row;
    if (row >= v->top + rows)
        v->top = row - rows + 1;
}

void vw_view_select(struct vw_view *v, const struct vw_found *found)
{
    int64_t span = v->window.to - v->window.from;

    v->found = *found;
    v->found.call.function = v->found.function;
    v->found.call.module = v->found.module;
    v->selected = true;
    v->thread = track_of(v, found->thread_id);
    if (v->trace->threads[v->thread].collapsed)
        v->trace->threads[v->thread].collapsed = false;
    if (found->call.start >= v->window.to || found->call.end <= v->window.from)
        vw_view_window(v, found->call.start - span / 3, found->call.start - span / 3 + span);
    show_row(v, vw_track_row(v, v->thread));
    show_row(v, vw_track_row(v, v->thread) + 1 + found->call.depth);
}

/* Selects what the condition finds; says so when it finds nothing. */
static int select_by(struct vw_view *v, const char *condition, int64_t a, int64_t b, const char *nothing,
                     struct st_error *err)
{
    struct vw_found found;
    int rc = vw_find_call(v->trace, condition, a, b, NULL, &found, err);

    if (rc > 0)
        vw_view_select(v, &found);
    else if (!rc && nothing)
        message(v, nothing);
    return rc < 0 ? rc : 0;
}

/* The first call of the selected track in the window, or the one that is open there. */
static int select_first(struct vw_view *v, struct st_error *err)
{
    struct vw_thread *t = track(v);
    int rc;

    v->selected = false;
    if (!t)
        return 0;
    rc = select_by(v, "c.thread_id = ?1 AND c.start_ns >= ?2 AND c.depth = 0 ORDER BY c.start_ns, c.id",
                   t->id, v->window.from, NULL, err);
    if (!rc && !v->selected)
        rc = select_by(v, "c.thread_id = ?1 AND c.depth = 0 ORDER BY c.start_ns DESC, c.id DESC", t->id, 0,
                       NULL, err);
    return rc;
}

static int move_sibling(struct vw_view *v, bool forward, struct st_error *err)
{
    char condition[256];

    if (!v->selected)
        return select_first(v, err);
    snprintf(condition, sizeof(condition),
             "c.thread_id = %lld AND c.depth = %d AND (c.start_ns, c.id) %c (?1, ?2) ORDER BY c.start_ns %s, "
             "c.id %s",
             (long long)v->found.thread_id, v->found.call.depth, forward ? '>' : '<',
             forward ? "ASC" : "DESC", forward ? "ASC" : "DESC");
    return select_by(v, condition, v->found.call.start, v->found.call.id,
                     forward ? "no later call of this depth" : "no earlier call of this depth", err);
}

static int move_track(struct vw_view *v, int step, struct st_error *err)
{
    int n = v->trace->nthreads;

    if (!n)
        return 0;
    v->thread = (v->thread + step + n) % n;
    show_row(v, vw_track_row(v, v->thread));
    return select_first(v, err);
}

static int move_down(struct vw_view *v, struct st_error *err)
{
    int64_t before = v->found.call.id;
    int rc;

    if (!v->selected)
        return select_first(v, err);
    rc = select_by(v, "c.parent_id = ?1 AND c.start_ns + c.duration_ns >= ?2 ORDER BY c.start_ns, c.id",
                   before, v->window.from, NULL, err);
    if (!rc && v->found.call.id == before && v->thread + 1 < v->trace->nthreads)
        rc = move_track(v, 1, err);
    return rc;
}

static int move_up(struct vw_view *v, struct st_error *err)
{
    if (v->selected && v->found.call.parent_id)
        return select_by(v, "c.id = ?1", v->found.call.parent_id, 0, NULL, err);
    return v->thread > 0 ? move_track(v, -1, err) : 0;
}

static void zoom(struct vw_view *v, double factor)
{
    int64_t span = v->window.to - v->window.from;
    int64_t wanted = (int64_t)((double)span * factor);
    int64_t centre = v->window.from + span / 2;

    if (v->selected && v->found.call.start >= v->window.from && v->found.call.start < v->window.to &&
        factor < 1) {
        int64_t end = v->found.call.end < v->window.to ? v->found.call.end : v->window.to;

        centre = v->found.call.start + (end - v->found.call.start) / 2;
    }
    vw_view_window(v, centre - wanted / 2, centre - wanted / 2 + wanted);
}

static void pan(struct vw_view *v, int quarter)
{
    int64_t step = (v->window.to - v->window.from) / 4 * quarter;

    vw_view_window(v, v->window.from + step, v->window.to + step);
}

static void zoom_call(struct vw_view *v)
{
    int64_t margin;

    if (!v->selected) {
        message(v, "no call is selected");
        return;
    }
    vw_view_remember(v);
    margin = (v->found.call.end - v->found.call.start) / 20;
    vw_view_window(v, v->found.call.start - margin, v->found.call.end + margin);
}

static int go_stall(struct vw_view *v, struct st_error *err)
{
    const struct vw_trace *t = v->trace;
    int64_t length = t->stall_end - t->stall_start;
    int rc;

    if (!t->stall_id) {
        message(v, "this snapshot was not taken by a trigger");
        return 0;
    }
    vw_view_remember(v);
    vw_view_window(v, t->stall_start - length / 2, t->stall_end + length / 4);
    v->thread = 0;
    v->selected = false;
    /* The innermost call that was open when it began. */
    rc = select_by(v,
                   "c.thread_id = ?1 AND c.start_ns <= ?2 AND c.start_ns + c.duration_ns >= ?2 ORDER BY "
                   "c.depth DESC, c.start_ns DESC",
                   t->nthreads ? t->threads[0].id : 0, t->stall_start, "the stalled thread has no call there",
                   err);
    show_row(v, vw_track_row(v, v->thread));
    return rc;
}

struct gap_search {
    int64_t at, best;

    bool forward, found;
};

static int consider_gap(void *ctx, int64_t start, int64_t end, const char *reason)
{
    struct gap_search *g = ctx;

    (void)end, (void)reason;
    if (g->forward ? start > g->at && (!g->found || start < g->best)
                   : start < g->at && (!g->found || start > g->best)) {
        g->best = start;
        g->found = true;
    }
    return 0;
}

static int go_gap(struct vw_view *v, bool forward, struct st_error *err)
{
    int64_t span = v->window.to - v->window.from;
    struct gap_search g = {.at = v->window.from + span / 4, .forward = forward};
    int rc = 0;

    for (int i = 0; !rc && i < v->trace->nthreads; i++)
        rc = vw_each_span(v->trace, "gap", v->trace->threads[i].id, v->trace->start, v->trace->end,
                          consider_gap, &g, err);
    if (rc)
        return rc;
    if (g.found)
        vw_view_window(v, g.best - span / 4, g.best - span / 4 + span);
    else
        message(v, forward ? "no later gap" : "no earlier gap");
    return 0;
}

static int find_pattern(struct vw_view *v, bool forward, int64_t start, int64_t id, struct vw_found *found,
                        struct st_error *err)
{
    char condition[192];

    snprintf(
        condition, sizeof(condition),
        "(c.start_ns, c.id) %c (?1, ?2) AND instr(lower(s.name), lower(?3)) ORDER BY c.start_ns %s, c.id %s",
        forward ? '>' : '<', forward ? "ASC" : "DESC", forward ? "ASC" : "DESC");
    return vw_find_call(v->trace, condition, start, id, v->pattern, found, err);
}

static int search(struct vw_view *v, bool forward, struct st_error *err)
{
    int64_t start = v->selected ? v->found.call.start : v->window.from,
            id = v->selected ? v->found.call.id : 0;
    struct vw_found found;
    int rc;

    if (!v->pattern[0]) {
        message(v, "nothing was searched yet: / starts");
        return 0;
    }
    rc = find_pattern(v, forward, start, id, &found, err);
    if (!rc) {
        rc = find_pattern(v, forward, forward ? INT64_MIN : INT64_MAX, 0, &found, err);
        if (rc > 0)
            message(v, forward ? "search went on at the start" : "search went on at the end");
    }
    if (rc > 0)
        vw_view_select(v, &found);
    else if (!rc)
        snprintf(v->message, sizeof(v->message), "no call of '%s'", v->pattern);
    return rc < 0 ? rc : 0;
}

static void scroll_page(struct vw_view *v, int direction)
{
    int last = v->trace->nthreads ? vw_track_row(v, v->trace->nthreads - 1) : 0;

    v->top += direction * (v->screen->height / 2);
    if (v->top > last)
        v->top = last;
    if (v->top < 0)
        v->top = 0;
}

static int go_edge(struct vw_view *v, bool end)
{
    int64_t span = v->window.to - v->window.from;

    vw_view_window(v, end ? v->trace->end - span : v->trace->start,
                   end ? v->trace->end : v->trace->start + span);
    return 0;
}

static int start_typing(struct vw_view *v, enum vw_mode mode)
{
    v->mode = mode;
    v->prompt[0] = '\0';
    return 0;
}

static int zoom_back(struct vw_view *v)
{
    if (v->nhistory)
        v->window = v->history[--v->nhistory];
    else
        message(v, "no zoom to go back to");
    return 0;
}

static int toggle_collapse(struct vw_view *v)
{
    if (track(v))
        track(v)->collapsed = !track(v)->collapsed;
    return 0;
}

static int show_all(struct vw_view *v)
{
    vw_view_remember(v);
    vw_view_window(v, v->trace->start, v->trace->end);
    return 0;
}

/* Requests that move the selection; NONE of them changes the window's length. */
static int move_request(struct vw_view *v, enum vw_request request, struct st_error *err)
{
    switch (request) {
    case VW_REQ_NEXT:
        return move_sibling(v, true, err);
    case VW_REQ_PREVIOUS:
        return move_sibling(v, false, err);
    case VW_REQ_DOWN:
        return move_down(v, err);
    case VW_REQ_UP:
        return move_up(v, err);
    case VW_REQ_NEXT_TRACK:
        return move_track(v, 1, err);
    case VW_REQ_PREVIOUS_TRACK:
        return move_track(v, -1, err);
    case VW_REQ_SEARCH_NEXT:
        return search(v, true, err);
    case VW_REQ_SEARCH_PREVIOUS:
        return search(v, false, err);
    case VW_REQ_NEXT_GAP:
        return go_gap(v, true, err);
    case VW_REQ_PREVIOUS_GAP:
        return go_gap(v, false, err);
    case VW_REQ_STALL:
        return go_stall(v, err);
    case VW_REQ_LONGEST_CHILD:
        return select_by(v, "c.parent_id = ?1 ORDER BY c.duration_ns DESC, c.id",
                         v->selected ? v->found.call.id : -1, 0, "it makes no call", err);
    case VW_REQ_PARENT:
        return select_by(v, "c.id = ?1", v->selected ? v->found.call.parent_id : -1, 0,
                         "it has no caller in the trace", err);
    default:
        return 0;
    }
}

int vw_view_request(struct vw_view *v, enum vw_request request, struct st_error *err)
{
    switch (request) {
    case VW_REQ_ZOOM_IN:
        zoom(v, 0.5);
        return 0;
    case VW_REQ_ZOOM_OUT:
        zoom(v, 2);
        return 0;
    case VW_REQ_PAN_LEFT:
        pan(v, -1);
        return 0;
    case VW_REQ_PAN_RIGHT:
        pan(v, 1);
        return 0;
    case VW_REQ_ALL:
        return show_all(v);
    case VW_REQ_ZOOM_CALL:
        zoom_call(v);
        return 0;
    case VW_REQ_ZOOM_BACK:
        return zoom_back(v);
    case VW_REQ_PAGE_DOWN:
    case VW_REQ_PAGE_UP:
        scroll_page(v, request == VW_REQ_PAGE_DOWN ? 1 : -1);
        return 0;
    case VW_REQ_START:
    case VW_REQ_END:
        return go_edge(v, request == VW_REQ_END);
    case VW_REQ_SEARCH:
        return start_typing(v, VW_MODE_SEARCH);
    case VW_REQ_COMMAND:
        return start_typing(v, VW_MODE_COMMAND);
    case VW_REQ_HELP:
        return start_typing(v, VW_MODE_HELP);
    case VW_REQ_SET_MARK:
        return start_typing(v, VW_MODE_SET_MARK);
    case VW_REQ_GO_MARK:
        return start_typing(v, VW_MODE_GO_MARK);
    case VW_REQ_COLLAPSE:
        return toggle_collapse(v);
    case VW_REQ_KERNEL:
        v->hide_kernel = !v->hide_kernel;
        return 0;
    case VW_REQ_QUIT:
        v->quit = true;
        return 0;
    default:
        return move_request(v, request, err);
    }
}

void vw_view_init(struct vw_view *v, struct vw_trace *trace, struct vw_screen *screen)
{
    memset(v, 0, sizeof(*v));
    v->trace = trace;
    v->screen = screen;
    v->last_mark = -1;
    for (int i = 0; i < VW_MARKS; i++)
        v->marks[i] = -1;
    v->window = (struct vw_window){trace->start, trace->end};
    if (trace->stall_id) {
        go_stall(v, NULL);
        v->nhistory = 0;
        v->message[0] = '\0';
    }
}
