/* stalltrap report: ready-made answers, each one SQL file of viewer/reports. */
#include "base/log.h"
#include "base/nearest.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/vec.h"
#include "tracedb/descriptor.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/format.h"
#include "viewer/functions.h"
#include "viewer/parts.h"
#include "viewer/report.h"
#include "viewer/sql.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct report {
    enum vw_format format;

    bool format_given, sql;

    long stall, limit, depth; /* 0: not given */

    const char *path, *name;

    const char *operand; /* of the report: a function, or the other trace; NULL: none */
};

static int set_format(void *to, const char *text, struct st_error *err)
{
    struct report *r = to;

    r->format_given = true;
    return vw_parse_format(&r->format, text, err);
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
    return near ? st_hint(err, "did you mean '%s'?", near) : ST_EUSAGE;
}

/* TRACE.db, the report's name, and for `compare` one more trace. */
static void complete_operand(struct st_completion *c)
{
    if (c->operand == 1) {
        st_complete_word(c, "why", NULL);
        for (const struct vw_sql *r = vw_reports; r->name; r++)
            st_complete_word(c, r->name, NULL);
    } else
        st_complete_files(".db");
}

static bool is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static const struct vw_sql *find_report(const char *name)
{
    for (const struct vw_sql *r = vw_reports; r->name; r++)
        if (!strcmp(r->name, name))
            return r;
    return NULL;
}

static bool wants_function(const struct vw_sql *r)
{
    return strstr(r->text, ":function") != NULL;
}

static bool wants_parts(const struct vw_sql *r)
{
    return !strcmp(r->name, "parts");
}

/* The parts of the stall that was asked for. */
static int make_parts(sqlite3 *db, int64_t stall, struct st_error *err)
{
    int rc = vw_find_stall(db, &stall, err);

    return rc ? rc : vw_make_parts(db, stall, err);
}

static bool wants_other_trace(const struct vw_sql *r)
{
    return !strcmp(r->name, "compare");
}

/* Runs a statement with the function's name bound; *found tells whether it gave a row. */
static int any_row(sqlite3 *db, const char *sql, const char *function, bool *found, struct st_error *err)
{
    sqlite3_stmt *stmt;
    int step;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        return st_fail(err, ST_EFAIL, "cannot read the trace: %s", sqlite3_errmsg(db));
    sqlite3_bind_text(stmt, 1, function, -1, SQLITE_STATIC);
    step = sqlite3_step(stmt);
    *found = step == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? 0
               : st_fail(err, ST_EFAIL, "cannot read the trace: %s", sqlite3_errmsg(db));
}

/* Names of functions that are a mistyping away, or hold the text. */
static int suggest_function(sqlite3 *db, const char *function, struct st_error *err)
{
    ST_VEC(const char *) names = {0};
    sqlite3_stmt *stmt;
    const char *near = NULL;

    if (!sqlite3_prepare_v2(db,
                            "SELECT DISTINCT name FROM symbol WHERE typeof(name) = 'text' AND "
                            "instr(lower(name), lower(?1)) ORDER BY length(name)",
                            -1, &stmt, NULL)) {
        sqlite3_bind_text(stmt, 1, function, -1, SQLITE_STATIC);
        const char *name =
            sqlite3_step(stmt) == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;

        if (name)
            st_hint(err, "there is '%s'; a pattern works too: '*%s*'", name, function);
        sqlite3_finalize(stmt);
    }
    if (strchr(err->text, '\n') ||
        sqlite3_prepare_v2(db, "SELECT DISTINCT name FROM symbol WHERE typeof(name) = 'text'", -1, &stmt,
                           NULL))
        return err->code;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        char *copy = name ? strdup(name) : NULL;

        if (!copy || st_vec_push(&names, copy)) {
            free(copy);
            break;
        }
    }
    near = st_nearest(function, strlen(function), names.at, names.n);
    if (near)
        st_hint(err, "did you mean '%s'?", near);
    sqlite3_finalize(stmt);
    for (size_t i = 0; i < names.n; i++)
        free((char *)names.at[i]);
    st_vec_free(&names);
    return err->code;
}

static int check_function(sqlite3 *db, const char *function, struct st_error *err)
{
    bool found = false;
    int rc = any_row(
        db,
        "SELECT 1 FROM symbol s WHERE (s.name = ?1 OR s.name GLOB ?1) AND EXISTS (SELECT 1 FROM call c "
        "WHERE c.symbol_id = s.id)",
        function, &found, err);

    if (rc || found)
        return rc;
    st_fail(err, ST_EFAIL, "no call of '%s' in this trace", function);
    return suggest_function(db, function, err);
}

static int attach(sqlite3 *db, const char *path, struct st_error *err)
{
    sqlite3 *other;
    int rc = tdb_open(path, &other, err);

    if (rc)
        return rc;
    sqlite3_close(other);
    if (tdb_attach(db, path))
        rc = st_fail(err, ST_EFAIL, "cannot open '%s' beside the trace: %s", path, sqlite3_errmsg(db));
    return rc;
}

static void bind(sqlite3_stmt *stmt, const char *name, long number, const char *text)
{
    int i = sqlite3_bind_parameter_index(stmt, name);

    if (i && text)
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
    else if (i && number)
        sqlite3_bind_int64(stmt, i, number);
}

static int run_sql(sqlite3 *db, const struct vw_sql *sql, const struct report *r, struct st_error *err)
{
    char what[64];
    sqlite3_stmt *stmt;
    long rows;
    int rc = 0;

    if (wants_function(sql))
        rc = check_function(db, r->operand, err);
    else if (wants_other_trace(sql))
        rc = attach(db, r->operand, err);
    else if (wants_parts(sql))
        rc = make_parts(db, r->stall, err);
    if (rc)
        return rc;
    if (sqlite3_prepare_v2(db, sql->text, -1, &stmt, NULL))
        return st_fail(err, ST_EFAIL, "the report's SQL failed: %s", sqlite3_errmsg(db));
    snprintf(what, sizeof(what), "report %s", sql->name);
    st_progress(what, 0);
    bind(stmt, ":limit", r->limit, NULL);
    bind(stmt, ":depth", r->depth, NULL);
    bind(stmt, ":function", 0, r->operand);
    rows = vw_print_rows(stmt, r->format, VW_DURATIONS, stdout, vw_terminal_width(stdout), err);
    st_progress_end(); /* by its first row, but for what failed */
    sqlite3_finalize(stmt);
    return rows < 0 ? (int)rows : 0;
}

static int run(const struct report *r, struct st_error *err)
{
    const struct vw_sql *sql = find_report(r->name);
    sqlite3 *db;
    int rc;

    if (is_folder(r->path) && !sql && !r->stall)
        return vw_report_folder(r->path, r->format, r->limit, stdout, err);

    if (r->sql) {
        fputs(sql->text, stdout);
        return 0;
    }
    rc = tdb_open(r->path, &db, err);
    if (rc)
        return rc;
    rc = vw_add_functions(db, err);
    if (!rc)
        rc = sql ? run_sql(db, sql, r, err) : vw_report_why(db, r->stall, stdout, err);
    sqlite3_close(db);
    return tdb_read_all(rc, err);
}

/* The words fit the report: one more for a function or another trace, none else. */
static int check_words(const struct report *r, char **rest, int more, struct st_error *err)
{
    const struct vw_sql *sql = find_report(r->name);
    bool why = !strcmp(r->name, "why"), operand = sql && (wants_function(sql) || wants_other_trace(sql));

    if (!sql && !why)
        return unknown_report(r->name, err);
    if (why && r->sql)
        return st_fail(err, ST_EUSAGE, "the report 'why' is not one statement of SQL");
    if (why && !is_folder(r->path) && r->format_given && r->format != VW_TABLE)
        return st_fail(err, ST_EUSAGE,
                       "the report 'why' is text; 'report TRACE.db stalls --format json' has its figures");
    if (operand && !more && !r->sql)
        return st_fail(err, ST_EUSAGE,
                       wants_function(sql) ? "which function? stalltrap report %s %s FUNCTION"
                                           : "with which other trace? stalltrap report %s %s OTHER.db",
                       r->path, r->name);
    if (more > (operand ? 1 : 0))
        return st_fail(err, ST_EUSAGE, "one report at a time ('%s' is too much)", rest[operand ? 1 : 0]);
    return 0;
}

/* TRACE.db [NAME [OPERAND]], or compare A.db B.db. */
static int take_words(struct report *r, char **word, int words, struct st_error *err)
{
    if (words == 0)
        return st_fail(err, ST_EUSAGE, "which trace database? stalltrap report TRACE.db");
    if (words > 1 && !strcmp(word[0], "compare")) {
        r->name = word[0];
        r->path = word[1];
    } else {
        r->path = word[0];
        r->name = words > 1 ? word[1] : "why";
    }
    r->operand = words > 2 ? word[2] : NULL;
    return check_words(r, word + 2, words > 2 ? words - 2 : 0, err);
}

static int parse(int argc, char **argv, struct report *r, struct st_error *err)
{
    static const struct st_completer completers[] = {
        {"format", vw_complete_format}, {NULL, complete_operand}, {NULL, NULL}};
    static const struct st_opt_usage usage = {
        "report", "TRACE.db|FOLDER [NAME] [OPTION]...",
        "Ready-made answers. With no name: why did it stall; of a folder: its traces by what their stalls "
        "have in common. Others: top, tree, callers FUNC, latency FUNC, "
        "worst FUNC,\n"
        "parts, offcpu, wakers, sched, tenancy, syscalls, gaps, stalls, compare OTHER.db.",
        completers};
    const struct st_option table[] = {
        {"format", 'f', "FORMAT", ST_OPT_CALL, r, "table (default), csv or json", 0, 0, set_format, false},
        {"limit", 'n', "N", ST_OPT_NUMBER, &r->limit, "at most N rows", 1, INT32_MAX, NULL, false},
        {"depth", 0, "N", ST_OPT_NUMBER, &r->depth, "tree and compare: paths of at most N calls (64)", 1,
         1000, NULL, false},
        {"stall", 0, "ID", ST_OPT_NUMBER, &r->stall, "the stall to tell about, not the one that fired", 1,
         INT32_MAX, NULL, false},
        {"sql", 0, NULL, ST_OPT_FLAG, &r->sql, "print the report's SQL instead", 0, 0, NULL, false},
        {0}};
    int first = st_opt_parse(&usage, table, argc, argv, false, err), rc;

    if (first <= 0)
        return first;
    rc = take_words(r, argv + first, argc - first, err);
    return rc ? rc : first;
}

int st_cmd_report(int argc, char **argv)
{
    struct report r = {.format = VW_TABLE};
    struct st_error err = {0};
    int rc;

    setlocale(LC_CTYPE, "C.UTF-8");
    rc = parse(argc, argv, &r, &err);
    if (rc > 0)
        rc = run(&r, &err);
    if (!rc && fflush(stdout))
        rc = st_fail_errno(&err, ST_EFAIL, "cannot write the report");
    return rc < 0 ? st_log_error("report", &err) : 0;
}
