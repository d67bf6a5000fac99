/* SQLite goes on where it can when memory runs out, and so do its callers that take an error for "there is
 * none". SQLite's log has each allocation that failed: whoever has read asks here at the end whether that was
 * all there is. */
#include "tracedb/guard.h"
#include "tracedb/tracedb.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool ran_out;

static void on_log(void *unused, int code, const char *text)
{
    (void)unused;
    (void)text;
    if ((code & 0xff) == SQLITE_NOMEM)
        ran_out = true;
}

static void listen(void)
{
    sqlite3_config(SQLITE_CONFIG_LOG, on_log, NULL);
}

void tdb_watch_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, listen);
}

int tdb_read_all(int rc, struct st_error *err)
{
    return ran_out && rc != ST_ENOMEM ? st_nomem(err, "what is read of the trace database") : rc;
}
