/* SQL functions that every statement of `query` and `report` may use. */
#ifndef ST_VIEWER_FUNCTIONS_H
#define ST_VIEWER_FUNCTIONS_H

#include "base/error.h"

#include <sqlite3.h>

/* Registers on the connection: duration(NS) -> "40.2 ms" text; percentile(X, P) aggregate, P in 0..100,
 * nearest rank, NULLs ignored, NULL of no values; percentiles(X, P...), the same for up to 8 P in one pass,
 * JSON text [a,b]; bucket(X), the largest power of two not above X (0 below 1); histogram(X) aggregate, JSON
 * text {"bucket": count}; bar(X, MOST, WIDTH), text of '#'. ST_EFAIL with SQLite's message. */
int vw_add_functions(sqlite3 *db, struct st_error *err);

/* For SQL of the user's: ATTACH would let a statement create files. What else writes is refused because the
 * database is opened read-only. */
void vw_deny_attach(sqlite3 *db);

#endif
