/* Rows as an aligned table. The widths come from the first rows; longer cells behind them are cut in the
 * middle. */
#include "base/safetext.h"
#include "base/units.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/format.h"
#include "viewer/rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEASURED_ROWS = 1000,
    WIDEST_CELL = 200,
    NARROWEST = 4,
    GAP = 2,
};

struct cell {
    char *text; /* printable */

    bool number;
};

struct table {
    int columns;

    bool sampled; /* one column more, which is not shown: what the row's durations are worth (format.h) */

    int *widths;

    bool *numbers; /* every measured value is a number or NULL */

    bool *durations; /* nanoseconds, to be shown with a unit */

    bool *single; /* of one call, and not of many or a part of it */

    ST_VEC(struct cell) cells; /* row by row, the header first */
};

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.at[i].text);
    st_vec_free(&t->cells);
    free(t->widths);
    free(t->numbers);
    free(t->durations);
    free(t->single);
}

static int add_cell(struct table *t, const char *text, bool number)
{
    char safe[WIDEST_CELL * 4];
    char *copy;

    st_safe_text(safe, sizeof(safe), text);
    copy = strdup(safe);
    if (!copy || st_vec_push(&t->cells, (struct cell){copy, number})) {
        free(copy);
        return -1;
    }
    return 0;
}

/* As hexadecimal digits, as many as a cell can show. */
static const char *blob_text(sqlite3_stmt *stmt, int column, char *hex)
{
    const unsigned char *bytes = sqlite3_column_blob(stmt, column);
    int n = sqlite3_column_bytes(stmt, column);

    *hex = '\0';
    for (int i = 0; i < n && i < WIDEST_CELL; i++)
        sprintf(hex + 2 * i, "%02x", bytes[i]);
    return hex;
}

const char *vw_call_bound(unsigned flags)
{
    if (!(flags & TDB_CALL_SAMPLED))
        return "";
    switch (flags & (TDB_CALL_SEVERAL | TDB_CALL_PART)) {
    case TDB_CALL_PART:
        return "≥ ";
    case TDB_CALL_SEVERAL:
        return flags & (TDB_CALL_NO_CALL | TDB_CALL_NO_RETURN) ? "≈ " : "≤ ";
    default:
        return "≈ ";
    }
}

/* By the column `sampled`. */
static const char *bound_of(int sampled, bool single)
{
    return !sampled ? "" : single && sampled == 2 ? "≥ " : single && sampled == 3 ? "≤ " : "≈ ";
}

static int add_row(struct table *t, sqlite3_stmt *stmt)
{
    int sampled = t->sampled ? sqlite3_column_int(stmt, t->columns) : 0;

    for (int i = 0; i < t->columns; i++) {
        char hex[2 * WIDEST_CELL + 1];
        int type = sqlite3_column_type(stmt, i);
        const char *text =
            type == SQLITE_BLOB ? blob_text(stmt, i, hex) : (const char *)sqlite3_column_text(stmt, i);
        bool number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
        char length[32], about[40];

        if (number && t->durations[i])
            text = st_format_duration(sqlite3_column_int64(stmt, i), length, sizeof(length));
        if (number && t->durations[i] && sampled) {
            snprintf(about, sizeof(about), "%s%s", bound_of(sampled, t->single[i]), length);
            text = about;
        }

        if (add_cell(t, text ? text : "", number || type == SQLITE_NULL))
            return -1;
        if (!number && type != SQLITE_NULL)
            t->numbers[i] = false;
    }
    return 0;
}

static void measure(struct table *t)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        int *width = &t->widths[i % (size_t)t->columns];
        int w = vw_text_width(t->cells.at[i].text);

        if (w > *width)
            *width = w < WIDEST_CELL ? w : WIDEST_CELL;
    }
}

/* Takes columns from the widest text column until the table fits. */
static void fit(struct table *t, int width)
{
    for (;;) {
        int total = -GAP, widest = -1;

        for (int i = 0; i < t->columns; i++) {
            total += t->widths[i] + GAP;
            if (!t->numbers[i] && t->widths[i] > NARROWEST &&
                (widest < 0 || t->widths[i] > t->widths[widest]))
                widest = i;
        }
        if (total <= width || widest < 0)
            return;
        t->widths[widest]--;
    }
}

/* Bytes of `text` that take at most `width` columns, from the front. */
static size_t bytes_for(const char *text, int width)
{
    size_t at = 0, left = strlen(text);

    while (left) {
        uint32_t cp = 0;
        size_t n = st_utf8_decode(text + at, left, &cp);
        int w = n ? vw_char_width(cp) : 1;

        n = n ? n : 1;
        width -= w;
        if (width < 0)
            break;
        at += n;
        left -= n;
    }
    return at;
}

/* The end of `text` that takes at most `width` columns. */
static const char *tail_for(const char *text, int width)
{
    while (*text && vw_text_width(text) > width)
        for (text++; (*text & 0xc0) == 0x80; text++)
            ;
    return text;
}

static void put_cell(FILE *out, const char *text, int width, bool right, bool last)
{
    int w = vw_text_width(text), head = (width - 1) / 2;
    const char *tail;
    size_t bytes;

    if (w <= width) {
        fprintf(out, "%*s%s%*s", right ? width - w : 0, "", text, right || last ? 0 : width - w, "");
        return;
    }
    bytes = bytes_for(text, head);
    tail = tail_for(text, width - 2 - head);
    w = head + 2 + vw_text_width(tail);
    fprintf(out, "%.*s..%s%*s", (int)bytes, text, tail, last || w > width ? 0 : width - w, "");
}

static void print_header(const struct table *t, FILE *out)
{
    for (int i = 0; i < t->columns; i++) {
        put_cell(out, t->cells.at[i].text, t->widths[i], t->numbers[i], i == t->columns - 1);
        fputs(i == t->columns - 1 ? "\n" : "  ", out);
    }
    for (int i = 0; i < t->columns; i++) {
        for (int k = 0; k < t->widths[i]; k++)
            fputc('-', out);
        fputs(i == t->columns - 1 ? "\n" : "  ", out);
    }
}

static void print_cells(const struct table *t, size_t first, FILE *out)
{
    for (size_t i = first; i < t->cells.n; i++) {
        int column = (int)(i % (size_t)t->columns);
        bool last = column == t->columns - 1;

        put_cell(out, t->cells.at[i].text, t->widths[column], t->numbers[column], last);
        fputs(last ? "\n" : "  ", out);
    }
}

static void settle_widths(struct table *t, int width, FILE *out)
{
    measure(t);
    if (width)
        fit(t, width);
    print_header(t, out);
}

/* The name without _ns, in a buffer of the caller; whether it had it. */
static bool strip_unit(const char *name, char *buf, size_t size)
{
    size_t n = strlen(name);

    snprintf(buf, size, "%s", name);
    if (n < 4 || n >= size || strcmp(name + n - 3, "_ns") != 0)
        return false;
    buf[n - 3] = '\0';
    return true;
}

static int prepare(struct table *t, sqlite3_stmt *stmt, bool durations, struct st_error *err)
{
    const char *last;

    t->columns = sqlite3_column_count(stmt);
    last = t->columns > 1 ? sqlite3_column_name(stmt, t->columns - 1) : NULL;
    t->sampled = durations && last && !strcmp(last, "sampled");
    t->columns -= t->sampled;
    t->widths = calloc((size_t)t->columns + 1, sizeof(*t->widths));
    t->numbers = calloc((size_t)t->columns + 1, sizeof(*t->numbers));
    t->durations = calloc((size_t)t->columns + 1, sizeof(*t->durations));
    t->single = calloc((size_t)t->columns + 1, sizeof(*t->single));
    if (!t->widths || !t->numbers || !t->durations || !t->single)
        return st_nomem(err, "the table");
    for (int i = 0; i < t->columns; i++) {
        const char *name = sqlite3_column_name(stmt, i);
        char plain[WIDEST_CELL];

        t->numbers[i] = true;
        if (durations && name && strip_unit(name, plain, sizeof(plain))) {
            t->durations[i] = true;
            t->single[i] = !strcmp(plain, "duration") || !strcmp(plain, "max");
            name = plain;
        }
        if (add_cell(t, name ? name : "", false))
            return st_nomem(err, "the table");
    }
    return 0;
}

static void print_batch(struct table *t, bool first, int width, FILE *out)
{
    if (first)
        settle_widths(t, width, out);
    print_cells(t, first ? (size_t)t->columns : 0, out);
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.at[i].text);
    t->cells.n = 0;
}

long vw_print_table(sqlite3_stmt *stmt, FILE *out, int width, bool durations, struct st_error *err)
{
    struct table t = {0};
    bool first = true;
    long rows = 0;
    int rc = prepare(&t, stmt, durations, err), more = 1;

    while (!rc && t.columns && (more = vw_step(stmt, err)) == 1) {
        rows++;
        if (add_row(&t, stmt))
            rc = st_nomem(err, "the table");
        if (!rc && rows % MEASURED_ROWS == 0) {
            print_batch(&t, first, width, out);
            first = false;
        }
    }
    if (!rc && t.columns && (more == 0 || rows))
        print_batch(&t, first, width, out);
    free_table(&t);
    return rc ? rc : more < 0 ? more : rows;
}
