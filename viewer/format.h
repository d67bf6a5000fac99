/* Rows of a statement as a table, CSV or JSON. */
#ifndef ST_VIEWER_FORMAT_H
#define ST_VIEWER_FORMAT_H

#include "base/complete.h"
#include "base/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

enum vw_format {
    VW_TABLE, /* for people: columns aligned, numbers to the right, cut to the width, unprintable bytes
                 escaped */
    VW_CSV,   /* RFC 4180 with a header line; NULL is empty; blobs as hexadecimal text */
    VW_JSON,  /* an array of objects; blobs as hexadecimal text; bytes that are no UTF-8 become U+FFFD */
};

/* --format's callback (st_opt_fn; `to` is an enum vw_format *). ST_EUSAGE names the formats. */
int vw_parse_format(void *to, const char *text, struct st_error *err);

/* What may stand behind --format (base/complete.h). */
void vw_complete_format(struct st_completion *c);

/* For people: columns whose names end in _ns are shown as durations, the ending left out. Where the last
 * column is `sampled`, it is not shown, and the durations of a row that has 1 there are marked as estimates
 * (≈). 2 there: `duration` and `max` are of a call that took as long or longer (≥); 3: that may be several,
 * of which none took longer (≤). VW_TABLE only. */
enum vw_durations { VW_NANOSECONDS, VW_DURATIONS };

/* What stands before the duration of a call with these flags (tdb_call_flag): "≈ ", "≥ ", "≤ ", or "" where
 * it is exact. Static. */
const char *vw_call_bound(unsigned flags);

/* Steps the statement to its end and prints every row to `out`. `width`: of the terminal in columns for
 * VW_TABLE, 0 for unlimited. Returns the number of rows, ST_EFAIL with SQLite's message when a step fails (an
 * interrupt included) or the output cannot be written, ST_ENOMEM. What was printed before stays printed. */
long vw_print_rows(sqlite3_stmt *stmt, enum vw_format format, enum vw_durations durations, FILE *out,
                   int width, struct st_error *err);

/* Columns of the terminal behind `out`, or 0 when it is none. $COLUMNS goes first. */
int vw_terminal_width(FILE *out);

/* Columns that a character takes on a terminal (wcwidth): 0 when it is unprintable. Where there is no UTF-8
 * locale, 1 for each beyond ASCII. */
int vw_char_width(uint32_t character);

/* Columns that UTF-8 text takes on a terminal: those of its characters, 1 for a byte that is none. */
int vw_text_width(const char *text);

#endif
