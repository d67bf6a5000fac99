/* The mouse: what lies under it, and what it asks for. */
#include "viewer/view.h"

#include <stdio.h>

/* The row of all tracks under a row of the screen: its track and depth (-1: the state row). */
static bool track_under(const struct vw_view *v, int y, int *thread, int *depth)
{
    int row = y - 3 + v->top;

    if (y < 3 || y >= 3 + vw_track_area(v))
        return false;
    for (int i = 0; i < v->trace->nthreads; i++) {
        if (row < vw_track_rows(v, i)) {
            *thread = i;
            *depth = row - 1;
            return true;
        }
        row -= vw_track_rows(v, i);
    }
    return false;
}

static int64_t time_under(const struct vw_view *v, double x)
{
    return v->window.from + (int64_t)((double)(v->window.to - v->window.from) * x / v->screen->width);
}

/* The call of that depth in a column: the one that is open in its middle, else one that begins in it. */
static int find_under(struct vw_view *v, int thread, int depth, int x, struct vw_found *found,
                      struct st_error *err)
{
    int64_t id = v->trace->threads[thread].id, from = time_under(v, x), to = time_under(v, x + 1);
    int rc = vw_find_open(v->trace, id, from + (to - from) / 2 + 1, depth, found, err);

    if (rc < 0 || (rc > 0 && found->call.depth == depth))
        return rc;
    rc = vw_find_from(v->trace, id, from, found, err);
    for (int i = 0; i < 1 << 12 && rc > 0 && found->call.depth > depth && found->call.parent_id; i++)
        rc = vw_find_id(v->trace, found->call.parent_id, found, err);
    return rc > 0 && (found->call.start >= to || found->call.depth != depth) ? 0 : rc;
}

/* To the thread that had the CPU. */
static int click_cpu(struct vw_view *v, int x, int y, struct st_error *err)
{
    int64_t cpu = vw_cpu_under(v, y - 3 + v->top);
    struct vw_slice slice;
    int rc = cpu < 0 ? 0 : vw_slice_at(v->trace, cpu, time_under(v, x + 0.5), &slice, err);

    for (int i = 0; rc > 0 && i < v->trace->nthreads; i++)
        if (v->trace->threads[i].id == slice.thread_id && i != v->thread) {
            v->thread = i;
            v->selected = false;
        }
    return rc < 0 ? rc : 0;
}

static int click(struct vw_view *v, int x, int y, struct st_error *err)
{
    struct vw_found found;
    int thread, depth, rc;

    if (y == 1) {
        int64_t span = v->window.to - v->window.from;
        int64_t at =
            v->trace->start + (int64_t)((double)(v->trace->end - v->trace->start) * x / v->screen->width);

        vw_view_window(v, at - span / 2, at - span / 2 + span);
        return 0;
    }
    if (v->list_open && y > 4 + vw_track_area(v)) {
        vw_list_move(&v->list, y - 5 - vw_track_area(v) + v->list.top - v->list.at);
        return 0;
    }
    if (!track_under(v, y, &thread, &depth))
        return y >= 3 && y < 3 + vw_track_area(v) ? click_cpu(v, x, y, err) : 0;
    v->thread = thread;
    if (depth < 0)
        return 0;
    rc = find_under(v, thread, depth, x, &found, err);
    if (rc > 0)
        vw_view_select(v, &found);
    else if (!rc)
        snprintf(v->message, sizeof(v->message), "no call there");
    return rc < 0 ? rc : 0;
}

static void zoom_at(struct vw_view *v, int x, double factor)
{
    int64_t span = (int64_t)((double)(v->window.to - v->window.from) * factor), at = time_under(v, x + 0.5);
    int64_t from = at - (int64_t)((double)span * (x + 0.5) / v->screen->width);

    vw_view_window(v, from, from + span);
}

static void drag(struct vw_view *v, int columns, int rows)
{
    int64_t by = time_under(v, columns) - v->window.from;
    int last = vw_all_rows(v) - 1;

    vw_view_window(v, v->window.from - by, v->window.to - by);
    v->top = v->top - rows < 0 ? 0 : v->top - rows > last ? last : v->top - rows;
}

int vw_view_mouse(struct vw_view *v, uint32_t key, struct st_error *err)
{
    int x = (int)(key & 8191), y = (int)(key >> 13 & 8191), rc;

    switch ((enum vw_mouse)(key >> 26 & 15)) {
    case VW_CLICK:
        return click(v, x, y, err);
    case VW_DOUBLE_CLICK:
        rc = click(v, x, y, err);
        return rc || !v->selected ? rc : vw_view_request(v, VW_REQ_ZOOM_CALL, err);
    case VW_WHEEL_UP:
    case VW_WHEEL_DOWN:
        zoom_at(v, x, (key >> 26 & 15) == VW_WHEEL_UP ? 0.5 : 2);
        return 0;
    case VW_DRAG:
        drag(v, x - 4096, y - 4096);
        return 0;
    }
    return 0;
}
