/* Rows as CSV (RFC 4180, lines end in LF as PostgreSQL's COPY and most tools expect). */
#include "base/safetext.h"
#include "viewer/rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that are no UTF-8 become U+FFFD: readers of CSV refuse the whole file for one of them. */
static void put_utf8(FILE *out, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        uint32_t cp;
        size_t n = st_utf8_decode(text, left, &cp);

        if (*text == '"')
            fputc('"', out);
        if (n)
            fwrite(text, 1, n, out);
        else
            fputs("\xef\xbf\xbd", out);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

/* PostgreSQL takes what is empty and not quoted for NULL, and a line of \. for the end. */
static bool needs_quotes(const char *text)
{
    return !*text || *text == '\\' || text[strcspn(text, ",\"\r\n")];
}

/* A terminal must not see raw foreign bytes; a file or pipe gets them as they are. */
static void put_field(FILE *out, const char *text, bool terminal)
{
    char safe[4096];

    if (terminal) {
        st_safe_text(safe, sizeof(safe), text);
        text = safe;
    }
    if (!needs_quotes(text)) {
        put_utf8(out, text);
        return;
    }
    fputc('"', out);
    put_utf8(out, text);
    fputc('"', out);
}

long vw_print_csv(sqlite3_stmt *stmt, FILE *out, struct st_error *err)
{
    bool terminal = isatty(fileno(out));
    int columns = sqlite3_column_count(stmt);
    long rows = 0;
    int more;

    for (int i = 0; i < columns; i++) {
        const char *name = sqlite3_column_name(stmt, i);

        fputs(i ? "," : "", out);
        put_field(out, name ? name : "", terminal);
    }
    fputc('\n', out);
    while ((more = vw_step(stmt, err)) == 1) {
        for (int i = 0; i < columns; i++) {
            int type = sqlite3_column_type(stmt, i);
            const char *text = type == SQLITE_BLOB ? NULL : (const char *)sqlite3_column_text(stmt, i);

            fputs(i ? "," : "", out);
            if (type == SQLITE_BLOB)
                vw_put_blob(stmt, i, out);
            else if (text)
                put_field(out, text, terminal);
        }
        fputc('\n', out);
        rows++;
    }
    return more < 0 ? more : rows;
}
