/* The parts of a stall as lines. */
#include "base/safetext.h"
#include "base/units.h"
#include "viewer/parts.h"

#include <string.h>

enum { SHOWN = 8 /* lines; the rest is one more */ };

static const char groups_sql[] =
    "SELECT what, state, syscall, place, who, sum(who_ns), timer, count(*), sum(end_ns - start_ns) AS ns, "
    "max(end_ns - start_ns), 100.0 * sum(end_ns - start_ns) / (SELECT sum(end_ns - start_ns) FROM part), "
    "count(*) = 1 AND max(EXISTS (SELECT 1 FROM wait w WHERE w.end_ns IS NULL AND w.start_ns < part.end_ns "
    "AND "
    "w.start_ns + w.duration_ns <= part.end_ns)) FROM part GROUP BY what, state, syscall, place, who, timer "
    "ORDER BY ns DESC, min(start_ns)";

static const char *column(sqlite3_stmt *s, int i, char *buf, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(s, i);

    st_safe_text(buf, size, text ? text : "");
    return buf;
}

static void print_shared(FILE *out, const char *before, const char *text)
{
    if (*text)
        fprintf(out, "%s%s", before, text);
}

static void print_ready(sqlite3_stmt *s, FILE *out, int64_t whole)
{
    char who[128], time[32];
    int64_t had = sqlite3_column_int64(s, 5);

    fprintf(out, "ready to run; ");
    column(s, 4, who, sizeof(who));
    if (!*who)
        fprintf(out, "who had the CPU is not known");
    else if (sqlite3_column_type(s, 5) == SQLITE_NULL)
        fprintf(out, "%s got the CPU", who);
    else
        fprintf(out, "%s had the CPU for %s%s", who, st_format_duration(had, time, sizeof(time)),
                had * 2 < whole ? ", who had it otherwise is not known" : "");
}

static void print_waiting(sqlite3_stmt *s, FILE *out)
{
    char text[1024];

    fprintf(out, "waiting");
    column(s, 1, text, sizeof(text));
    if (*text)
        fprintf(out, " (%s)", text);
    print_shared(out, " in ", column(s, 2, text, sizeof(text)));
    print_shared(out, ", at ", column(s, 3, text, sizeof(text)));
    column(s, 4, text, sizeof(text));
    if (!*text)
        fprintf(out, sqlite3_column_int(s, 11) ? "; nobody has ended it yet"
                                               : "; who ended it, and when, is not known");
    print_shared(out, "; woken by ", text);
    print_shared(out, " after timer ", column(s, 6, text, sizeof(text)));
}

/* In what it ran; shares of sampled time are as good as the number of samples. */
static int print_running(sqlite3 *db, FILE *out, int64_t all, struct st_error *err)
{
    sqlite3_stmt *s;
    char name[256], time[32];
    int shown = 0;

    fprintf(out, "running");
    if (sqlite3_prepare_v2(
            db, "SELECT function, ns, samples FROM part_function ORDER BY ns DESC, function LIMIT 3", -1, &s,
            NULL))
        return st_fail(err, ST_EFAIL, "cannot tell the parts of the stall: %s", sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        bool sampled = sqlite3_column_type(s, 2) != SQLITE_NULL;
        int64_t ns = sqlite3_column_int64(s, 1), samples = sqlite3_column_int64(s, 2);

        if (sampled && !samples) {
            fprintf(out, "; in what is not known: no sample fell into it");
            break;
        }
        if (shown && (ns * 20 < all || (sampled && ns * samples < all))) /* less than one sample's share */
            break;
        ns = ns < all ? ns : all;
        fprintf(out, "%s%s() %s%s",
                shown     ? ", "
                : sampled ? "; by samples in "
                          : " in ",
                column(s, 0, name, sizeof(name)), sampled ? "≈ " : "",
                st_format_duration(ns, time, sizeof(time)));
        if (sampled && !shown)
            fprintf(out, " (%lld sample%s in all)", (long long)samples, samples == 1 ? "" : "s");
        shown++;
    }
    sqlite3_finalize(s);
    return 0;
}

static int print_group(sqlite3 *db, sqlite3_stmt *s, FILE *out, struct st_error *err)
{
    char what[32], length[32];
    int64_t times = sqlite3_column_int64(s, 7), ns = sqlite3_column_int64(s, 8);
    int rc = 0;

    fprintf(out, "  %9s %5.1f %%  ", st_format_duration(ns, length, sizeof(length)),
            sqlite3_column_double(s, 10));
    column(s, 0, what, sizeof(what));
    if (!strcmp(what, "running"))
        rc = print_running(db, out, ns, err);
    else if (!strcmp(what, "ready"))
        print_ready(s, out, ns);
    else if (!strcmp(what, "waiting"))
        print_waiting(s, out);
    else
        fprintf(out, "%s",
                strcmp(what, "handler") ? "not known: no context switch tells of this time"
                                        : "held up by the handler, on its CPU");
    if (times > 1)
        fprintf(out, " (%lld times, longest %s)", (long long)times,
                st_format_duration(sqlite3_column_int64(s, 9), length, sizeof(length)));
    fputc('\n', out);
    return rc;
}

int vw_print_parts(sqlite3 *db, FILE *out, struct st_error *err)
{
    sqlite3_stmt *s;
    int64_t rest = 0, others = 0;
    char length[32];
    int rows = 0, rc = 0, step;

    if (sqlite3_prepare_v2(db, groups_sql, -1, &s, NULL))
        return st_fail(err, ST_EFAIL, "cannot tell the parts of the stall: %s", sqlite3_errmsg(db));
    while (!rc && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (rows++ == 0)
            fprintf(out, "  where the time went:\n");
        if (rows <= SHOWN) {
            rc = print_group(db, s, out, err);
        } else {
            rest += sqlite3_column_int64(s, 8);
            others += sqlite3_column_int64(s, 7);
        }
    }
    sqlite3_finalize(s);
    if (rest)
        fprintf(out, "  %9s          %lld others: report TRACE.db parts lists them\n",
                st_format_duration(rest, length, sizeof(length)), (long long)others);
    return rc;
}
