/* What the database knows of its threads beside their calls, and the tables `summary` and
 * `function_summary`. */
#ifndef ST_TRACEDB_SUMMARY_H
#define ST_TRACEDB_SUMMARY_H

#include "tracedb/bulk.h"

/* Makes `threads` complete: every row of `thread`, with its times off and on the CPUs and the levels of its
 * tiles, sorted by id. Fills the tables `summary` and, but for `bare` (which has no tiles either),
 * `function_summary`. ST_EFAIL with SQLite's message, ST_ENOMEM. */
int tdb_summarize(sqlite3 *db, tdb_threads *threads, bool bare, struct st_error *err);

/* The roots of the trees that are written without SQLite. ST_EFAIL. */
int tdb_find_roots(sqlite3 *db, struct tdb_roots *roots, struct st_error *err);

#endif
