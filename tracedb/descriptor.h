/* SQLite on a file that is open already. */
#ifndef ST_TRACEDB_DESCRIPTOR_H
#define ST_TRACEDB_DESCRIPTOR_H

#include <sqlite3.h>

/* Opens the file `fd` as a database, for reading and writing, without a path: nobody can put another file in
 * its place, and the process may be one that opens nothing. `fd` stays the caller's. For one database at a
 * time, of one thread. Returns what sqlite3_open_v2 returns. */
int tdb_open_descriptor(int fd, sqlite3 **db);

#endif
