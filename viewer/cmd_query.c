/* stalltrap query: SQL on a trace database, read-only. */
#include "base/log.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/format.h"
#include "viewer/functions.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --param NAME=VALUE. */
struct parameter {
    const char *text; /* all of it */

    size_t name_len;

    bool used;
};

struct query {
    enum vw_format format;

    uint64_t timeout_ns;

    bool schema;

    const char *sql;

    char *from_stdin; /* owned */

    ST_VEC(struct parameter) parameters;

    struct timespec deadline;
};

static const char schema_sql[] =
    "SELECT * FROM (SELECT m.name AS \"table or view\", group_concat(p.name, ', ') AS columns "
    "FROM sqlite_schema m, pragma_table_info(m.name) p "
    "WHERE m.type IN ('view', 'table') AND m.name NOT LIKE 'sqlite_%' GROUP BY m.name ORDER BY m.type DESC, "
    "m.name) "
    "UNION ALL SELECT 'functions', 'duration(NS), percentile(X, P), percentiles(X, P...), bucket(X), "
    "histogram(X), bar(X, MOST, "
    "WIDTH)'";

static sqlite3 *running; /* for the signal handler; sqlite3_interrupt may be called from one */

static void on_interrupt(int signal)
{
    (void)signal;
    if (running)
        sqlite3_interrupt(running);
}

static int past_deadline(void *ctx)
{
    const struct query *q = ctx;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > q->deadline.tv_sec ||
           (now.tv_sec == q->deadline.tv_sec && now.tv_nsec >= q->deadline.tv_nsec);
}

static void set_deadline(struct query *q, sqlite3 *db)
{
    clock_gettime(CLOCK_MONOTONIC, &q->deadline);
    q->deadline.tv_sec += (time_t)(q->timeout_ns / 1000000000);
    q->deadline.tv_nsec += (long)(q->timeout_ns % 1000000000);
    if (q->deadline.tv_nsec >= 1000000000) {
        q->deadline.tv_sec++;
        q->deadline.tv_nsec -= 1000000000;
    }
    sqlite3_progress_handler(db, 10000, past_deadline, q);
}

/* The line of the SQL that holds the place, with a caret under it. */
static int sql_error(sqlite3 *db, const char *sql, struct st_error *err)
{
    int offset = sqlite3_error_offset(db);
    char before[512], shown[2048];
    int start, length;

    st_fail(err, ST_EFAIL, "SQL: %s", sqlite3_errmsg(db));
    if (offset < 0)
        return err->code;
    for (start = offset; start > 0 && sql[start - 1] != '\n'; start--)
        ;
    length = (int)strcspn(sql + start, "\n");
    if (length > 400)
        return st_hint(err, "at character %d of the statement", offset + 1);
    st_hint(err, "%.*s", length, sql + start);
    snprintf(before, sizeof(before), "%.*s", offset - start, sql + start);
    st_safe_text(shown, sizeof(shown), before); /* as the hint above shows it */
    return st_hint(err, "%*s^", vw_text_width(shown), "");
}

static int add_parameter(void *to, const char *text, struct st_error *err)
{
    struct query *q = to;
    const char *equals;

    text += *text == ':' || *text == '@' || *text == '$' || *text == '?';
    equals = strchr(text, '=');
    if (!equals || equals == text)
        return st_fail(err, ST_EUSAGE, "--param: '%s' is not NAME=VALUE", text);
    return st_vec_push(&q->parameters, (struct parameter){text, (size_t)(equals - text), false})
               ? st_nomem(err, "the parameters")
               : 0;
}

/* NULL, an integer, a number, or else text. */
static int bind_value(sqlite3_stmt *stmt, int i, const char *value)
{
    char *end;
    long long integer;
    double number;

    if (!strcmp(value, "NULL"))
        return sqlite3_bind_null(stmt, i);
    errno = 0;
    integer = strtoll(value, &end, 10);
    if (end != value && !*end && !errno)
        return sqlite3_bind_int64(stmt, i, integer);
    number = strtod(value, &end);
    if (end != value && !*end)
        return sqlite3_bind_double(stmt, i, number);
    return sqlite3_bind_text(stmt, i, value, -1, SQLITE_STATIC);
}

static int bind_parameters(sqlite3_stmt *stmt, struct query *q, struct st_error *err)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        const char *name = sqlite3_bind_parameter_name(stmt, i);
        struct parameter *found = NULL;
        char number[16];

        snprintf(number, sizeof(number), "%d", i);
        name = name ? name + 1 : number;
        for (size_t k = 0; k < q->parameters.n; k++)
            if (strlen(name) == q->parameters.at[k].name_len &&
                !strncmp(name, q->parameters.at[k].text, q->parameters.at[k].name_len))
                found = &q->parameters.at[k];
        if (!found)
            return st_fail(err, ST_EUSAGE,
                           "the SQL has a parameter '%s': give it with --param %s=VALUE (NULL for none)",
                           name, name);
        found->used = true;
        if (bind_value(stmt, i, found->text + found->name_len + 1))
            return st_fail(err, ST_EFAIL, "SQL: %s", sqlite3_errmsg(sqlite3_db_handle(stmt)));
    }
    return 0;
}

static int run_statement(sqlite3_stmt *stmt, struct query *q, struct st_error *err)
{
    long rows;
    int rc;

    if (!sqlite3_stmt_readonly(stmt))
        return st_fail(err, ST_EFAIL, "a trace database is opened read-only: this statement would change it");
    rc = bind_parameters(stmt, q, err);
    if (rc)
        return rc;
    rows = vw_print_rows(stmt, q->format, VW_NANOSECONDS, stdout, vw_terminal_width(stdout), err);
    return rows < 0 ? (int)rows : 0;
}

static int run_statements(sqlite3 *db, struct query *q, struct st_error *err)
{
    const char *sql = q->sql;
    bool any = false;
    int rc = 0;

    while (!rc && *sql) {
        sqlite3_stmt *stmt;
        const char *rest;

        if (sqlite3_prepare_v2(db, sql, -1, &stmt, &rest))
            return sql_error(db, sql, err);
        if (stmt)
            rc = run_statement(stmt, q, err);
        any |= stmt != NULL;
        sqlite3_finalize(stmt);
        sql = rest;
    }
    for (size_t i = 0; !rc && i < q->parameters.n; i++)
        if (!q->parameters.at[i].used)
            rc = st_fail(err, ST_EUSAGE, "the SQL has no parameter '%.*s'", (int)q->parameters.at[i].name_len,
                         q->parameters.at[i].text);
    if (!rc && !any)
        return st_fail(err, ST_EUSAGE, "which SQL? There is no statement in it");
    return rc;
}

static int read_stdin(struct query *q, struct st_error *err)
{
    size_t room = 0;
    ssize_t n = getdelim(&q->from_stdin, &room, '\0', stdin);

    if (n < 0 && ferror(stdin))
        return st_fail_errno(err, ST_EFAIL, "cannot read SQL from standard input");
    q->sql = n < 0 ? "" : q->from_stdin;
    return 0;
}

static int parse(int argc, char **argv, struct query *q, struct st_error *err)
{
    static const struct st_completer completers[] = {
        {"format", vw_complete_format}, {NULL, st_complete_trace}, {NULL, NULL}};
    static const struct st_opt_usage usage = {
        "query", "TRACE.db [SQL|-] [OPTION]...",
        "Runs SQL on a trace database, read-only. docs/schema.md describes the tables and views.",
        completers};
    const struct st_option table[] = {
        {"format", 'f', "FORMAT", ST_OPT_CALL, &q->format, "table (default), csv or json", 0, 0,
         vw_parse_format, false},
        {"timeout", 't', "DUR", ST_OPT_DURATION, &q->timeout_ns, "give up after so long", 0, 0, NULL, false},
        {"param", 'p', "NAME=VALUE", ST_OPT_CALL, q, "the value of :NAME in the SQL (may be repeated)", 0, 0,
         add_parameter, false},
        {"schema", 0, NULL, ST_OPT_FLAG, &q->schema, "list the tables, views and their columns", 0, 0, NULL,
         false},
        {0}};
    int first = st_opt_parse(&usage, table, argc, argv, false, err);

    if (first <= 0)
        return first;
    if (first == argc)
        return st_fail(err, ST_EUSAGE, "which trace database? stalltrap query TRACE.db SQL");
    if (argc - first > 2 || (q->schema && argc - first > 1))
        return st_fail(err, ST_EUSAGE,
                       "too many words behind the database: put the SQL into one pair of quotes");
    if (!q->schema && argc - first < 2)
        return st_fail(err, ST_EUSAGE,
                       "which SQL? stalltrap query %s 'SELECT * FROM stalls' (--schema lists the tables)",
                       argv[first]);
    if (q->schema)
        q->sql = schema_sql;
    else if (strcmp(argv[first + 1], "-") == 0)
        return read_stdin(q, err) ? err->code : first;
    else
        q->sql = argv[first + 1];
    return first;
}

static int run(const char *path, struct query *q, struct st_error *err)
{
    struct sigaction on_int = {.sa_handler = on_interrupt};
    sqlite3 *db;
    int rc = tdb_open(path, &db, err);

    if (rc)
        return rc;
    tdb_bound_statements(db, 0); /* whoever asks may wait */
    rc = vw_add_functions(db, err);
    vw_deny_attach(db);
    if (q->timeout_ns)
        set_deadline(q, db);
    running = db;
    sigaction(SIGINT, &on_int, NULL);
    if (!rc)
        rc = run_statements(db, q, err);
    running = NULL;
    sqlite3_close(db);
    return tdb_read_all(rc, err);
}

int st_cmd_query(int argc, char **argv)
{
    struct query q = {.format = VW_TABLE};
    struct st_error err = {0};
    int first, rc;

    setlocale(LC_CTYPE, "C.UTF-8"); /* for wcwidth */
    first = parse(argc, argv, &q, &err);
    rc = first > 0 ? run(argv[first], &q, &err) : first;

    free(q.from_stdin);
    st_vec_free(&q.parameters);
    return rc < 0 ? st_log_error("query", &err) : 0;
}
