/* duration() and percentile(). */
#include "viewer/functions.h"
#include "base/units.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

static void sql_duration(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char text[32];

    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    st_format_duration(sqlite3_value_int64(argv[0]), text, sizeof(text));
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

struct percentile {
    ST_VEC(double) values;

    double p;
};

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct percentile *p = sqlite3_aggregate_context(ctx, sizeof(*p));

    (void)argc;
    if (!p) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    p->p = sqlite3_value_double(argv[1]);
    if (p->p < 0 || p->p > 100)
        sqlite3_result_error(ctx, "percentile(X, P): P must be within 0 and 100", -1);
    else if (st_vec_push(&p->values, sqlite3_value_double(argv[0])))
        sqlite3_result_error_nomem(ctx);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void put_number(sqlite3_context *ctx, double v)
{
    if (v == rint(v) && fabs(v) < 0x1p53)
        sqlite3_result_int64(ctx, (sqlite3_int64)v);
    else
        sqlite3_result_double(ctx, v);
}

static void percentile_final(sqlite3_context *ctx)
{
    struct percentile *p = sqlite3_aggregate_context(ctx, 0);
    size_t rank;

    if (!p || !p->values.n)
        return;
    qsort(p->values.at, p->values.n, sizeof(*p->values.at), compare);
    rank = (size_t)ceil(p->p / 100 * (double)p->values.n);
    put_number(ctx, p->values.at[rank ? rank - 1 : 0]);
    st_vec_free(&p->values);
}

int vw_add_functions(sqlite3 *db, struct st_error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;

    if (sqlite3_create_function(db, "duration", 1, flags, NULL, sql_duration, NULL, NULL) ||
        sqlite3_create_function(db, "percentile", 2, flags, NULL, NULL, percentile_step, percentile_final))
        return st_fail(err, ST_EFAIL, "cannot add SQL functions: %s", sqlite3_errmsg(db));
    return 0;
}
