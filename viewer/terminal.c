/* ncurses: keys and mouse in, cells out. */
#include "viewer/terminal.h"

#define NCURSES_WIDECHAR 1
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
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

enum {
    BARS = VW_STYLE_BAR_LAST - VW_STYLE_BAR + 1,
    FEW = 6,               /* colours of bars where there are 8 or 16 in all */
    FIRST_OWN_COLOUR = 32, /* with 24 bits: colours that we define */
};

/* Can bars be areas, and of how many colours? */
static bool areas;
static int bar_colours = BARS;

/* A style's pair of colours: it on the terminal's background; `filled`: black on it. Terminals with 8 colours
 * have 64 pairs: bars then share theirs. */
static short pair_of(int style, bool filled)
{
    int pair = style < VW_STYLE_BAR ? style : VW_STYLE_BAR + (style - VW_STYLE_BAR) % bar_colours;

    return (short)(filled ? VW_STYLE_BAR + bar_colours + pair : pair);
}

/* A hue of 0 to 359 with a saturation and lightness that black text can be read on, in thousandths. */
static void hue_to_rgb(int hue, short rgb[3])
{
    static const int offsets[3] = {0, 240, 120};

    for (int i = 0; i < 3; i++) {
        int h = (hue + offsets[i]) % 360;
        int level = h < 60 ? h * 1000 / 60 : h < 180 ? 1000 : h < 240 ? (240 - h) * 1000 / 60 : 0;

        rgb[i] = (short)(480 + level * 400 / 1000);
    }
}

/* The nearest of the 6 x 6 x 6 colours that terminals with 256 have from 16 on. */
static short cube_colour(const short rgb[3])
{
    int index = 0;

    for (int i = 0; i < 3; i++)
        index = index * 6 + (rgb[i] * 5 + 500) / 1000;
    return (short)(16 + index);
}

static short bar_colour(int i)
{
    static const short few[FEW] = {COLOR_GREEN, COLOR_CYAN,    COLOR_YELLOW,
                                   COLOR_BLUE,  COLOR_MAGENTA, COLOR_WHITE};
    const char *depth = getenv("COLORTERM");
    short rgb[3];

    if (COLORS < 256)
        return few[i % FEW];
    hue_to_rgb(20 + i * 320 / BARS, rgb);
    if (can_change_color() && depth && (!strcmp(depth, "truecolor") || !strcmp(depth, "24bit")) &&
        !init_color((short)(FIRST_OWN_COLOUR + i), rgb[0], rgb[1], rgb[2]))
        return (short)(FIRST_OWN_COLOUR + i);
    return cube_colour(rgb);
}

static void pair(int style, short colour)
{
    init_pair(pair_of(style, false), colour, -1);
    init_pair(pair_of(style, true), COLOR_BLACK, colour);
}

static void set_colours(bool ascii)
{
    start_color();
    use_default_colors();
    bar_colours = COLORS < 256 ? FEW : BARS;
    init_pair(VW_STYLE_TITLE, COLOR_BLACK, COLOR_WHITE);
    pair(VW_STYLE_DIM, COLORS >= 256 ? 244 : -1);
    init_pair(VW_STYLE_TRACK, COLOR_GREEN, -1);
    init_pair(VW_STYLE_SELECTED, COLOR_BLACK, COLOR_YELLOW);
    init_pair(pair_of(VW_STYLE_SELECTED, true), COLOR_BLACK, COLOR_YELLOW);
    init_pair(VW_STYLE_STALL, COLOR_RED, -1);
    init_pair(VW_STYLE_GAP, COLOR_RED, -1);
    init_pair(VW_STYLE_OFFCPU, COLOR_BLUE, -1);
    pair(VW_STYLE_KERNEL, COLORS >= 256 ? 209 : COLOR_RED);
    for (int i = 0; i < bar_colours; i++)
        pair(VW_STYLE_BAR + i, bar_colour(i));
    areas = COLORS >= 8 && COLOR_PAIRS > pair_of(VW_STYLE_BAR + bar_colours - 1, true) && !ascii;
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

/* A bar's cell as an area: its middle filled, its ends to the eighth of a cell. Without colours areas are in
 * reverse; the selected one is bold. */
static void fill_cell(const struct vw_cell *c, cchar_t *cell)
{
    bool line =
        c->cp == 0x2500 || c->cp == 0x2550 || c->fill == VW_FILL_BRACKET || c->fill == VW_FILL_LEFT_END;
    wchar_t text[2] = {line ? L' ' : (wchar_t)c->cp, 0};
    bool colour = has_colors();
    attr_t attribute = colour ? A_NORMAL : A_REVERSE;
    short colours = pair_of(c->style, true);

    if (c->fill == VW_FILL_RIGHT_END || (c->fill == VW_FILL_LEFT_END && c->eighths)) {
        /* Blocks fill their cell from the left: the part before a beginning is the block, in reverse. */
        text[0] = c->eighths ? (wchar_t)(0x2590 - c->eighths) : L' ';
        attribute = c->fill == VW_FILL_LEFT_END ? A_REVERSE : A_NORMAL;
        colours = c->style == VW_STYLE_SELECTED ? VW_STYLE_BAR + 2 : pair_of(c->style, false);
    }
    if (!colour && c->style == VW_STYLE_SELECTED)
        attribute |= A_BOLD;
    setcchar(cell, text, attribute, colour ? colours : 0, NULL);
}

/* Without colours, kernel code is told apart by staying a double line. */
static bool is_area(const struct vw_cell *c)
{
    return areas && c->fill != VW_FILL_NONE && (has_colors() || c->style != VW_STYLE_KERNEL);
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
            if (is_area(c))
                fill_cell(c, &cell);
            else
                setcchar(&cell, text, attributes(c->style), has_colors() ? pair_of(c->style, false) : 0,
                         NULL);
            mvadd_wch(y, x, &cell);
        }
    }
    refresh();
}

/* Where a button went down, to tell a drag from a click. */
static struct {
    int x, y;

    bool down, moved;
} held;

static uint32_t drag_key(const MEVENT *e)
{
    int dx = e->x - held.x, dy = e->y - held.y;

    if (!dx && !dy)
        return 0;
    held.x = e->x;
    held.y = e->y;
    held.moved = true;
    return vw_mouse_key(VW_DRAG, dx + 4096, dy + 4096);
}

static uint32_t mouse_key(void)
{
    MEVENT e;

    if (getmouse(&e) != OK)
        return 0;
    if (e.bstate & BUTTON4_PRESSED)
        return vw_mouse_key(VW_WHEEL_UP, e.x, e.y);
    if (e.bstate & BUTTON5_PRESSED)
        return vw_mouse_key(VW_WHEEL_DOWN, e.x, e.y);
    if (e.bstate & BUTTON1_DOUBLE_CLICKED)
        return vw_mouse_key(VW_DOUBLE_CLICK, e.x, e.y);
    if (e.bstate & BUTTON1_CLICKED)
        return vw_mouse_key(VW_CLICK, e.x, e.y);
    if (e.bstate & BUTTON1_PRESSED) {
        held.x = e.x;
        held.y = e.y;
        held.down = true;
        held.moved = false;
        return 0;
    }
    if (e.bstate & BUTTON1_RELEASED) {
        bool dragged = held.moved;
        uint32_t last = held.down ? drag_key(&e) : 0;

        held.down = false;
        return last ? last : dragged ? 0 : vw_mouse_key(VW_CLICK, e.x, e.y);
    }
    return held.down ? drag_key(&e) : 0;
}

static uint32_t translate(int rc, wint_t key)
{
    if (rc != KEY_CODE_YES)
        return key == 127 ? VW_KEY_BACKSPACE : (uint32_t)key;
    if (key == KEY_MOUSE)
        return mouse_key();
    for (size_t i = 0; i < sizeof(curses_keys) / sizeof(curses_keys[0]); i++)
        if (curses_keys[i].code == (int)key)
            return curses_keys[i].key;
    return 0;
}

/* A change between curses' first look at the size and its handler of the signal is not told. */
static void take_size(void)
{
    struct winsize size;

    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
        resizeterm(size.ws_row, size.ws_col);
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
        if (got == KEY_CODE_YES && key == KEY_RESIZE) {
            rc = resize(v, err);
        } else {
            uint32_t pressed = translate(got, key);

            rc = pressed ? vw_view_key(v, pressed, err) : 0;
        }
        if (got == OK && key == ('L' & 31))
            clearok(stdscr, TRUE);
    }
    return rc;
}

/* Reports of the mouse's way while a button is down: curses asks for them only by this sequence of xterm's.
 */
static void watch_mouse(bool on)
{
    const char *name = termname();

    mousemask(on ? ALL_MOUSE_EVENTS | REPORT_MOUSE_POSITION : 0, NULL);
    mouseinterval(0);
    if (!strstr(name, "xterm") && !strstr(name, "screen") && !strstr(name, "tmux") && !strstr(name, "rxvt"))
        return;
    fputs(on ? "\033[?1002h" : "\033[?1002l", stdout);
    fflush(stdout);
}

bool vw_terminal_can_draw(void)
{
    const char *move, *clear;
    bool can;
    int error;

    if (setupterm(NULL, STDOUT_FILENO, &error) == ERR)
        return false;
    move = tigetstr("cup");
    clear = tigetstr("clear");
    can = move && move != (char *)-1 && clear && clear != (char *)-1;
    del_curterm(cur_term);
    return can;
}

int vw_terminal_run(struct vw_view *v, struct st_error *err)
{
    SCREEN *terminal;
    int rc;

    setlocale(LC_CTYPE, "");
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
        set_colours(v->screen->ascii);
    else
        areas = !v->screen->ascii && termattrs() & A_REVERSE;
    watch_mouse(true);
    take_size();
    rc = resize(v, err);
    if (!rc)
        rc = loop(v, err);
    watch_mouse(false);
    endwin();
    delscreen(terminal);
    return rc;
}
