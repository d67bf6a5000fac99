/* The drawn screen: a grid of cells that a terminal shows or a test compares. */
#ifndef ST_VIEWER_SCREEN_H
#define ST_VIEWER_SCREEN_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a cell means; the terminal turns it into colours. A module's bars take one of VW_STYLE_BAR to
 * VW_STYLE_BAR_LAST. */
enum vw_style {
    VW_STYLE_PLAIN,
    VW_STYLE_TITLE,
    VW_STYLE_DIM,
    VW_STYLE_TRACK,
    VW_STYLE_SELECTED,
    VW_STYLE_STALL,
    VW_STYLE_GAP,
    VW_STYLE_OFFCPU,
    VW_STYLE_KERNEL,
    VW_STYLE_BAR,
    VW_STYLE_BAR_LAST = VW_STYLE_BAR + 23,
    VW_STYLES
};

/* Cells of a bar, for terminals that can fill them: what is drawn in the text is a line between brackets. */
enum vw_fill {
    VW_FILL_NONE,
    VW_FILL_MIDDLE,
    VW_FILL_BRACKET, /* filled, the bracket in it left out */
    VW_FILL_LEFT_END,
    VW_FILL_RIGHT_END,
};

struct vw_cell {
    uint32_t cp; /* 0: the right half of a wide character before it */

    uint8_t style;

    uint8_t fill; /* enum vw_fill */

    uint8_t eighths; /* of an end: where in the cell the bar begins or ends */
};

struct vw_screen {
    int width, height;

    bool ascii; /* only characters below 128 are put */

    struct vw_cell *cells;
};

/* Gives the screen this size (at least 1 x 1) and clears it. ST_ENOMEM leaves it as it was. */
int vw_screen_size(struct vw_screen *s, int width, int height, struct st_error *err);
void vw_screen_clear(struct vw_screen *s);
void vw_screen_free(struct vw_screen *s);

/* Puts one character; outside the grid it does nothing. With `ascii` set, `fallback` is put instead. */
void vw_put(struct vw_screen *s, int x, int y, uint32_t cp, char fallback, enum vw_style style);

/* Marks a cell that was put as part of a bar. */
void vw_fill(struct vw_screen *s, int x, int y, enum vw_fill fill, int eighths);

/* Puts printable UTF-8 text into at most `width` columns (cut at the end; combining marks are dropped, a wide
 * character that does not fit too; in ascii, others become '?'). Returns the columns used. */
int vw_put_text(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *text);

/* As vw_put_text for text that is wider than `width`: its middle is left out, with ".." in its place. */
int vw_put_cut(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *text);

/* As text: a line a row, blanks at the end cut. */
void vw_screen_print(const struct vw_screen *s, FILE *out);

#endif
