/* The timeline's state, and what people can ask of it. Keys become requests (keys.c), requests change the
 * state (actions*.c), the state is drawn into a screen (draw*.c): terminal and headless runs differ only in
 * where keys come from and the screen goes. */
#ifndef ST_VIEWER_VIEW_H
#define ST_VIEWER_VIEW_H

#include "viewer/list.h"
#include "viewer/screen.h"
#include "viewer/trace.h"

enum {
    VW_ZOOM_HISTORY = 64,
    VW_MARKS = 26,
    VW_PROMPT = 512,
    VW_DETAIL_ROWS = 3,
    VW_MORE_DETAIL_ROWS = 7, /* with the details pane open */
};

struct vw_window {
    int64_t from, to;
};

enum vw_mode {
    VW_MODE_TIMELINE,
    VW_MODE_HELP,
    VW_MODE_SEARCH,   /* typing behind '/' */
    VW_MODE_COMMAND,  /* typing behind ':' */
    VW_MODE_SQL,      /* typing behind ';' */
    VW_MODE_SET_MARK, /* the next key names the mark */
    VW_MODE_GO_MARK,
};

struct vw_view {
    struct vw_trace *trace;

    struct vw_screen *screen; /* not owned */

    struct vw_window window;

    struct vw_window history[VW_ZOOM_HISTORY];

    int nhistory;

    int thread; /* index of the selected track */

    bool selected; /* `found` is a call of that track */

    struct vw_found found;

    int top; /* first row of the tracks that is shown */

    enum vw_mode mode;

    char prompt[VW_PROMPT]; /* what is typed */

    char pattern[VW_PROMPT]; /* of the last search */

    int64_t marks[VW_MARKS]; /* -1: not set */

    int last_mark; /* -1: none */

    int64_t measure_from; /* -1: nothing is being measured */

    int64_t follow; /* the symbol whose calls stand out; 0: all are alike */

    struct vw_list list;

    bool list_open, details;

    bool hide_kernel;

    bool quit;

    char message[2048]; /* shown in the footer until the next key */
};

enum vw_request {
    VW_REQ_NONE,
    VW_REQ_NEXT,
    VW_REQ_PREVIOUS,
    VW_REQ_DOWN,
    VW_REQ_UP,
    VW_REQ_ZOOM_IN,
    VW_REQ_ZOOM_OUT,
    VW_REQ_PAN_LEFT,
    VW_REQ_PAN_RIGHT,
    VW_REQ_ALL,
    VW_REQ_ZOOM_CALL,
    VW_REQ_ZOOM_BACK,
    VW_REQ_PAGE_DOWN,
    VW_REQ_PAGE_UP,
    VW_REQ_START,
    VW_REQ_END,
    VW_REQ_NEXT_TRACK,
    VW_REQ_PREVIOUS_TRACK,
    VW_REQ_SEARCH,
    VW_REQ_SEARCH_NEXT,
    VW_REQ_SEARCH_PREVIOUS,
    VW_REQ_HELP,
    VW_REQ_NEXT_GAP,
    VW_REQ_PREVIOUS_GAP,
    VW_REQ_STALL,
    VW_REQ_LONGEST_CHILD,
    VW_REQ_PARENT,
    VW_REQ_SET_MARK,
    VW_REQ_GO_MARK,
    VW_REQ_COLLAPSE,
    VW_REQ_KERNEL,
    VW_REQ_COMMAND,
    VW_REQ_SQL,
    VW_REQ_DETAILS,
    VW_REQ_LIST_FUNCTIONS,
    VW_REQ_LIST_CALLS,
    VW_REQ_LIST_HITS,
    VW_REQ_LIST_STALLS,
    VW_REQ_LIST_GAPS,
    VW_REQ_LIST_MARKS,
    VW_REQ_PIN,
    VW_REQ_COLLAPSE_OTHERS,
    VW_REQ_FOLLOW,
    VW_REQ_MEASURE,
    VW_REQ_REDRAW,
    VW_REQ_QUIT,
};

/* Keys: a Unicode code point, or one of these. */
enum vw_key {
    VW_KEY_UP = 0x110000,
    VW_KEY_DOWN,
    VW_KEY_LEFT,
    VW_KEY_RIGHT,
    VW_KEY_PAGE_UP,
    VW_KEY_PAGE_DOWN,
    VW_KEY_HOME,
    VW_KEY_END,
    VW_KEY_BACKTAB,
    VW_KEY_BACKSPACE,
    VW_KEY_F1,
    VW_KEY_MOUSE = 0x40000000, /* and vw_mouse */
};

/* What the mouse did, as a key: at a column and row of the screen, of at most 8191. A drag has the distance
 * in columns, and rows, from where it began, behind a bias of 4096. */
enum vw_mouse { VW_CLICK, VW_DOUBLE_CLICK, VW_WHEEL_UP, VW_WHEEL_DOWN, VW_DRAG };
static inline uint32_t vw_mouse_key(enum vw_mouse what, int x, int y)
{
    return VW_KEY_MOUSE | (uint32_t)what << 26 | ((uint32_t)y & 8191) << 13 | ((uint32_t)x & 8191);
}

struct vw_binding {
    uint32_t key;

    enum vw_request request;

    const char *shown; /* how the help names the key */

    const char *name; /* the same as a `:command`, and what the help says it does, after a blank */

    const char *help;
};

/* All bindings, ended by request NONE; several keys may have one request (the help shows those with `help`).
 */
extern const struct vw_binding vw_bindings[];

/* Starts at the stall, or shows everything. The trace stays the caller's; vw_view_free frees what the view
 * owns. */
void vw_view_free(struct vw_view *v);
void vw_view_init(struct vw_view *v, struct vw_trace *trace, struct vw_screen *screen);

/* Handles one key in whatever mode there is. ST_EFAIL: the database could not be read. */
int vw_view_key(struct vw_view *v, uint32_t key, struct st_error *err);

/* Reads one key of a script: a UTF-8 character, or a name in angle brackets (<Enter>, <Esc>, <Tab>, <Up>,
 * <PgDn>, <C-l>, <lt> ...). Advances *text. ST_EUSAGE: an unknown name. */
int vw_script_key(const char **text, uint32_t *key, struct st_error *err);

/* Carries out one request. */
int vw_view_request(struct vw_view *v, enum vw_request request, struct st_error *err);

/* Moves the window, never outside the trace and never under 1 ns a column. */
void vw_view_window(struct vw_view *v, int64_t from, int64_t to);
void vw_view_remember(struct vw_view *v);

/* Makes the call the selection and brings it into the window. */
void vw_view_select(struct vw_view *v, const struct vw_found *found);

/* Moves the window so that a time of a thread (0: of none) is in it. */
void vw_view_go(struct vw_view *v, int64_t thread_id, int64_t time);

/* What the mouse asks for: a key made by vw_mouse_key. */
int vw_view_mouse(struct vw_view *v, uint32_t key, struct st_error *err);

/* Panes (panes.c). vw_list_key returns 1 when the open list took the key. */
int vw_open_list(struct vw_view *v, enum vw_request request, struct st_error *err);
int vw_run_sql(struct vw_view *v, const char *sql);
int vw_list_key(struct vw_view *v, uint32_t key, struct st_error *err);
int vw_draw_details(struct vw_view *v, int first, int rows, struct st_error *err);

/* How many rows of the screen the tracks, the details and the list have. */
int vw_track_area(const struct vw_view *v);
int vw_detail_area(const struct vw_view *v);
int vw_list_area(const struct vw_view *v);

/* Writes the screen as text; the file appears when it is whole. */
int vw_save_screen(const struct vw_screen *s, const char *path, struct st_error *err);

/* Draws everything. ST_EFAIL: the database could not be read; the screen then holds what was drawn so far. */
int vw_draw(struct vw_view *v, struct st_error *err);

/* Parts of vw_draw. */
int vw_draw_tracks(struct vw_view *v, int first, int rows, struct st_error *err);
int vw_draw_cpus(struct vw_view *v, int first, int rows, struct st_error *err);
void vw_draw_footer(struct vw_view *v);
void vw_draw_help(struct vw_view *v);

/* The first row of a track among all rows of all tracks, and how many rows it has. */
int vw_track_row(const struct vw_view *v, int thread);
int vw_track_rows(const struct vw_view *v, int thread);

/* How many rows there are: those of the tracks, and one a CPU. And the CPU of a row; -1: none. */
int vw_all_rows(const struct vw_view *v);
int64_t vw_cpu_under(const struct vw_view *v, int row);

/* The column of a time, in 0..width (of the screen); may lie outside for times outside the window. */
int vw_column(const struct vw_view *v, int64_t time);

#endif
