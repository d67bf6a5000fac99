/* The list pane: rows of a statement, some of which lead to a place of the timeline. */
#ifndef ST_VIEWER_LIST_H
#define ST_VIEWER_LIST_H

#include "base/vec.h"
#include "viewer/screen.h"
#include "viewer/trace.h"

enum { VW_LIST_ROWS = 1000, VW_LIST_CELL = 400 };

/* Where a row leads. */
struct vw_place {
    int64_t call_id; /* 0: none */

    int64_t time; /* -1: none */

    int64_t thread_id; /* 0: not of one */

    int64_t symbol_id; /* a function, where it is neither a call nor a time: 0: none */
};

struct vw_list {
    char title[160];

    int columns; /* those that are drawn */

    ST_VEC(char *) cells; /* printable; the header first, row by row */

    ST_VEC(struct vw_place) places; /* one a row */

    bool more; /* rows were left out */

    int top, at; /* the first row on the screen, the selected one */
};

/* Reads at most VW_LIST_ROWS rows; gives up after five seconds. Columns whose names end in _ns are shown as
 * durations (but for SQL of the user's, `plain`). A row leads to a call by a column call_id (or id, in rows
 * that have duration_ns and depth), else to the longest call of a function by symbol_id, else to a time by
 * start_ns or time_ns, on the track of thread_id. Columns named go_... are not shown. ST_EFAIL: SQLite's
 * message, ST_ENOMEM; the list is then empty. Free it with vw_list_free. */
int vw_list_read(struct vw_list *l, sqlite3_stmt *stmt, bool plain, struct st_error *err);
void vw_list_free(struct vw_list *l);

int vw_list_count(const struct vw_list *l);

/* Draws title, header and rows into `rows` lines from `first` on. */
void vw_list_draw(struct vw_list *l, struct vw_screen *s, int first, int rows);

/* Moves the selected row; stays within the list. */
void vw_list_move(struct vw_list *l, int by);

#endif
