/* stalltrap view: the timeline on a terminal, as text on a pipe, or driven by a script of keys. */
#include "base/log.h"
#include "base/opt.h"
#include "base/units.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/format.h"
#include "viewer/terminal.h"
#include "viewer/view.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct view_options {
    const char *screen, *keys;

    const char *frames; /* where the times of the frames go; NULL: they are not drawn */

    int width, height;

    bool ascii;
};

static int parse_size(void *to, const char *text, struct st_error *err)
{
    struct view_options *o = to;
    int width, height, used = 0;

    if (sscanf(text, "%5dx%5d%n", &width, &height, &used) != 2 || text[used] || width < 1 || height < 1 ||
        width > 10000 || height > 10000)
        return st_fail(err, ST_EUSAGE, "--size: '%s' is no size: write COLUMNSxROWS, as 80x24", text);
    o->width = width;
    o->height = height;
    return 0;
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* When a frame was asked for. */
struct since {
    int64_t wall, cpu;
};

static struct since since_now(void)
{
    return (struct since){now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void tell_frame(FILE *out, int len, const char *key, struct since asked)
{
    struct since now = since_now();

    fprintf(out, "%lld %lld %.*s\n", (long long)(now.wall - asked.wall), (long long)(now.cpu - asked.cpu),
            len, key);
}

/* Plays the keys and draws a frame after each; writes a line a frame: nanoseconds from key to drawn,
 * nanoseconds of CPU time meanwhile, the key. */
static int time_frames(struct vw_view *v, const char *keys, const char *path, struct since asked,
                       struct st_error *err)
{
    FILE *out = fopen(path, "w");
    int rc;

    if (!out)
        return st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
    rc = vw_draw(v, err);
    tell_frame(out, 4, "open", asked);
    while (!rc && *keys && !v->quit) {
        const char *text = keys;
        uint32_t key;

        rc = vw_script_key(&keys, &key, err);
        asked = since_now();
        if (!rc)
            rc = vw_view_key(v, key, err);
        if (!rc)
            rc = vw_draw(v, err);
        tell_frame(out, (int)(keys - text), text, asked);
    }
    if (fclose(out) && !rc)
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
    return rc;
}

static int play_keys(struct vw_view *v, const char *keys, struct st_error *err)
{
    int rc = 0;

    while (!rc && *keys && !v->quit) {
        uint32_t key;

        rc = vw_script_key(&keys, &key, err);
        if (!rc)
            rc = vw_view_key(v, key, err);
    }
    return rc;
}

static int save_screen(const struct vw_screen *s, const char *path, struct st_error *err)
{
    if (strcmp(path, "-") != 0)
        return vw_save_screen(s, path, err);
    vw_screen_print(s, stdout);
    return fflush(stdout) ? st_fail_errno(err, ST_EFAIL, "cannot write the screen") : 0;
}

/* Without a terminal: the keys are played, the last frame is the result. */
static int run_headless(struct vw_trace *trace, const struct view_options *o, struct vw_screen *screen,
                        struct since opened, struct st_error *err)
{
    struct vw_view view;
    int rc;

    rc = vw_screen_size(screen, o->width ? o->width : 80, o->height ? o->height : 24, err);
    if (rc)
        return rc;
    vw_view_init(&view, trace, screen);
    if (o->frames)
        rc = time_frames(&view, o->keys ? o->keys : "", o->frames, opened, err);
    else
        rc = play_keys(&view, o->keys ? o->keys : "", err);
    if (!rc)
        rc = vw_draw(&view, err);
    vw_view_free(&view);
    rc = tdb_read_all(rc, err);
    return rc ? rc : save_screen(screen, o->screen ? o->screen : "-", err);
}

static int run_terminal(struct vw_trace *trace, const struct view_options *o, struct vw_screen *screen,
                        struct st_error *err)
{
    struct vw_view view;
    int rc = vw_screen_size(screen, 80, 24, err);

    if (rc)
        return rc;
    vw_view_init(&view, trace, screen);
    rc = play_keys(&view, o->keys ? o->keys : "", err);
    if (!rc)
        rc = vw_terminal_run(&view, err);
    vw_view_free(&view);
    return rc;
}

static int parse(int argc, char **argv, struct view_options *o, struct st_error *err)
{
    static const struct st_completer completers[] = {{NULL, st_complete_trace}, {NULL, NULL}};
    static const struct st_opt_usage usage = {
        "view", "TRACE.db [OPTION]...",
        "The timeline of a trace in the terminal; as text when stdout is none. ? lists the keys.",
        completers};
    const struct st_option table[] = {
        {"screen", 0, "FILE", ST_OPT_STRING, &o->screen, "no terminal: draw into FILE (- for stdout)", 0, 0,
         NULL, false},
        {"keys", 0, "KEYS", ST_OPT_STRING, &o->keys, "play these keys first, as t<Enter>/pump<Enter>", 0, 0,
         NULL, false},
        {"size", 0, "WxH", ST_OPT_CALL, o, "columns and rows without a terminal (80x24)", 0, 0, parse_size,
         false},
        {"frames", 0, "FILE", ST_OPT_STRING, &o->frames,
         "no terminal: draw after every key, and write the frames' times into FILE", 0, 0, NULL, false},
        {"ascii", 0, NULL, ST_OPT_FLAG, &o->ascii, "draw with ASCII characters only", 0, 0, NULL, false},
        {0}};
    int first = st_opt_parse(&usage, table, argc, argv, false, err);

    if (first <= 0)
        return first;
    if (first == argc)
        return st_fail(err, ST_EUSAGE, "which trace database? stalltrap view TRACE.db");
    if (argc - first > 1)
        return st_fail(err, ST_EUSAGE, "one trace database at a time ('%s' is the second)", argv[first + 1]);
    return first;
}

/* wcwidth needs a UTF-8 locale also where the user's is C; the drawing itself then stays ASCII. */
static bool set_locale(void)
{
    bool utf8;

    setlocale(LC_CTYPE, "");
    utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    if (!utf8)
        setlocale(LC_CTYPE, "C.UTF-8");
    return utf8;
}

int st_cmd_view(int argc, char **argv)
{
    struct view_options o = {0};
    struct vw_screen screen = {0};
    struct vw_trace *trace = NULL;
    struct st_error err = {0};
    bool utf8 = set_locale();
    int first = parse(argc, argv, &o, &err);
    int rc = first;

    if (first > 0) {
        struct since opened = since_now();
        bool headless = o.screen || o.frames || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) ||
                        !vw_terminal_can_draw();

        screen.ascii = o.ascii || !utf8;
        rc = vw_trace_open(argv[first], &trace, &err);
        if (!rc)
            rc = headless ? run_headless(trace, &o, &screen, opened, &err)
                          : run_terminal(trace, &o, &screen, &err);
    }
    vw_trace_close(trace);
    vw_screen_free(&screen);
    return rc < 0 ? st_log_error("view", &err) : 0;
}
