/* Which format, and the terminal it is for. */
#include "viewer/format.h"
#include "base/nearest.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "viewer/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static const char *const names[] = {"table", "csv", "json"};

void vw_complete_format(struct st_completion *c)
{
    for (int i = 0; i < 3; i++)
        st_complete_word(c, names[i], NULL);
}

int vw_parse_format(void *to, const char *text, struct st_error *err)
{
    const char *near;

    for (int i = 0; i < 3; i++) {
        if (!strcmp(text, names[i])) {
            *(enum vw_format *)to = (enum vw_format)i;
            return 0;
        }
    }
    near = st_nearest(text, strlen(text), names, 3);
    st_fail(err, ST_EUSAGE, "--format: unknown format '%s' (table, csv, json)", text);
    return near ? st_hint(err, "did you mean '%s'?", near) : err ? err->code : ST_EUSAGE;
}

int vw_terminal_width(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    if (!isatty(fileno(out)))
        return 0;
    if (columns && atoi(columns) > 0)
        return atoi(columns);
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 80;
}

int vw_char_width(uint32_t character)
{
    int width = wcwidth((wchar_t)character);

    /* No such locale, or no memory for it: only ASCII is known then. */
    if (width < 0 && MB_CUR_MAX == 1 && character >= 0xa0)
        return 1;
    return width > 0 ? width : 0;
}

int vw_text_width(const char *text)
{
    size_t left = strlen(text);
    int width = 0;

    while (left) {
        uint32_t cp = 0;
        size_t n = st_utf8_decode(text, left, &cp);

        width += n ? vw_char_width(cp) : 1;
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    return width;
}

long vw_print_rows(sqlite3_stmt *stmt, enum vw_format format, enum vw_durations durations, FILE *out,
                   int width, struct st_error *err)
{
    long rows;

    if (format == VW_CSV)
        rows = vw_print_csv(stmt, out, err);
    else if (format == VW_JSON)
        rows = vw_print_json(stmt, out, err);
    else
        rows = vw_print_table(stmt, out, width, durations == VW_DURATIONS, err);
    if (rows >= 0 && (fflush(out) || ferror(out)))
        return st_fail_errno(err, ST_EFAIL, "cannot write the result");
    return rows;
}

void vw_put_blob(sqlite3_stmt *stmt, int column, FILE *out)
{
    const unsigned char *bytes = sqlite3_column_blob(stmt, column);

    for (int i = 0; i < sqlite3_column_bytes(stmt, column); i++)
        fprintf(out, "%02x", bytes[i]);
}

int vw_step(sqlite3_stmt *stmt, struct st_error *err)
{
    int rc = sqlite3_step(stmt);

    st_progress_end(); /* what comes next is printed */
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    if (rc == SQLITE_INTERRUPT)
        return st_fail(err, ST_EFAIL, "the query was interrupted");
    return st_fail(err, ST_EFAIL, "the query failed: %s", sqlite3_errmsg(sqlite3_db_handle(stmt)));
}
