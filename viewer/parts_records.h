/* The stall records of a thread, which say more of its waits than the switches do. */
#ifndef ST_VIEWER_PARTS_RECORDS_H
#define ST_VIEWER_PARTS_RECORDS_H

#include "base/error.h"
#include "base/vec.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Strings are its own; NULL: not known. */
struct vw_record {
    int64_t id, start, end, wake, stack;

    bool runnable, wait; /* the wait is all of the record */

    bool runq; /* `next` had the CPU while it was ready, not when it went to sleep */

    char *state, *syscall, *waker, *timer, *next;

    int64_t held; /* ns that it had it; 0: not known */
};

typedef ST_VEC(struct vw_record) vw_records;

/* A time of a file that anybody may have written: sums of two stay numbers. */
int64_t vw_time_column(sqlite3_stmt *s, int column);

/* Appends the records of `thread` (thread.id) that overlap the time from `start` to `end`, in the order of
 * their starts. ST_ENOMEM, ST_EFAIL: what is there by then stays, to be freed. */
int vw_records_read(sqlite3 *db, int64_t thread, int64_t start, int64_t end, vw_records *records,
                    struct st_error *err);

/* The record whose wait is the one from `start` to `end`, or which saw its wake-up; `id` goes before others.
 * NULL: there is none. */
const struct vw_record *vw_record_of(const vw_records *records, int64_t id, int64_t start, int64_t end);

/* Frees all. */
void vw_records_free(vw_records *records);

#endif
