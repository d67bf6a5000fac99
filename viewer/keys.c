/* Keys and their requests. */
#include "base/nearest.h"
#include "base/safetext.h"
#include "viewer/view.h"

#include <stdio.h>
#include <string.h>

const struct vw_binding vw_bindings[] = {
    {'l', VW_REQ_NEXT, "l Right", "next", "next call of this depth"},
    {VW_KEY_RIGHT, VW_REQ_NEXT, NULL, NULL, NULL},
    {'h', VW_REQ_PREVIOUS, "h Left", "previous", "previous call of this depth"},
    {VW_KEY_LEFT, VW_REQ_PREVIOUS, NULL, NULL, NULL},
    {'j', VW_REQ_DOWN, "j Down", "down", "into its first call; next track"},
    {VW_KEY_DOWN, VW_REQ_DOWN, NULL, NULL, NULL},
    {'k', VW_REQ_UP, "k Up", "up", "to its caller; track above"},
    {VW_KEY_UP, VW_REQ_UP, NULL, NULL, NULL},
    {'w', VW_REQ_ZOOM_IN, "w +", "zoom-in", "zoom in"},
    {'+', VW_REQ_ZOOM_IN, NULL, NULL, NULL},
    {'=', VW_REQ_ZOOM_IN, NULL, NULL, NULL},
    {'s', VW_REQ_ZOOM_OUT, "s -", "zoom-out", "zoom out"},
    {'-', VW_REQ_ZOOM_OUT, NULL, NULL, NULL},
    {'a', VW_REQ_PAN_LEFT, "a", "left", "move the window back"},
    {'d', VW_REQ_PAN_RIGHT, "d", "right", "move the window on"},
    {'0', VW_REQ_ALL, "0", "all", "show the whole trace"},
    {'\r', VW_REQ_ZOOM_CALL, "Enter", "zoom-call", "zoom to the call"},
    {'\n', VW_REQ_ZOOM_CALL, NULL, NULL, NULL},
    {033, VW_REQ_ZOOM_BACK, "Esc", "back", "zoom back"},
    {VW_KEY_BACKSPACE, VW_REQ_ZOOM_BACK, NULL, NULL, NULL},
    {VW_KEY_PAGE_DOWN, VW_REQ_PAGE_DOWN, "PgDn", "page-down", "scroll the tracks down"},
    {VW_KEY_PAGE_UP, VW_REQ_PAGE_UP, "PgUp", "page-up", "scroll the tracks up"},
    {'g', VW_REQ_START, "g", "start", "to the start of the trace"},
    {VW_KEY_HOME, VW_REQ_START, NULL, NULL, NULL},
    {'G', VW_REQ_END, "G", "end", "to its end"},
    {VW_KEY_END, VW_REQ_END, NULL, NULL, NULL},
    {'\t', VW_REQ_NEXT_TRACK, "Tab", "next-track", "next thread"},
    {VW_KEY_BACKTAB, VW_REQ_PREVIOUS_TRACK, "S-Tab", "previous-track", "previous thread"},
    {'/', VW_REQ_SEARCH, "/", "search", "search part of a function's name"},
    {'n', VW_REQ_SEARCH_NEXT, "n", "search-next", "next hit"},
    {'N', VW_REQ_SEARCH_PREVIOUS, "N", "search-previous", "previous hit"},
    {']', VW_REQ_NEXT_GAP, "]", "next-gap", "next gap"},
    {'[', VW_REQ_PREVIOUS_GAP, "[", "previous-gap", "previous gap"},
    {'t', VW_REQ_STALL, "t", "stall", "to the stall that fired"},
    {'L', VW_REQ_LONGEST_CHILD, "L", "longest-child", "into its longest call"},
    {'u', VW_REQ_PARENT, "u", "parent", "to its caller"},
    {'m', VW_REQ_SET_MARK, "m a..z", "mark", "mark the selection's start"},
    {'\'', VW_REQ_GO_MARK, "' a..z", "go-mark", "jump to a mark"},
    {' ', VW_REQ_COLLAPSE, "Space", "collapse", "collapse or open the thread"},
    {'K', VW_REQ_KERNEL, "K", "kernel", "hide or show kernel frames"},
    {'p', VW_REQ_PIN, "p", "pin", "pin the thread to the top"},
    {'C', VW_REQ_COLLAPSE_OTHERS, "C", "collapse-others", "collapse all other threads"},
    {'f', VW_REQ_FOLLOW, "f", "follow", "make its function stand out"},
    {'M', VW_REQ_MEASURE, "M", "measure", "measure from here, to here"},
    {'i', VW_REQ_DETAILS, "i", "details", "more or less about the call"},
    {';', VW_REQ_SQL, ";", "sql", "SQL: its rows in a list"},
    {'F', VW_REQ_LIST_FUNCTIONS, "F", "functions", "list the functions"},
    {'c', VW_REQ_LIST_CALLS, "c", "calls", "list its function's calls"},
    {'H', VW_REQ_LIST_HITS, "H", "hits", "list the search's hits"},
    {'S', VW_REQ_LIST_STALLS, "S", "stalls", "list the stalls"},
    {'x', VW_REQ_LIST_GAPS, "x", "gaps", "list what is missing"},
    {'e', VW_REQ_LIST_MARKS, "e", "events", "list the trace's marks"},
    {':', VW_REQ_COMMAND, ":", "command", "any of these by its name"},
    {'?', VW_REQ_HELP, "? F1", "help", "this help"},
    {VW_KEY_F1, VW_REQ_HELP, NULL, NULL, NULL},
    {'L' & 31, VW_REQ_REDRAW, "C-l", "redraw", "draw anew"},
    {'q', VW_REQ_QUIT, "q", "quit", "end"},
    {0, VW_REQ_NONE, NULL, NULL, NULL},
};

static const struct {
    const char *name;

    uint32_t key;
} key_names[] = {
    {"Enter", '\r'},
    {"Esc", 033},
    {"Tab", '\t'},
    {"S-Tab", VW_KEY_BACKTAB},
    {"Up", VW_KEY_UP},
    {"Down", VW_KEY_DOWN},
    {"Left", VW_KEY_LEFT},
    {"Right", VW_KEY_RIGHT},
    {"PgUp", VW_KEY_PAGE_UP},
    {"PgDn", VW_KEY_PAGE_DOWN},
    {"Home", VW_KEY_HOME},
    {"End", VW_KEY_END},
    {"Space", ' '},
    {"Backspace", VW_KEY_BACKSPACE},
    {"F1", VW_KEY_F1},
    {"lt", '<'},
    {"C-l", 'L' & 31},
};

enum { KEY_NAMES = sizeof(key_names) / sizeof(key_names[0]) };

/* <Click:X,Y>, <DoubleClick:X,Y>, <WheelUp:X,Y>, <WheelDown:X,Y>, <Drag:DX,DY>. */
static bool mouse_event(const char *text, uint32_t *key)
{
    static const struct {
        const char *format;

        enum vw_mouse what;
    } events[] = {{"<Click:%d,%d>", VW_CLICK},
                  {"<DoubleClick:%d,%d>", VW_DOUBLE_CLICK},
                  {"<WheelUp:%d,%d>", VW_WHEEL_UP},
                  {"<WheelDown:%d,%d>", VW_WHEEL_DOWN},
                  {"<Drag:%d,%d>", VW_DRAG}};

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        int x, y, bias = events[i].what == VW_DRAG ? 4096 : 0;

        if (sscanf(text, events[i].format, &x, &y) != 2)
            continue;
        if (x < -bias || y < -bias || x >= 4096 || y >= 4096)
            return false;
        *key = vw_mouse_key(events[i].what, x + bias, y + bias);
        return true;
    }
    return false;
}

int vw_script_key(const char **text, uint32_t *key, struct st_error *err)
{
    const char *names[KEY_NAMES];
    const char *close, *near;
    size_t len;

    if (**text != '<') {
        len = st_utf8_decode(*text, strlen(*text), key);
        if (!len)
            return st_fail(err, ST_EUSAGE, "--keys: byte 0x%02x is no UTF-8", (unsigned char)**text);
        *text += len;
        return 0;
    }
    close = strchr(*text, '>');
    if (close && mouse_event(*text, key)) {
        *text = close + 1;
        return 0;
    }
    if (!close)
        return st_fail(err, ST_EUSAGE, "--keys: '%.20s' has no '>' (write <lt> for the key itself)", *text);
    len = (size_t)(close - *text) - 1;
    for (int i = 0; i < KEY_NAMES; i++) {
        names[i] = key_names[i].name;
        if (strlen(names[i]) == len && !strncmp(names[i], *text + 1, len)) {
            *key = key_names[i].key;
            *text = close + 1;
            return 0;
        }
    }
    st_fail(err, ST_EUSAGE, "--keys: no key is named <%.*s>", (int)len, *text + 1);
    near = st_nearest(*text + 1, len, names, KEY_NAMES);
    return near ? st_hint(err, "did you mean <%s>?", near) : err ? err->code : ST_EUSAGE;
}
