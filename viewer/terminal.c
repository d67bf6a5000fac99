/* ncurses: keys in, cells out. */
#include "viewer/terminal.h"

#define NCURSES_WIDECHAR 1
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    int code;

    uint32_t key;
} curses_keys[] = {
    {KEY_UP, VW_KEY_UP},         {KEY_DOWN, VW_KEY_DOWN},
    {KEY_LEFT, VW_KEY_LEFT},     {KEY_RIGHT, VW_KEY_RIGHT},
    {KEY_PPAGE, VW_KEY_PAGE_UP}, {KEY_NPAGE, VW_KEY_PAGE_DOWN},
    {KEY_HOME, VW_KEY_HOME},     {KEY_END, VW_KEY_END},
    {KEY_BTAB, VW_KEY_BACKTAB},  {KEY_BACKSPACE, VW_KEY_BACKSPACE},
    {KEY_F(1), VW_KEY_F1},       {KEY_ENTER, '\r'},
};

static void set_colours(void)
{
    static const short bars[] = {COLOR_GREEN, COLOR_CYAN,    COLOR_YELLOW,
                                 COLOR_BLUE,  COLOR_MAGENTA, COLOR_WHITE};

    start_color();
    use_default_colors();
    init_pair(VW_STYLE_TITLE, COLOR_BLACK, COLOR_WHITE);
    init_pair(VW_STYLE_DIM, -1, -1);
    init_pair(VW_STYLE_TRACK, COLOR_GREEN, -1);
    init_pair(VW_STYLE_SELECTED, COLOR_BLACK, COLOR_YELLOW);
    init_pair(VW_STYLE_STALL, COLOR_RED, -1);
    init_pair(VW_STYLE_GAP, COLOR_RED, -1);
    init_pair(VW_STYLE_OFFCPU, COLOR_BLUE, -1);
    init_pair(VW_STYLE_KERNEL, COLOR_RED, -1);
    for (int i = 0; i < 6; i++)
        init_pair((short)(VW_STYLE_BAR + i), bars[i], -1);
}

static attr_t attributes(enum vw_style style)
{
    if (style == VW_STYLE_DIM)
        return A_DIM;
    if (!has_colors())
        return style == VW_STYLE_SELECTED || style == VW_STYLE_TITLE ? A_REVERSE
               : style == VW_STYLE_STALL                             ? A_BOLD
                                                                     : A_NORMAL;
    return style == VW_STYLE_STALL ? A_BOLD : A_NORMAL;
}

static void show(const struct vw_screen *s)
{
    for (int y = 0; y < s->height; y++) {
        for (int x = 0; x < s->width; x++) {
            const struct vw_cell *c = &s->cells[y * s->width + x];
            wchar_t text[2] = {(wchar_t)c->cp, 0};
            cchar_t cell;

            if (!c->cp)
                continue;
            setcchar(&cell, text, attributes(c->style), has_colors() ? (short)c->style : 0, NULL);
            mvadd_wch(y, x, &cell);
        }
    }
    refresh();
}

static uint32_t translate(int rc, wint_t key)
{
    if (rc != KEY_CODE_YES)
        return key == 127 ? VW_KEY_BACKSPACE : (uint32_t)key;
    for (size_t i = 0; i < sizeof(curses_keys) / sizeof(curses_keys[0]); i++)
        if (curses_keys[i].code == (int)key)
            return curses_keys[i].key;
    return 0;
}

static int resize(struct vw_view *v, struct st_error *err)
{
    int rc = vw_screen_size(v->screen, COLS, LINES, err);

    vw_view_window(v, v->window.from, v->window.to);
    erase();
    return rc;
}

static int loop(struct vw_view *v, struct st_error *err)
{
    int rc = 0;

    while (!rc && !v->quit) {
        wint_t key;
        int got;

        rc = vw_draw(v, err);
        if (rc)
            break;
        show(v->screen);
        got = get_wch(&key);
        if (got == ERR)
            return st_fail(err, ST_EFAIL, "the terminal went away");
        if (got == KEY_CODE_YES && key == KEY_RESIZE)
            rc = resize(v, err);
        else
            rc = vw_view_key(v, translate(got, key), err);
        if (key == ('L' & 31))
            clearok(stdscr, TRUE);
    }
    return rc;
}

int vw_terminal_run(struct vw_view *v, struct st_error *err)
{
    SCREEN *terminal;
    int rc;

    setlocale(LC_ALL, "");
    set_escdelay(25);
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal)
        return st_fail(err, ST_ECANNOT, "the terminal '%s' is not known: set TERM, or use a pipe for text",
                       getenv("TERM") ? getenv("TERM") : "");
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    curs_set(0);
    if (has_colors())
        set_colours();
    rc = resize(v, err);
    if (!rc)
        rc = loop(v, err);
    endwin();
    delscreen(terminal);
    return rc;
}
