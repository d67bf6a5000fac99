/* The cause of a stall: the first rule of viewer/causes that gives a row. */
#include "base/safetext.h"
#include "viewer/report.h"
#include "viewer/sql.h"

static int try_rule(sqlite3 *db, const struct vw_sql *rule, int64_t id, struct vw_cause *cause,
                    struct st_error *err)
{
    sqlite3_stmt *s;
    int step;

    if (sqlite3_prepare_v2(db, rule->text, -1, &s, NULL))
        return st_fail(err, ST_EFAIL, "cause rule '%s': cannot read the trace: %s", rule->name,
                       sqlite3_errmsg(db));
    sqlite3_bind_int64(s, 1, id);
    step = sqlite3_step(s);
    if (step == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0),
                   *evidence = (const char *)sqlite3_column_text(s, 1);

        st_safe_text(cause->name, sizeof(cause->name), name ? name : "");
        st_safe_text(cause->evidence, sizeof(cause->evidence), evidence ? evidence : "");
    }
    sqlite3_finalize(s);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return st_fail(err, ST_EFAIL, "cause rule '%s': cannot read the trace: %s", rule->name,
                       sqlite3_errmsg(db));
    return step == SQLITE_ROW;
}

int vw_find_cause(sqlite3 *db, int64_t id, struct vw_cause *cause, struct st_error *err)
{
    int found = 0;

    *cause = (struct vw_cause){.name = ""};
    for (const struct vw_sql *rule = vw_causes; rule->name && !found; rule++)
        found = try_rule(db, rule, id, cause, err);
    return found < 0 ? found : 0;
}
