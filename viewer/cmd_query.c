/* stalltrap query: SQL on a trace database, read-only. */
#include "base/log.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "tracedb/tracedb.h"
#include "viewer/commands.h"
#include "viewer/format.h"
#include "viewer/functions.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct query {
    enum vw_format format;

    uint64_t timeout_ns;

    bool schema;

    const char *sql;

    char *from_stdin; /* owned */

    struct timespec deadline;
};

static const char schema_sql[] = "SELECT m.name AS \"table or view\", group_concat(p.name, ', ') AS columns "
                                 "FROM sqlite_schema m, pragma_table_info(m.name) p "
                                 "WHERE m.type IN ('view', 'table') AND m.name NOT LIKE 'sqlite_%' GROUP BY "
                                 "m.name ORDER BY m.type DESC, m.name";

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

/* ATTACH would let a statement create files; the rest that writes is refused because the database is open
 * read-only. */
static int authorize(void *ctx, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
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

static int run_statements(sqlite3 *db, struct query *q, struct st_error *err)
{
    const char *sql = q->sql;
    bool any = false;

    while (*sql) {
        sqlite3_stmt *stmt;
        const char *rest;
        long rows = 0;

        if (sqlite3_prepare_v2(db, sql, -1, &stmt, &rest))
            return sql_error(db, sql, err);
        if (stmt && !sqlite3_stmt_readonly(stmt))
            rows = st_fail(err, ST_EFAIL,
                           "a trace database is opened read-only: this statement would change it");
        else if (stmt)
            rows = vw_print_rows(stmt, q->format, stdout, vw_terminal_width(stdout), err);
        any |= stmt != NULL;
        sqlite3_finalize(stmt);
        if (rows < 0)
            return (int)rows;
        sql = rest;
    }
    return any ? 0 : st_fail(err, ST_EUSAGE, "which SQL? There is no statement in it");
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
    static const struct st_opt_usage usage = {
        "query", "TRACE.db [SQL|-] [OPTION]...",
        "Runs SQL on a trace database, read-only. docs/schema.md describes the tables and views."};
    const struct st_option table[] = {
        {"format", 'f', "FORMAT", ST_OPT_CALL, &q->format, "table (default), csv or json", 0, 0,
         vw_parse_format, false},
        {"timeout", 't', "DUR", ST_OPT_DURATION, &q->timeout_ns, "give up after so long", 0, 0, NULL, false},
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
    rc = vw_add_functions(db, err);
    sqlite3_set_authorizer(db, authorize, NULL);
    if (q->timeout_ns)
        set_deadline(q, db);
    running = db;
    sigaction(SIGINT, &on_int, NULL);
    if (!rc)
        rc = run_statements(db, q, err);
    running = NULL;
    sqlite3_close(db);
    return rc;
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
    return rc < 0 ? st_log_error("query", &err) : 0;
}
