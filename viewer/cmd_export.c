/* stalltrap export: a trace in other people's formats. */
#include "base/log.h"
#include "base/nearest.h"
#include "base/opt.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/export/export.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct vw_export_ops *const formats[] = {&vw_export_perfetto, &vw_export_chrome,
                                                      &vw_export_folded,   &vw_export_speedscope,
                                                      &vw_export_svg,      &vw_export_html};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

struct options {
    const struct vw_export_ops *format;

    const char *output; /* NULL or "-": standard output */

    uint64_t from, to;

    ST_VEC(const char *) threads;
};

static int set_format(void *to, const char *text, struct st_error *err)
{
    struct options *o = to;
    const char *names[FORMATS];
    const char *near;
    char list[128] = "";

    for (int i = 0; i < FORMATS; i++) {
        size_t used = strlen(list);

        names[i] = formats[i]->name;
        if (!strcmp(text, names[i])) {
            o->format = formats[i];
            return 0;
        }
        snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    }
    near = st_nearest(text, strlen(text), names, FORMATS);
    st_fail(err, ST_EUSAGE, "--to: unknown format '%s' (%s)", text, list);
    return near ? st_hint(err, "did you mean '%s'?", near) : ST_EUSAGE;
}

static void complete_format(struct st_completion *c)
{
    for (int i = 0; i < FORMATS; i++)
        st_complete_word(c, formats[i]->name, formats[i]->help);
}

static int add_thread(void *to, const char *text, struct st_error *err)
{
    struct options *o = to;

    return st_vec_push(&o->threads, text) ? st_nomem(err, "the options") : 0;
}

static int check(int argc, char **argv, int first, const struct options *o, struct st_error *err)
{
    if (first == argc)
        return st_fail(err, ST_EUSAGE, "which trace database? stalltrap export TRACE.db --to FORMAT");
    if (argc - first > 1)
        return st_fail(err, ST_EUSAGE, "one trace database at a time ('%s' is the second)", argv[first + 1]);
    if (!o->format)
        return st_fail(err, ST_EUSAGE,
                       "to which format? --to perfetto, chrome, folded, speedscope, svg or html");
    if (o->from >= o->to)
        return st_fail(err, ST_EUSAGE, "--from is not before --to-time: there is nothing between them");
    return first;
}

static int parse(int argc, char **argv, struct options *o, struct st_error *err)
{
    static const struct st_completer completers[] = {
        {"to", complete_format}, {NULL, st_complete_trace}, {NULL, NULL}};
    static const struct st_opt_usage usage = {
        "export", "TRACE.db --to FORMAT [OPTION]...",
        "Writes a trace in another tool's format: perfetto, chrome, folded, speedscope, svg, html.",
        completers};
    const struct st_option table[] = {
        {"to", 0, "FORMAT", ST_OPT_CALL, o, "perfetto, chrome, folded, speedscope, svg or html", 0, 0,
         set_format, false},
        {"output", 'o', "FILE", ST_OPT_STRING, &o->output, "into FILE, not to standard output", 0, 0, NULL,
         false},
        {"from", 0, "DUR", ST_OPT_DURATION, &o->from, "leave out what ended before this time of the trace", 0,
         0, NULL, false},
        {"to-time", 0, "DUR", ST_OPT_DURATION, &o->to, "leave out what began at this time or later", 0, 0,
         NULL, false},
        {"thread", 0, "TID|NAME", ST_OPT_CALL, o, "only this thread (may be repeated)", 0, 0, add_thread,
         false},
        {0}};
    int first = st_opt_parse(&usage, table, argc, argv, false, err);

    return first <= 0 ? first : check(argc, argv, first, o, err);
}

static int export_all(struct vw_export *x, struct st_error *err)
{
    return tdb_read_all(vw_export_run(x, err), err);
}

static int to_stdout(struct vw_export *x, struct st_error *err)
{
    if (x->ops->binary && isatty(STDOUT_FILENO)) {
        st_fail(err, ST_EUSAGE, "%s is binary: it is not written to a terminal", x->ops->name);
        return st_hint(err, "name a file with -o FILE");
    }
    x->out = stdout;
    return export_all(x, err);
}

/* The file appears under its name when it is whole. */
static int to_file(struct vw_export *x, const char *path, struct st_error *err)
{
    struct st_outfile out;
    int rc = st_outfile_open(&out, path, err);

    if (rc)
        return rc;
    x->out = fdopen(dup(out.fd), "w");
    if (!x->out) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
        st_outfile_abort(&out);
        return rc;
    }
    rc = export_all(x, err);
    if (fclose(x->out) && !rc)
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
    if (rc) {
        st_outfile_abort(&out);
        return rc;
    }
    return st_outfile_commit(&out, true, err);
}

static sqlite3 *running; /* for the signal handler; sqlite3_interrupt may be called from one */

static void on_interrupt(int signal)
{
    (void)signal;
    if (running)
        sqlite3_interrupt(running);
}

/* An export that is interrupted fails, and so leaves no half a file. */
static void watch_signals(sqlite3 *db)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    running = db;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Calls that are made of samples do not go anywhere without a word of it. */
static void tell_sampled(sqlite3 *db, char *title, size_t size)
{
    sqlite3_stmt *stmt;
    size_t n = strlen(title);

    if (sqlite3_prepare_v2(db, "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'samples')", -1, &stmt, NULL))
        return;
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0))
        snprintf(title + n, size - n, " (SAMPLED: times are estimates, a call may be several or a part)");
    sqlite3_finalize(stmt);
}

static int run(const char *path, const struct options *o, struct st_error *err)
{
    const char *base = strrchr(path, '/');
    char title[512];
    struct vw_export x = {.ops = o->format,
                          .title = title,
                          .from = o->from > INT64_MAX ? INT64_MAX : (int64_t)o->from,
                          .to = o->to > INT64_MAX ? INT64_MAX : (int64_t)o->to,
                          .threads = o->threads.at,
                          .nthreads = o->threads.n};
    int rc = tdb_open(path, &x.db, err);

    if (rc)
        return rc;
    watch_signals(x.db);
    st_safe_text(title, sizeof(title), base ? base + 1 : path);
    tell_sampled(x.db, title, sizeof(title));
    rc = o->output && strcmp(o->output, "-") != 0 ? to_file(&x, o->output, err) : to_stdout(&x, err);
    running = NULL;
    st_progress_end();
    sqlite3_close(x.db);
    return rc;
}

int st_cmd_export(int argc, char **argv)
{
    struct options o = {.to = INT64_MAX};
    struct st_error err = {0};
    int first, rc;

    setlocale(LC_CTYPE, "C.UTF-8");
    first = rc = parse(argc, argv, &o, &err);
    if (first > 0)
        rc = run(argv[first], &o, &err);
    st_vec_free(&o.threads);
    return rc < 0 ? st_log_error("export", &err) : 0;
}
