/* The timeline on a terminal, by ncurses. */
#ifndef ST_VIEWER_TERMINAL_H
#define ST_VIEWER_TERMINAL_H

#include "viewer/view.h"

/* Does the terminal that TERM names know how to move the cursor and to clear the screen? Without (TERM=dumb,
 * not set, not known) there is no timeline on it, only text. */
bool vw_terminal_can_draw(void);

/* Runs until the user quits. The terminal is restored in every case. ST_ECANNOT: the terminal is not known or
 * too dumb; else what vw_draw and vw_view_key return. */
int vw_terminal_run(struct vw_view *v, struct st_error *err);

#endif
