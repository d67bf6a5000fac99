/* The stall records of a thread. */
#include "viewer/parts_records.h"

#include <stdlib.h>
#include <string.h>

enum {
    RECORD_OFF = 100000, /* ns: a record's own clock may be so far off the recording's */
};

static const char records_sql[] =
    "SELECT id, start_ns, start_ns + duration_ns, wake_ns, user_stack_id, state, syscall, "
    "waker, timer, kind, (SELECT value FROM stall_attr a WHERE a.stall_id = l.id AND a.key = "
    "'next'), EXISTS (SELECT 1 FROM stall_attr a WHERE a.stall_id = l.id AND a.key = "
    "'user_stack_late'), (SELECT value FROM stall_attr a WHERE a.stall_id = l.id AND a.key = "
    "'held_ns' AND l.kind = 'runq') FROM stall l WHERE thread_id = ?1 AND start_ns < ?3 AND start_ns + "
    "duration_ns > ?2 AND state IS NOT NULL AND duration_ns > 0 ORDER BY start_ns";

int64_t vw_time_column(sqlite3_stmt *s, int column)
{
    const int64_t most = (int64_t)1 << 60;
    int64_t time = sqlite3_column_int64(s, column);

    return time > most ? most : time < -most ? -most : time;
}

static char *copy_column(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return text && *text ? strdup(text) : NULL;
}

static void free_strings(struct vw_record *r)
{
    free(r->state);
    free(r->syscall);
    free(r->waker);
    free(r->timer);
    free(r->next);
}

static int keep(sqlite3_stmt *s, vw_records *records)
{
    const char *kind = (const char *)sqlite3_column_text(s, 9);
    bool woken = sqlite3_column_type(s, 3) != SQLITE_NULL;
    struct vw_record r = {.id = sqlite3_column_int64(s, 0),
                          .start = vw_time_column(s, 1),
                          .end = vw_time_column(s, 2),
                          .wake = woken ? vw_time_column(s, 3) : INT64_MAX,
                          .stack = sqlite3_column_int(s, 11) ? 0 : sqlite3_column_int64(s, 4),
                          .state = copy_column(s, 5),
                          .syscall = copy_column(s, 6),
                          .waker = copy_column(s, 7),
                          .timer = copy_column(s, 8),
                          .next = copy_column(s, 10),
                          .held = sqlite3_column_int64(s, 12)};

    r.runq = kind && !strcmp(kind, "runq");
    r.wait = kind && (!strcmp(kind, "offcpu") || !strcmp(kind, "runq"));
    if (!r.wait && woken && kind && strcmp(kind, "syscall"))
        r.stack = 0; /* of its end, not of the wait */
    r.runnable = r.wait && r.state && !strcmp(r.state, "runnable");
    if (!st_vec_push(records, r))
        return 0;
    free_strings(&r);
    return ST_ENOMEM;
}

int vw_records_read(sqlite3 *db, int64_t thread, int64_t start, int64_t end, vw_records *records,
                    struct st_error *err)
{
    sqlite3_stmt *s;
    int step;

    if (sqlite3_prepare_v2(db, records_sql, -1, &s, NULL))
        return st_fail(err, ST_EFAIL, "cannot tell the parts of the stall: %s", sqlite3_errmsg(db));
    sqlite3_bind_int64(s, 1, thread);
    sqlite3_bind_int64(s, 2, start);
    sqlite3_bind_int64(s, 3, end);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        if (keep(s, records)) {
            sqlite3_finalize(s);
            return st_nomem(err, "the parts of a stall");
        }
    }
    sqlite3_finalize(s);
    return step == SQLITE_DONE
               ? 0
               : st_fail(err, ST_EFAIL, "cannot tell the parts of the stall: %s", sqlite3_errmsg(db));
}

const struct vw_record *vw_record_of(const vw_records *records, int64_t id, int64_t start, int64_t end)
{
    const struct vw_record *found = NULL;

    for (size_t i = 0; i < records->n; i++) {
        const struct vw_record *r = &records->at[i];
        int64_t from = r->start > start ? r->start : start, to = r->end < end ? r->end : end;

        bool same = r->wait && to > from && (to - from) >= (end - start) / 2 && from - start < RECORD_OFF;

        if (same && r->id == id)
            return r;
        if (same && !(found && found->wait))
            found = r;
        if (!found && r->wake != INT64_MAX && r->wake >= start && r->wake <= end)
            found = r;
    }
    return found;
}

void vw_records_free(vw_records *records)
{
    for (size_t i = 0; i < records->n; i++)
        free_strings(&records->at[i]);
    st_vec_free(records);
}
