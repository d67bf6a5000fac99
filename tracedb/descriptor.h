/* SQLite on a file that is open already, or whose path is longer than it takes. */
#ifndef ST_TRACEDB_DESCRIPTOR_H
#define ST_TRACEDB_DESCRIPTOR_H

#include <sqlite3.h>

/* Opens the file `fd` as a database, for reading and writing, without a path: nobody can put another file in
 * its place, and the process may be one that opens nothing. `fd` stays the caller's. For one database at a
 * time, of one thread. Returns what sqlite3_open_v2 returns. */
int tdb_open_descriptor(int fd, sqlite3 **db);

/* sqlite3_open_v2 for reading, and ATTACH as `b`, of a path of any length: SQLite's own ends at 512 bytes. */
int tdb_open_path(const char *path, sqlite3 **db);
int tdb_attach(sqlite3 *db, const char *path);

#endif
