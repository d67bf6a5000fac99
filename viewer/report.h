/* Ready-made answers. */
#ifndef ST_VIEWER_REPORT_H
#define ST_VIEWER_REPORT_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

/* Tells the stall `id` (0: the one that fired the snapshot, else the longest) in a dozen lines: who, how
 * long, where, who woke it, the likely cause with its evidence, and the last calls before. With no stall at
 * all it says so and what the trace holds. ST_EFAIL: SQLite's message, or no stall of that id. */
int vw_report_why(sqlite3 *db, int64_t id, FILE *out, struct st_error *err);

#endif
