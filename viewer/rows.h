/* One function a format, behind vw_print_rows (format.h has their contract). */
#ifndef ST_VIEWER_ROWS_H
#define ST_VIEWER_ROWS_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

long vw_print_table(sqlite3_stmt *stmt, FILE *out, int width, bool durations, struct st_error *err);
long vw_print_csv(sqlite3_stmt *stmt, FILE *out, struct st_error *err);
long vw_print_json(sqlite3_stmt *stmt, FILE *out, struct st_error *err);

/* sqlite3_step: 1 a row, 0 the end, ST_EFAIL. */
int vw_step(sqlite3_stmt *stmt, struct st_error *err);

/* A blob as hexadecimal digits. */
void vw_put_blob(sqlite3_stmt *stmt, int column, FILE *out);

/* A JSON string with its quotes. n bytes at text; what is no UTF-8 becomes U+FFFD; controls, DEL and C1 are
 * escaped. */
void vw_json_string(FILE *out, const char *text, size_t n);

#endif
