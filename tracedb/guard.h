/* A database may have been made to hurt who reads it. */
#ifndef ST_TRACEDB_GUARD_H
#define ST_TRACEDB_GUARD_H

#include "base/error.h"

#include <sqlite3.h>

/* Makes an open database harmless as far as its schema goes: what stands under the name of a table of ours
 * must be a plain table, the views are our own whatever the file says they are, and a statement that takes
 * more than the CPU time of tdb_bound_statements() is interrupted. ST_EBADFILE: it is not such a database. */
int tdb_guard(sqlite3 *db, const char *path, struct st_error *err);

/* Has SQLite tell of allocations that fail, for tdb_read_all(). Before SQLite's first use in the process. */
void tdb_watch_memory(void);

#endif
