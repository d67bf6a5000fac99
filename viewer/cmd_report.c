/* stalltrap report: ready-made answers, each one SQL file of viewer/reports. */
#include "base/log.h"
#include "base/nearest.h"
#include "base/opt.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/format.h"
#include "viewer/functions.h"
#include "viewer/report.h"
#include "viewer/sql.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

struct report_options {
    enum vw_format format;

    bool format_given;

    long stall;

    bool sql;
};

static int set_format(void *to, const char *text, struct st_error *err)
{
    struct report_options *o = to;

    o->format_given = true;
    return vw_parse_format(&o->format, text, err);
}

static int unknown_report(const char *name, struct st_error *err)
{
    const char *names[64];
    const char *near;
    char list[512] = "why";
    size_t n = 0;

    names[n++] = "why";
    for (const struct vw_sql *r = vw_reports; r->name && n < 64; r++) {
        size_t used = strlen(list);

        names[n++] = r->name;
        snprintf(list + used, sizeof(list) - used, ", %s", r->name);
    }
    st_fail(err, ST_EUSAGE, "no report '%s' (there are: %s)", name, list);
    near = st_nearest(name, strlen(name), names, n);
    return near ? st_hint(err, "did you mean '%s'?", near) : err->code;
}

static int run_sql(sqlite3 *db, const char *sql, const struct report_options *o, struct st_error *err)
{
    sqlite3_stmt *stmt;
    long rows;

    if (o->sql) {
        fputs(sql, stdout);
        return 0;
    }
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return st_fail(err, ST_EFAIL, "the report's SQL failed: %s", sqlite3_errmsg(db));
    rows = vw_print_rows(stmt, o->format, stdout, vw_terminal_width(stdout), err);
    sqlite3_finalize(stmt);
    return rows < 0 ? (int)rows : 0;
}

static int run(sqlite3 *db, const char *name, const struct report_options *o, struct st_error *err)
{
    if (!strcmp(name, "why")) {
        if (o->format_given && o->format != VW_TABLE)
            return st_fail(
                err, ST_EUSAGE,
                "the report 'why' is text; 'report TRACE.db stalls --format json' has its figures");
        return vw_report_why(db, o->stall, stdout, err);
    }
    for (const struct vw_sql *r = vw_reports; r->name; r++)
        if (!strcmp(r->name, name))
            return run_sql(db, r->text, o, err);
    return unknown_report(name, err);
}

static int parse(int argc, char **argv, struct report_options *o, struct st_error *err)
{
    static const struct st_opt_usage usage = {
        "report", "TRACE.db [NAME] [OPTION]...",
        "Ready-made answers. With no name: why did it stall. Others: top, stalls, offcpu, gaps."};
    const struct st_option table[] = {
        {"format", 'f', "FORMAT", ST_OPT_CALL, o, "table (default), csv or json", 0, 0, set_format, false},
        {"stall", 0, "ID", ST_OPT_NUMBER, &o->stall, "the stall to tell about, not the one that fired", 1,
         INT32_MAX, NULL, false},
        {"sql", 0, NULL, ST_OPT_FLAG, &o->sql, "print the report's SQL instead", 0, 0, NULL, false},
        {0}};
    int first = st_opt_parse(&usage, table, argc, argv, false, err);

    if (first <= 0)
        return first;
    if (first == argc)
        return st_fail(err, ST_EUSAGE, "which trace database? stalltrap report TRACE.db");
    if (argc - first > 2)
        return st_fail(err, ST_EUSAGE, "one report at a time ('%s' is the second)", argv[first + 2]);
    return first;
}

int st_cmd_report(int argc, char **argv)
{
    struct report_options o = {.format = VW_TABLE};
    struct st_error err = {0};
    sqlite3 *db = NULL;
    int first, rc;

    setlocale(LC_CTYPE, "C.UTF-8");
    first = rc = parse(argc, argv, &o, &err);
    if (first > 0) {
        rc = tdb_open(argv[first], &db, &err);
        if (!rc)
            rc = vw_add_functions(db, &err);
        if (!rc)
            rc = run(db, first + 1 < argc ? argv[first + 1] : "why", &o, &err);
        if (!rc && fflush(stdout))
            rc = st_fail_errno(&err, ST_EFAIL, "cannot write the report");
    }
    sqlite3_close(db);
    return rc < 0 ? st_log_error("report", &err) : 0;
}
