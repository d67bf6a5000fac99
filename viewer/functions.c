/* duration(), percentile(), percentiles(), bucket(), histogram(), bar(). */
#include "viewer/functions.h"
#include "base/units.h"
#include "base/vec.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sql_duration(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char text[32];

    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    st_format_duration(sqlite3_value_int64(argv[0]), text, sizeof(text));
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

/* Both aggregates: percentile(X, P) and percentiles(X, P, P...). */
enum { MOST_PERCENTILES = 8 };

struct percentile {
    ST_VEC(double) values;

    double p[MOST_PERCENTILES];

    int n;
};

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct percentile *p = sqlite3_aggregate_context(ctx, sizeof(*p));

    if (!p) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (argc < 2 || argc > MOST_PERCENTILES + 1) {
        sqlite3_result_error(ctx, "percentiles(X, P...): 1 to 8 numbers P", -1);
        return;
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    p->n = argc - 1;
    for (int i = 0; i < p->n; i++) {
        p->p[i] = sqlite3_value_double(argv[i + 1]);
        if (!(p->p[i] >= 0 && p->p[i] <= 100)) {
            sqlite3_result_error(ctx, "percentile(X, P): P must be within 0 and 100", -1);
            return;
        }
    }
    if (st_vec_push(&p->values, sqlite3_value_double(argv[0])))
        sqlite3_result_error_nomem(ctx);
}

/* Puts the smaller ones before the value that is returned and the larger ones behind it. */
static size_t split(double *at, size_t n)
{
    double pivot = at[(n - 1) / 2]; /* not the last one: both sides get some */
    size_t low = 0, high = n - 1;

    for (;; low++, high--) {
        while (at[low] < pivot)
            low++;
        while (pivot < at[high])
            high--;
        if (low >= high)
            return high;
        double value = at[low];

        at[low] = at[high];
        at[high] = value;
    }
}

/* The value that would stand at `rank` if they were sorted (Hoare's selection). */
static double value_at(double *at, size_t n, size_t rank)
{
    while (n > 1) {
        size_t left = split(at, n) + 1;

        if (rank < left) {
            n = left;
        } else {
            at += left;
            n -= left;
            rank -= left;
        }
    }
    return *at;
}

static double percentile_of(struct percentile *p, int i)
{
    size_t rank = (size_t)ceil(p->p[i] / 100 * (double)p->values.n);

    return value_at(p->values.at, p->values.n, rank ? rank - 1 : 0);
}

static bool is_whole(double v)
{
    return v == rint(v) && fabs(v) < 0x1p53;
}

static void percentile_final(sqlite3_context *ctx)
{
    struct percentile *p = sqlite3_aggregate_context(ctx, 0);
    double v;

    if (!p || !p->values.n)
        return;
    v = percentile_of(p, 0);
    if (is_whole(v))
        sqlite3_result_int64(ctx, (sqlite3_int64)v);
    else
        sqlite3_result_double(ctx, v);
    st_vec_free(&p->values);
}

/* JSON has no infinite numbers; SQLite reads this one as such. */
static int put_number(char *to, size_t room, double v)
{
    if (isinf(v))
        return snprintf(to, room, "%s", v < 0 ? "-9e999" : "9e999");
    return snprintf(to, room, is_whole(v) ? "%.0f" : "%.17g", v);
}

/* [50,90.5] */
static void percentiles_final(sqlite3_context *ctx)
{
    struct percentile *p = sqlite3_aggregate_context(ctx, 0);
    char text[MOST_PERCENTILES * 32 + 2] = "[";
    int at = 1;

    if (!p || !p->values.n)
        return;
    for (int i = 0; i < p->n; i++) {
        if (i)
            text[at++] = ',';
        at += put_number(text + at, 31, percentile_of(p, i));
    }
    text[at++] = ']';
    sqlite3_result_text(ctx, text, at, SQLITE_TRANSIENT);
    st_vec_free(&p->values);
}

/* The largest power of two that is not above the value; 0 for what is under 1. */
static int64_t bucket_of(int64_t value)
{
    return value < 1 ? 0 : (int64_t)1 << (63 - __builtin_clzll((unsigned long long)value));
}

static void sql_bucket(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
        sqlite3_result_int64(ctx, bucket_of(sqlite3_value_int64(argv[0])));
}

struct histogram {
    int64_t counts[65]; /* of bucket 0, then of 2^i at i + 1 */
};

static void histogram_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct histogram *h = sqlite3_aggregate_context(ctx, sizeof(*h));
    int64_t bucket;

    (void)argc;
    if (!h) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    bucket = bucket_of(sqlite3_value_int64(argv[0]));
    h->counts[bucket ? __builtin_ctzll((unsigned long long)bucket) + 1 : 0]++;
}

/* {"0":1,"1024":7}: how many values lie in [bucket, 2 * bucket). */
static void histogram_final(sqlite3_context *ctx)
{
    const struct histogram *h = sqlite3_aggregate_context(ctx, 0);
    char text[65 * 44];
    size_t n = 1;

    if (!h)
        return;
    text[0] = '{';
    for (int i = 0; i < 65; i++)
        if (h->counts[i])
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%lld\":%lld", n > 1 ? "," : "",
                                  i ? 1LL << (i - 1) : 0LL, (long long)h->counts[i]);
    if (n == 1)
        return;
    snprintf(text + n, sizeof(text) - n, "}");
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

/* value / most of `width` characters; at least one for what is not 0. */
static void sql_bar(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    double value = sqlite3_value_double(argv[0]), most = sqlite3_value_double(argv[1]);
    int width = sqlite3_value_int(argv[2]);
    char text[201];
    int n;

    (void)argc;
    width = width < 0 ? 0 : width > 200 ? 200 : width;
    n = value > 0 && most > 0 ? (int)(value / most * width + 0.5) : 0;
    n = n > width ? width : n < 1 && value > 0 && width > 0 ? 1 : n;
    memset(text, '#', (size_t)n);
    sqlite3_result_text(ctx, text, n, SQLITE_TRANSIENT);
}

int vw_add_functions(sqlite3 *db, struct st_error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const struct {
        const char *name;

        int arguments;

        void (*scalar)(sqlite3_context *, int, sqlite3_value **);
        void (*step)(sqlite3_context *, int, sqlite3_value **);
        void (*final)(sqlite3_context *);
    } functions[] = {{"duration", 1, sql_duration, NULL, NULL},
                     {"bucket", 1, sql_bucket, NULL, NULL},
                     {"bar", 3, sql_bar, NULL, NULL},
                     {"percentile", 2, NULL, percentile_step, percentile_final},
                     {"percentiles", -1, NULL, percentile_step, percentiles_final},
                     {"histogram", 1, NULL, histogram_step, histogram_final}};

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (sqlite3_create_function(db, functions[i].name, functions[i].arguments, flags, NULL,
                                    functions[i].scalar, functions[i].step, functions[i].final))
            return st_fail(err, ST_EFAIL, "cannot add SQL functions: %s", sqlite3_errmsg(db));
    return 0;
}

static int authorize(void *ctx, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

void vw_deny_attach(sqlite3 *db)
{
    sqlite3_set_authorizer(db, authorize, NULL);
}
