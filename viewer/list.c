/* The list pane. */
#include "viewer/list.h"
#include "base/safetext.h"
#include "base/units.h"
#include "tracedb/tracedb.h"
#include "viewer/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 5 };

void vw_list_free(struct vw_list *l)
{
    for (size_t i = 0; i < l->cells.n; i++)
        free(l->cells.at[i]);
    st_vec_free(&l->cells);
    st_vec_free(&l->places);
    *l = (struct vw_list){0};
}

int vw_list_count(const struct vw_list *l)
{
    return (int)l->places.n;
}

static int add_cell(struct vw_list *l, const char *text)
{
    char safe[VW_LIST_CELL];
    char *copy;

    st_safe_text(safe, sizeof(safe), text ? text : "");
    copy = strdup(safe);
    if (copy && !st_vec_push(&l->cells, copy))
        return 0;
    free(copy);
    return -1;
}

static bool ends_in_ns(const char *name)
{
    size_t n = strlen(name);

    return n > 3 && !strcmp(name + n - 3, "_ns");
}

static bool is_hidden(const char *name)
{
    return !strncmp(name, "go_", 3);
}

static const char *column_name(sqlite3_stmt *stmt, int i)
{
    const char *name = sqlite3_column_name(stmt, i);

    return name ? name : "";
}

static int add_header(struct vw_list *l, sqlite3_stmt *stmt, bool plain)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = column_name(stmt, i);
        char text[VW_LIST_CELL];

        if (is_hidden(name))
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)(strlen(name) - (ends_in_ns(name) && !plain ? 3 : 0)),
                 name);
        if (add_cell(l, text))
            return -1;
        l->columns++;
    }
    return 0;
}

static int find_column(sqlite3_stmt *stmt, const char *name)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *have = column_name(stmt, i);

        if (!strcmp(have, name) || (is_hidden(have) && !strcmp(have + 3, name)))
            return i;
    }
    return -1;
}

static int64_t number_at(sqlite3_stmt *stmt, int column, int64_t otherwise)
{
    return column < 0 || sqlite3_column_type(stmt, column) != SQLITE_INTEGER
               ? otherwise
               : sqlite3_column_int64(stmt, column);
}

static struct vw_place place_of(sqlite3_stmt *stmt)
{
    int call = find_column(stmt, "call_id"), time = find_column(stmt, "start_ns");

    if (call < 0 && find_column(stmt, "duration_ns") >= 0 && find_column(stmt, "depth") >= 0)
        call = find_column(stmt, "id");
    if (time < 0)
        time = find_column(stmt, "time_ns");
    return (struct vw_place){.call_id = number_at(stmt, call, 0),
                             .time = number_at(stmt, time, -1),
                             .thread_id = number_at(stmt, find_column(stmt, "thread_id"), 0),
                             .symbol_id = number_at(stmt, find_column(stmt, "symbol_id"), 0)};
}

static int add_row(struct vw_list *l, sqlite3_stmt *stmt, bool plain)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = column_name(stmt, i);
        const char *text = (const char *)sqlite3_column_text(stmt, i);
        char duration[32];

        if (is_hidden(name))
            continue;
        if (!plain && ends_in_ns(name) && sqlite3_column_type(stmt, i) == SQLITE_INTEGER)
            text = st_format_duration(sqlite3_column_int64(stmt, i), duration, sizeof(duration));
        if (add_cell(l, text))
            return -1;
    }
    return st_vec_push(&l->places, place_of(stmt)) ? -1 : 0;
}

static int too_long(void *ctx)
{
    const struct timespec *until = ctx;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec > until->tv_nsec);
}

static int read_rows(struct vw_list *l, sqlite3_stmt *stmt, bool plain, struct st_error *err)
{
    int step;

    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (vw_list_count(l) == VW_LIST_ROWS) {
            l->more = true;
            return 0;
        }
        if (add_row(l, stmt, plain))
            return st_nomem(err, "the list");
    }
    if (step == SQLITE_INTERRUPT)
        return st_fail(err, ST_EFAIL, "not done after %d s: given up (stalltrap query has no limit)",
                       SECONDS);
    return step == SQLITE_DONE ? 0 : st_fail(err, ST_EFAIL, "%s", sqlite3_errmsg(sqlite3_db_handle(stmt)));
}

int vw_list_read(struct vw_list *l, sqlite3_stmt *stmt, bool plain, struct st_error *err)
{
    sqlite3 *db = sqlite3_db_handle(stmt);
    struct timespec until;
    int rc;

    l->columns = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SECONDS;
    sqlite3_progress_handler(db, 10000, too_long, &until);
    rc = add_header(l, stmt, plain) ? st_nomem(err, "the list") : read_rows(l, stmt, plain, err);
    tdb_bound_statements(db, TDB_STATEMENT_S);
    if (rc)
        vw_list_free(l);
    return rc;
}

void vw_list_move(struct vw_list *l, int by)
{
    int last = vw_list_count(l) - 1;

    if (by > 0)
        l->at = by > last - l->at ? last : l->at + by;
    else
        l->at = -by > l->at ? 0 : l->at + by;
    if (l->at < 0)
        l->at = 0;
}

/* The widths that the rows on the screen need; the widest give way until all fit. */
static void column_widths(const struct vw_list *l, int rows, int width, int *widths)
{
    int total = -2;

    for (int c = 0; c < l->columns; c++) {
        widths[c] = vw_text_width(l->cells.at[c]);
        for (int r = l->top; r < l->top + rows && r < vw_list_count(l); r++) {
            int w = vw_text_width(l->cells.at[(r + 1) * l->columns + c]);

            widths[c] = w > widths[c] ? w : widths[c];
        }
        total += widths[c] + 2;
    }
    while (total > width) {
        int widest = 0;

        for (int c = 1; c < l->columns; c++)
            if (widths[c] > widths[widest])
                widest = c;
        if (widths[widest] < 5)
            return;
        widths[widest]--;
        total--;
    }
}

/* A cell that does not fit shows that it is cut: half a number would be another number. */
static void draw_cell(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *text)
{
    int used;

    if (vw_text_width(text) <= width) {
        vw_put_text(s, x, y, width, style, text);
        return;
    }
    used = vw_put_text(s, x, y, width - 2, style, text);
    vw_put_text(s, x + used, y, 2, style, "..");
}

static void draw_row(const struct vw_list *l, struct vw_screen *s, int y, int row, const int *widths,
                     enum vw_style style)
{
    int x = 0;

    for (int i = 0; style == VW_STYLE_SELECTED && i < s->width; i++)
        vw_put(s, i, y, ' ', ' ', style);
    for (int c = 0; c < l->columns && x < s->width; c++) {
        draw_cell(s, x, y, widths[c], style, l->cells.at[row * l->columns + c]);
        x += widths[c] + 2;
    }
}

void vw_list_draw(struct vw_list *l, struct vw_screen *s, int first, int rows)
{
    int widths[64] = {0}, body = rows - 2;
    char text[256];

    if (rows < 1)
        return;
    for (int x = 0; x < s->width; x++)
        vw_put(s, x, first, 0x2500, '-', VW_STYLE_DIM);
    snprintf(text, sizeof(text), " %s: %d%s rows (Enter goes there, q closes) ", l->title, vw_list_count(l),
             l->more ? "+" : "");
    vw_put_text(s, 2, first, s->width - 2, VW_STYLE_TRACK, text);
    if (!l->columns || l->columns > 64 || body < 0)
        return;
    if (l->at < l->top)
        l->top = l->at;
    if (body > 0 && l->at >= l->top + body)
        l->top = l->at - body + 1;
    column_widths(l, body, s->width, widths);
    draw_row(l, s, first + 1, 0, widths, VW_STYLE_DIM);
    for (int i = 0; i < body && l->top + i < vw_list_count(l); i++)
        draw_row(l, s, first + 2 + i, l->top + i + 1, widths,
                 l->top + i == l->at ? VW_STYLE_SELECTED : VW_STYLE_PLAIN);
}
