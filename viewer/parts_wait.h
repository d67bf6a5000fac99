/* The wait of a stall that its record tells more of. Inside of parts*.c. */
#ifndef ST_VIEWER_PARTS_WAIT_H
#define ST_VIEWER_PARTS_WAIT_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdint.h>

/* Makes the table `wait` (viewer/parts.h) from the table `part` and the record of stall `id`. ST_EFAIL:
 * SQLite's message. */
int vw_parts_wait(sqlite3 *db, int64_t id, struct st_error *err);

#endif
