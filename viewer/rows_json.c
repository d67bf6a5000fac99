/* Rows as a JSON array of objects (RFC 8259). */
#include "base/safetext.h"
#include "viewer/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_json_char(FILE *out, uint32_t cp, const char *bytes, size_t n)
{
    if (cp == '"' || cp == '\\')
        fprintf(out, "\\%c", (char)cp);
    else if (cp == '\n')
        fputs("\\n", out);
    else if (cp == '\t')
        fputs("\\t", out);
    else if (!st_cp_printable(cp) && cp < 0x10000)
        fprintf(out, "\\u%04x", cp);
    else if (!st_cp_printable(cp))
        fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10), 0xdc00 + (cp & 0x3ff));
    else
        fwrite(bytes, 1, n, out);
}

void vw_json_string(FILE *out, const char *text, size_t n)
{
    fputc('"', out);
    while (n) {
        uint32_t cp = 0;
        size_t len = st_utf8_decode(text, n, &cp);

        if (len)
            put_json_char(out, cp, text, len);
        else
            fputs("\\ufffd", out);
        text += len ? len : 1;
        n -= len ? len : 1;
    }
    fputc('"', out);
}

static void put_value(sqlite3_stmt *stmt, int column, FILE *out)
{
    double number;

    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        fprintf(out, "%" PRId64, (int64_t)sqlite3_column_int64(stmt, column));
        break;
    case SQLITE_FLOAT:
        number = sqlite3_column_double(stmt, column);
        if (isfinite(number))
            fprintf(out, "%.17g", number);
        else
            fputs("null", out);
        break;
    case SQLITE_TEXT:
        vw_json_string(out, (const char *)sqlite3_column_text(stmt, column),
                       (size_t)sqlite3_column_bytes(stmt, column));
        break;
    case SQLITE_BLOB:
        fputc('"', out);
        vw_put_blob(stmt, column, out);
        fputc('"', out);
        break;
    default:
        fputs("null", out);
    }
}

long vw_print_json(sqlite3_stmt *stmt, FILE *out, struct st_error *err)
{
    long rows = 0;
    int more;

    fputc('[', out);
    while ((more = vw_step(stmt, err)) == 1) {
        fputs(rows++ ? ",\n {" : "\n {", out);
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const char *name = sqlite3_column_name(stmt, i);

            fputs(i ? ", " : "", out);
            vw_json_string(out, name ? name : "", name ? strlen(name) : 0);
            fputs(": ", out);
            put_value(stmt, i, out);
        }
        fputc('}', out);
    }
    fputs(rows ? "\n]\n" : "]\n", out);
    return more < 0 ? more : rows;
}
