/* What two stalls have in common, as a text to compare. */
#include "base/safetext.h"
#include "viewer/report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The innermost functions of the path that the largest part was in, or of the function that took most of the
 * time on a CPU. Left out is what depends on the library's version or on the machine: the C library, the
 * kernel, and code without a name. */
static const char path_sql[] =
    "WITH RECURSIVE sums AS (SELECT what, sum(end_ns - start_ns) AS ns FROM part GROUP BY what), "
    "largest AS (SELECT what FROM sums ORDER BY ns DESC LIMIT 1), "
    "wait AS (SELECT call_id, stack_id FROM part WHERE what = 'waiting' AND what = (SELECT what FROM "
    "largest) ORDER "
    "BY end_ns - start_ns DESC LIMIT 1), "
    "up(id, n) AS (SELECT call_id, 0 FROM wait WHERE call_id IS NOT NULL AND stack_id IS NULL UNION ALL "
    "SELECT "
    "c.parent_id, n + 1 FROM up JOIN call c ON c.id = up.id WHERE c.parent_id IS NOT NULL AND n < 64), "
    "frame(n, symbol_id) AS (SELECT n, c.symbol_id FROM up JOIN call c ON c.id = up.id UNION ALL SELECT "
    "k.depth, "
    "k.symbol_id FROM wait JOIN stack k ON k.id = wait.stack_id) "
    "SELECT name FROM (SELECT n, s.name FROM frame JOIN symbol s ON s.id = frame.symbol_id JOIN module m ON "
    "m.id = "
    "s.module_id WHERE NOT m.kernel AND m.name NOT LIKE 'libc.%' AND m.name NOT LIKE 'libc-%' AND m.name NOT "
    "LIKE "
    "'libpthread%' AND m.name NOT LIKE 'ld-%' AND m.name NOT LIKE '[%' AND s.name NOT LIKE '[%' AND s.name "
    "NOT LIKE "
    "'%@plt' UNION ALL SELECT 0, function FROM part_within WHERE (SELECT what FROM largest) = 'running' AND "
    "function "
    "NOT LIKE '[%') ORDER BY n LIMIT 3";

/* The innermost functions of a program that an interpreter runs, without their lines. '<' stands between
 * functions. */
static const char runtime_path_sql[] =
    "SELECT replace(replace(substr(value, 1, instr(value || ' (', ' (') - 1), '<', '('), '>', ')') FROM "
    "stall_attr WHERE stall_id = ?1 AND key LIKE "
    "'frame.%' ORDER BY CAST(substr(key, 7) AS INTEGER) LIMIT 3";

/* Who ended the longest wait, where waiting is the largest part. */
static const char waker_sql[] =
    "SELECT who FROM part WHERE what = 'waiting' AND what = (SELECT what FROM part GROUP BY what ORDER BY "
    "sum(end_ns - start_ns) DESC LIMIT 1) ORDER BY end_ns - start_ns DESC LIMIT 1";

/* Without what the compiler, the linker and Rust's mangling put behind a name. */
static void strip_suffixes(char *name)
{
    static const char *const suffixes[] = {".isra.",     ".part.", ".constprop.", ".cold",
                                           ".lto_priv.", ".llvm.", ".localalias", "@"};
    char *hash = strstr(name, "::h");

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char *at = strstr(name, suffixes[i]);

        if (at && at != name)
            *at = '\0';
    }
    if (hash && strlen(hash) == 19 && strspn(hash + 3, "0123456789abcdef") == 16)
        *hash = '\0';
    for (char *c = name; *c; c++)
        if (*c == '|')
            *c = '/';
}

/* "thread", "softirq NET_RX", "interrupt": no names and numbers of threads and interrupts. */
static const char *waker_kind(const char *waker, char *buf, size_t size)
{
    static const char *const kinds[][2] = {{"thread", "thread"}, {"a softirq", "softirq"},
                                           {"irq", "interrupt"}, {"an interrupt", "interrupt"},
                                           {"the idle", "idle"}, {"an NMI", "NMI"}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strncmp(waker, kinds[i][0], strlen(kinds[i][0])))
            return kinds[i][1];
    st_safe_text(buf, size, waker);
    return !strncmp(buf, "softirq", 7) ? buf : "-";
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **s, struct st_error *err)
{
    return sqlite3_prepare_v2(db, sql, -1, s, NULL)
               ? st_fail(err, ST_EFAIL, "cannot tell the stall's fingerprint: %s", sqlite3_errmsg(db))
               : 0;
}

static int put_first(sqlite3 *db, const char *sql, int64_t id, char *text, size_t size, struct st_error *err)
{
    sqlite3_stmt *s;
    int rc = prepare(db, sql, &s, err);

    if (rc)
        return rc;
    *text = '\0';
    if (sqlite3_bind_parameter_count(s))
        sqlite3_bind_int64(s, 1, id);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0))
        snprintf(text, size, "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return 0;
}

static int put_path(sqlite3 *db, const char *sql, int64_t id, char *text, size_t size, struct st_error *err)
{
    sqlite3_stmt *s;
    size_t n = 0;
    int rc = prepare(db, sql, &s, err);

    if (rc)
        return rc;
    if (sqlite3_bind_parameter_count(s))
        sqlite3_bind_int64(s, 1, id);
    *text = '\0';
    while (sqlite3_step(s) == SQLITE_ROW && n < size) {
        char name[128], safe[256];

        snprintf(name, sizeof(name), "%s", (const char *)sqlite3_column_text(s, 0));
        strip_suffixes(name);
        st_safe_text(safe, sizeof(safe), name);
        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "<" : "", safe);
    }
    sqlite3_finalize(s);
    return 0;
}

int vw_fingerprint(sqlite3 *db, int64_t id, const struct vw_cause *cause, char *text, size_t size,
                   struct st_error *err)
{
    char kind[64], waker[128], coarse[256], buf[128], safe[128], path[512];
    int rc = put_first(db, "SELECT kind FROM stall WHERE id = ?1", id, kind, sizeof(kind), err);
    char *in;

    if (!rc)
        rc = put_first(db, waker_sql, id, waker, sizeof(waker), err);
    if (!rc)
        rc = put_path(db, runtime_path_sql, id, path, sizeof(path), err);
    if (!rc && !*path)
        rc = put_path(db, path_sql, id, path, sizeof(path), err);
    if (rc)
        return rc;
    if (!*path)
        snprintf(path, sizeof(path), "-");
    snprintf(coarse, sizeof(coarse), "%s", *cause->name ? cause->name : "not known");
    in = strstr(coarse, " in "); /* the function is of the path */
    if (in)
        *in = '\0';
    st_safe_text(safe, sizeof(safe), kind);
    snprintf(text, size, "%s|%s|%s|%s", safe, coarse, waker_kind(waker, buf, sizeof(buf)), path);
    return 0;
}
