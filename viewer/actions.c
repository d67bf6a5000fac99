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
    int rows = vw_track_area(v);

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

/* Selects what was found (rc > 0); says so when nothing was. */
static int select_found(struct vw_view *v, int rc, const struct vw_found *found, const char *nothing)
{
    if (rc > 0)
        vw_view_select(v, found);
    else if (!rc && nothing)
        message(v, nothing);
    return rc < 0 ? rc : 0;
}

/* The outermost call of the selected track where the window begins, or the first one behind that. */
static int select_first(struct vw_view *v, struct st_error *err)
{
    struct vw_thread *t = track(v);
    struct vw_found found;
    int rc;

    v->selected = false;
    if (!t)
        return 0;
    rc = vw_find_open(v->trace, t->id, v->window.from + 1, 0, &found, err);
    if (!rc)
        rc = vw_find_from(v->trace, t->id, v->window.from, &found, err);
    if (!rc)
        rc = vw_find_open(v->trace, t->id, v->trace->end, 0, &found, err);
    return select_found(v, rc, &found, NULL);
}

static int move_sibling(struct vw_view *v, bool forward, struct st_error *err)
{
    struct vw_found found;

    if (!v->selected)
        return select_first(v, err);
    return select_found(v, vw_find_neighbour(v->trace, &v->found, forward, &found, err), &found,
                        forward ? "no later call of this depth" : "no earlier call of this depth");
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
    struct vw_found found;
    int rc;

    if (!v->selected)
        return select_first(v, err);
    rc = vw_find_child_from(v->trace, &v->found, v->window.from, &found, err);
    if (!rc && v->thread + 1 < v->trace->nthreads)
        return move_track(v, 1, err);
    return select_found(v, rc, &found, NULL);
}

static int move_up(struct vw_view *v, struct st_error *err)
{
    struct vw_found found;

    if (v->selected && v->found.call.parent_id)
        return select_found(v, vw_find_id(v->trace, v->found.call.parent_id, &found, err), &found, NULL);
    return v->thread > 0 ? move_track(v, -1, err) : 0;
}

static int go_parent(struct vw_view *v, struct st_error *err)
{
    struct vw_found found;

    if (!v->selected) {
        message(v, "no call is selected");
        return 0;
    }
    return select_found(v, vw_find_id(v->trace, v->found.call.parent_id, &found, err), &found,
                        "it has no caller in the trace");
}

static int go_longest(struct vw_view *v, struct st_error *err)
{
    struct vw_found found;

    if (!v->selected)
        return select_first(v, err);
    return select_found(v, vw_find_longest_child(v->trace, track(v), &v->found, &found, err), &found,
                        "it makes no call");
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

/* How much of the stall a call lasted. */
static int64_t part_of_stall(const struct vw_trace *t, const struct vw_call *c)
{
    int64_t from = c->start > t->stall_start ? c->start : t->stall_start;
    int64_t to = c->end < t->stall_end ? c->end : t->stall_end;

    return to > from ? to - from : 0;
}

/* The innermost call that lasted at least half of the stall: such a call is open in the middle of it. */
static int find_stalled(struct vw_view *v, struct vw_found *found, struct st_error *err)
{
    struct vw_trace *t = v->trace;
    int64_t half = (t->stall_end - t->stall_start) / 2, thread_id = t->threads[v->thread].id;
    int rc = vw_find_open(t, thread_id, t->stall_start + half + 1, -1, found, err);

    while (rc > 0 && part_of_stall(t, &found->call) < half && found->call.parent_id)
        rc = vw_find_id(t, found->call.parent_id, found, err);
    return rc ? rc : vw_find_open(t, thread_id, t->stall_start + 1, -1, found, err);
}

static int go_stall(struct vw_view *v, struct st_error *err)
{
    const struct vw_trace *t = v->trace;
    int64_t length = t->stall_end - t->stall_start;
    struct vw_found found;
    int rc;

    if (!t->stall_id) {
        message(v, "this snapshot was not taken by a trigger");
        return 0;
    }
    vw_view_remember(v);
    vw_view_window(v, t->stall_start - length / 2, t->stall_end + length / 4);
    v->thread = track_of(v, t->stall_thread);
    v->selected = false;
    rc = t->nthreads ? find_stalled(v, &found, err) : 0;
    rc = select_found(v, rc, &found, "the stalled thread has no call there");
    show_row(v, vw_track_row(v, v->thread));
    return rc;
}

static void go_gap(struct vw_view *v, bool forward)
{
    int64_t span = v->window.to - v->window.from;
    int64_t start = vw_gap_beside(v->trace, v->window.from + span / 4, forward);

    if (start != INT64_MIN)
        vw_view_window(v, start - span / 4, start - span / 4 + span);
    else
        message(v, forward ? "no later gap" : "no earlier gap");
}

/* Where a search begins that has no selection: the first call of the track in the window. */
static int search_start(struct vw_view *v, int64_t *id, struct st_error *err)
{
    struct vw_found found;
    int rc;

    *id = 0;
    if (v->selected) {
        *id = v->found.call.id;
        return 0;
    }
    rc = track(v) ? vw_find_from(v->trace, track(v)->id, v->window.from, &found, err) : 0;
    if (rc > 0)
        *id = found.call.id - 1;
    return rc < 0 ? rc : 0;
}

static int search(struct vw_view *v, bool forward, struct st_error *err)
{
    struct vw_found found;
    int64_t id;
    int rc;

    if (!v->pattern[0]) {
        message(v, "nothing was searched yet: / starts");
        return 0;
    }
    rc = search_start(v, &id, err);
    if (!rc)
        rc = vw_find_pattern(v->trace, v->pattern, id, forward, &found, err);
    if (!rc) {
        rc = vw_find_pattern(v->trace, v->pattern, forward ? 0 : INT64_MAX, forward, &found, err);
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
    int last = vw_all_rows(v) - 1;

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

/* All others closed when any is open, else all open. */
static int collapse_others(struct vw_view *v)
{
    bool any = false;

    for (int i = 0; i < v->trace->nthreads; i++)
        any |= i != v->thread && !v->trace->threads[i].collapsed;
    for (int i = 0; i < v->trace->nthreads; i++)
        if (i != v->thread)
            v->trace->threads[i].collapsed = any;
    v->top = 0;
    show_row(v, vw_track_row(v, v->thread));
    return 0;
}

/* Pinned tracks stand above the others, in the order of their pinning; one that is let go becomes the first
 * behind them. */
static int toggle_pin(struct vw_view *v)
{
    struct vw_thread *list = v->trace->threads, moved;
    int to = 0;

    if (!track(v))
        return 0;
    moved = *track(v);
    memmove(list + v->thread, list + v->thread + 1,
            sizeof(*list) * (size_t)(v->trace->nthreads - v->thread - 1));
    while (to < v->trace->nthreads - 1 && list[to].pinned)
        to++;
    memmove(list + to + 1, list + to, sizeof(*list) * (size_t)(v->trace->nthreads - 1 - to));
    moved.pinned = !moved.pinned;
    list[to] = moved;
    v->thread = to;
    show_row(v, vw_track_row(v, to));
    return 0;
}

static int measure(struct vw_view *v)
{
    int64_t here = v->selected ? v->found.call.start : v->window.from;
    char length[32];

    if (v->measure_from < 0) {
        v->measure_from = here;
        return 0;
    }
    snprintf(v->message, sizeof(v->message), "measured %s (%lld ns)",
             st_format_duration(here - v->measure_from, length, sizeof(length)),
             (long long)(here - v->measure_from));
    v->measure_from = -1;
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
        go_gap(v, true);
        return 0;
    case VW_REQ_PREVIOUS_GAP:
        go_gap(v, false);
        return 0;
    case VW_REQ_STALL:
        return go_stall(v, err);
    case VW_REQ_LONGEST_CHILD:
        return go_longest(v, err);
    case VW_REQ_PARENT:
        return go_parent(v, err);
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
    case VW_REQ_COLLAPSE_OTHERS:
        return collapse_others(v);
    case VW_REQ_PIN:
        return toggle_pin(v);
    case VW_REQ_FOLLOW:
        v->follow = v->follow || !v->selected ? 0 : v->found.call.symbol_id;
        return 0;
    case VW_REQ_MEASURE:
        return measure(v);
    case VW_REQ_DETAILS:
        v->details = !v->details;
        return 0;
    case VW_REQ_SQL:
        return start_typing(v, VW_MODE_SQL);
    case VW_REQ_LIST_FUNCTIONS:
    case VW_REQ_LIST_CALLS:
    case VW_REQ_LIST_HITS:
    case VW_REQ_LIST_STALLS:
    case VW_REQ_LIST_GAPS:
    case VW_REQ_LIST_MARKS:
        return vw_open_list(v, request, err);
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
    v->measure_from = -1;
    for (int i = 0; i < VW_MARKS; i++)
        v->marks[i] = -1;
    v->window = (struct vw_window){trace->start, trace->end};
    if (trace->stall_id) {
        go_stall(v, NULL);
        v->nhistory = 0;
        v->message[0] = '\0';
    }
}

void vw_view_free(struct vw_view *v)
{
    vw_list_free(&v->list);
}

void vw_view_go(struct vw_view *v, int64_t thread_id, int64_t time)
{
    int64_t span = v->window.to - v->window.from;

    vw_view_remember(v);
    if (thread_id && track_of(v, thread_id) != v->thread) {
        v->thread = track_of(v, thread_id);
        v->selected = false;
    }
    show_row(v, vw_track_row(v, v->thread));
    vw_view_window(v, time - span / 3, time - span / 3 + span);
}
