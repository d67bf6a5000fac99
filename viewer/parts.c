/* A stall -> its parts: from the slices and times off the CPU of its thread, and where there are none from
 * the stall records, which are measurements too. */
#include "viewer/parts.h"
#include "base/vec.h"
#include "viewer/parts_calls.h"
#include "viewer/parts_records.h"
#include "viewer/parts_wait.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A stretch of the thread on a CPU, or off it. */
struct stretch {
    int64_t start, end, cpu, call;

    bool off, preempted;

    bool record; /* no switch tells of it, a stall record does */
};

struct maker {
    sqlite3 *db;

    struct st_error *err;

    int64_t id, thread, start, end;

    char kind[16];

    char syscall[64]; /* that all of it was in; "": none, or several */

    char longest[64]; /* that more than half of it was in; "": none that is known */

    ST_VEC(struct stretch) stretches;

    vw_records records;

    vw_runs runs;

    sqlite3_stmt *add, *go_on, *mark_off, *mark_waiting, *mark_woken, *on_cpu, *place, *stack_place,
        *call_syscall;
};

/* What is known of a wait; strings are its own. */
struct wait {
    char *state, *syscall, *waker, *timer, *place, *next;

    char *had; /* who had the CPU most of the time that it was ready; NULL: not known */

    int64_t held; /* ns that it had it; 0: not known */

    int64_t woken; /* INT64_MAX: not known */

    int64_t call, stack; /* where it was; 0: none */
};

static int failed(struct maker *m)
{
    return st_fail(m->err, ST_EFAIL, "cannot tell the parts of the stall: %s", sqlite3_errmsg(m->db));
}

static char *copy_column(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return text && *text ? strdup(text) : NULL;
}

static sqlite3_stmt *prepare(struct maker *m, const char *sql)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(m->db, sql, -1, &s, NULL))
        failed(m);
    return s;
}

/* ------------------------------------------------------------------ */
/* What the trace has                                                   */

static int read_stretches(struct maker *m)
{
    sqlite3_stmt *s = prepare(m, "SELECT start_ns, end_ns, 0, cpu, 0, NULL FROM slice WHERE thread_id = ?1 "
                                 "AND start_ns <= ?3 AND end_ns >= ?2 UNION ALL SELECT start_ns, end_ns, 1, "
                                 "-1, preempted, call_id FROM offcpu WHERE thread_id = ?1 AND start_ns <= ?3 "
                                 "AND end_ns >= ?2 ORDER BY 1, 2");
    int step;

    if (!s)
        return m->err->code;
    sqlite3_bind_int64(s, 1, m->thread);
    sqlite3_bind_int64(s, 2, m->start);
    sqlite3_bind_int64(s, 3, m->end);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        struct stretch t = {.start = vw_time_column(s, 0),
                            .end = vw_time_column(s, 1),
                            .off = sqlite3_column_int(s, 2),
                            .cpu = sqlite3_column_int64(s, 3),
                            .preempted = sqlite3_column_int(s, 4),
                            .call = sqlite3_column_int64(s, 5)};

        if (st_vec_push(&m->stretches, t)) {
            sqlite3_finalize(s);
            return st_nomem(m->err, "the parts of a stall");
        }
    }
    sqlite3_finalize(s);
    return step == SQLITE_DONE ? 0 : failed(m);
}

/* ------------------------------------------------------------------ */
/* A wait                                                               */

static void set(char **to, char *text)
{
    free(*to);
    *to = text;
}

/* "sleeping in futex", "preempted in read, CPU to thread 7 "x"". */
static void read_mark(struct wait *w, const char *detail)
{
    const char *next = strstr(detail, ", CPU to "), *in = strstr(detail, " in ");
    size_t all = next ? (size_t)(next - detail) : strlen(detail);

    if (in && (size_t)(in - detail) < all)
        set(&w->syscall, strndup(in + 4, all - (size_t)(in - detail) - 4));
    else
        in = detail + all;
    set(&w->state, strndup(detail, (size_t)(in - detail)));
    if (next)
        set(&w->next, strdup(next + 9));
}

/* One row of a statement with up to three numbers bound; false: none. */
static bool one_row(sqlite3_stmt *s, int64_t a, int64_t b, int64_t c)
{
    const int64_t numbers[] = {a, b, c};

    sqlite3_reset(s);
    for (int i = 0; i < sqlite3_bind_parameter_count(s); i++)
        sqlite3_bind_int64(s, i + 1, numbers[i]);
    return sqlite3_step(s) == SQLITE_ROW;
}

static void take_record(struct wait *w, const struct vw_record *r)
{
    set(&w->state, r->state && !r->runnable ? strdup(r->state) : NULL);
    set(&w->syscall, r->syscall ? strdup(r->syscall) : NULL);
    set(&w->next, r->next && !r->runq ? strdup(r->next) : NULL);
    set(&w->had, r->next && r->runq ? strdup(r->next) : NULL);
    w->held = r->held;
    if (r->wake == INT64_MAX && !r->wait)
        return;
    set(&w->waker, r->waker ? strdup(r->waker) : NULL);
    set(&w->timer, r->timer ? strdup(r->timer) : NULL);
    w->woken = r->wake;
}

/* A wait that no switch tells of may have the mark of any wait before it: it has none. */
static bool has_mark_off(struct maker *m, const struct stretch *t)
{
    return !t->record && one_row(m->mark_off, m->thread, t->start, 0);
}

static void take_marks(struct maker *m, struct wait *w, const struct stretch *t)
{
    if (has_mark_off(m, t))
        read_mark(w, (const char *)sqlite3_column_text(m->mark_off, 0));
    else if (!w->state && one_row(m->mark_waiting, m->thread, t->start, t->end))
        read_mark(w, (const char *)sqlite3_column_text(m->mark_waiting, 0));
    if (!one_row(m->mark_woken, m->thread, t->start, t->end))
        return;
    w->woken = sqlite3_column_int64(m->mark_woken, 0);
    if (!w->waker) { /* a record's waker is known better */
        const char *by = (const char *)sqlite3_column_text(m->mark_woken, 1);

        by = by && !strncmp(by, "by ", 3) ? by + 3 : by ? by : "";
        /* hrtimer_wakeup() wakes nobody but who waits with that timer (kernel/time/hrtimer.c). */
        set(&w->waker, strdup(!strcmp(by, "an interrupt in hrtimer_wakeup") ? "its own time-out" : by));
    }
}

/* A sampled call is the one of the switch only where the switch itself was sampled. */
static void take_place(struct maker *m, struct wait *w, const struct stretch *t, const struct vw_record *r)
{
    bool at_switch = has_mark_off(m, t);

    if (t->call && one_row(m->place, t->call, at_switch, 0))
        set(&w->place, copy_column(m->place, 0));
    if (!w->place && r && r->stack && one_row(m->stack_place, r->stack, 0, 0))
        set(&w->place, copy_column(m->stack_place, 0));
    if (!w->syscall && t->call && one_row(m->call_syscall, t->call, 0, 0))
        set(&w->syscall, copy_column(m->call_syscall, 0));
    if (!w->syscall && *m->syscall)
        set(&w->syscall, strdup(m->syscall));
    if (!w->syscall && *m->longest && (t->end - t->start) * 2 > m->end - m->start)
        set(&w->syscall, strdup(m->longest)); /* two that are more than half overlap */
}

static void free_wait(struct wait *w)
{
    free(w->state);
    free(w->syscall);
    free(w->waker);
    free(w->timer);
    free(w->place);
    free(w->next);
    free(w->had);
}

/* ------------------------------------------------------------------ */
/* The rows                                                             */

/* Of a wait that still goes on the switches tell until the recording stopped, the record until the snapshot
 * was made: it is one part. Negative: SQLite's failure. */
static int goes_on(struct maker *m, int64_t start, int64_t end, const struct wait *w)
{
    const char *const same[] = {w->state, w->syscall, w->place, w->timer};

    sqlite3_reset(m->go_on);
    sqlite3_bind_int64(m->go_on, 1, start);
    sqlite3_bind_int64(m->go_on, 2, end);
    for (int i = 0; i < 4; i++)
        sqlite3_bind_text(m->go_on, i + 3, same[i], -1, SQLITE_TRANSIENT);
    return sqlite3_step(m->go_on) == SQLITE_DONE ? sqlite3_changes(m->db) : failed(m);
}

static int add(struct maker *m, int64_t start, int64_t end, const char *what, const struct wait *w,
               const char *who, int64_t who_ns)
{
    bool waits = !strcmp(what, "waiting");
    int rc;

    start = start > m->start ? start : m->start;
    end = end < m->end ? end : m->end;
    if (start >= end)
        return 0;
    rc = w && waits && !who ? goes_on(m, start, end, w) : 0;
    if (rc)
        return rc < 0 ? rc : 0;
    sqlite3_reset(m->add);
    sqlite3_clear_bindings(m->add);
    sqlite3_bind_int64(m->add, 1, start);
    sqlite3_bind_int64(m->add, 2, end);
    sqlite3_bind_text(m->add, 3, what, -1, SQLITE_TRANSIENT);
    if (w && waits) {
        sqlite3_bind_text(m->add, 4, w->state, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(m->add, 9, w->timer, -1, SQLITE_TRANSIENT);
        if (w->call)
            sqlite3_bind_int64(m->add, 10, w->call);
        if (w->stack)
            sqlite3_bind_int64(m->add, 11, w->stack);
        sqlite3_bind_text(m->add, 5, w->syscall, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(m->add, 6, w->place, -1, SQLITE_TRANSIENT);
    }
    sqlite3_bind_text(m->add, 7, who, -1, SQLITE_TRANSIENT);
    if (who_ns)
        sqlite3_bind_int64(m->add, 8, who_ns);
    return sqlite3_step(m->add) == SQLITE_DONE ? 0 : failed(m);
}

static int add_running(struct maker *m, int64_t start, int64_t end)
{
    const struct vw_run *last = m->runs.n ? &m->runs.at[m->runs.n - 1] : NULL;
    struct vw_run r = {.start = start > m->start ? start : m->start, .end = end < m->end ? end : m->end};

    if (r.start >= r.end)
        return 0;
    r.before = last ? last->before + last->end - last->start : 0;
    if (st_vec_push(&m->runs, r))
        return st_nomem(m->err, "the parts of a stall");
    return add(m, r.start, r.end, "running", NULL, NULL, 0);
}

/* Ready from `start` to `end`; `cpu` -1: of no CPU that is known. */
static int add_ready(struct maker *m, int64_t start, int64_t end, int64_t cpu, const struct wait *w)
{
    const char *who = w->had ? w->had : w->next;
    int64_t ns = w->had ? w->held : 0;

    start = start > m->start ? start : m->start;
    end = end < m->end ? end : m->end;
    if (start >= end)
        return 0;
    /* The switches of others than the targets are seldom recorded: the record may know who had it longer. */
    if (cpu >= 0 && one_row(m->on_cpu, cpu, start, end) && sqlite3_column_int64(m->on_cpu, 1) >= ns) {
        who = (const char *)sqlite3_column_text(m->on_cpu, 0);
        ns = sqlite3_column_int64(m->on_cpu, 1);
    }
    return add(m, start, end, "ready", w, who, ns);
}

/* `before`, `behind`: the CPU that it left, and that it came back on; -1: not known. */
static int add_off(struct maker *m, const struct stretch *t, int64_t before, int64_t behind)
{
    const struct vw_record *r = vw_record_of(&m->records, m->id, t->start, t->end);
    struct wait w = {.woken = INT64_MAX, .call = t->call, .stack = r ? r->stack : 0};
    bool preempted = t->preempted;
    int64_t ready;
    int rc;

    if (r)
        take_record(&w, r);
    take_marks(m, &w, t);
    take_place(m, &w, t, r);
    if (preempted) {
        rc = add_ready(m, t->start, t->end, before, &w);
    } else {
        ready = w.woken < t->end ? w.woken : t->end;
        rc = add(m, t->start, ready, "waiting", &w, w.waker, 0);
        free(w.next); /* who got the CPU when it went to sleep */
        w.next = NULL;
        if (!rc)
            rc = add_ready(m, ready, t->end, behind, &w);
    }
    free_wait(&w);
    return rc;
}

/* Where no switch tells: records of waits, and what not even they cover. */
static int add_uncovered(struct maker *m, int64_t start, int64_t end)
{
    int64_t at = start;
    int rc = 0;

    for (size_t i = 0; i < m->records.n && !rc; i++) {
        const struct vw_record *r = &m->records.at[i];
        struct stretch t = {.start = r->start,
                            .end = r->end < end ? r->end : end,
                            .off = true,
                            .preempted = r->runnable,
                            .record = true};

        if (!r->wait || t.end <= at || t.start >= end)
            continue;
        if (t.start > at)
            rc = add(m, at, t.start, "not known", NULL, NULL, 0);
        t.start = t.start > at ? t.start : at;
        if (!rc)
            rc = add_off(m, &t, -1, -1);
        at = t.end;
    }
    return rc ? rc : add(m, at, end, "not known", NULL, NULL, 0);
}

static int64_t cpu_beside(const struct maker *m, size_t i, bool before)
{
    const struct stretch *t = &m->stretches.at[i];

    if (before && i && !t[-1].off)
        return t[-1].cpu;
    return !before && i + 1 < m->stretches.n && !t[1].off ? t[1].cpu : -1;
}

static int add_all(struct maker *m)
{
    int64_t at = m->start;
    int rc = 0;

    for (size_t i = 0; i < m->stretches.n && !rc; i++) {
        struct stretch t = m->stretches.at[i];

        if (t.end <= at || t.start >= m->end)
            continue;
        if (t.start > at)
            rc = add_uncovered(m, at, t.start);
        at = t.start > at ? t.start : at;
        if (!rc && !t.off)
            rc = add_running(m, at, t.end);
        else if (!rc)
            rc = add_off(m, &t, cpu_beside(m, i, true), cpu_beside(m, i, false));
        at = t.end < m->end ? t.end : m->end;
    }
    return rc || at >= m->end ? rc : add_uncovered(m, at, m->end);
}

/* ------------------------------------------------------------------ */
/* All of it                                                            */

static const char tables_sql[] =
    "DROP TABLE IF EXISTS temp.part; DROP TABLE IF EXISTS temp.part_function;"
    "DROP TABLE IF EXISTS temp.part_within;"
    "CREATE TEMP TABLE part(start_ns INTEGER, end_ns INTEGER, what TEXT, state TEXT, syscall TEXT, place "
    "TEXT, who TEXT, who_ns INTEGER, timer TEXT, call_id INTEGER, stack_id INTEGER);"
    "CREATE TEMP TABLE part_function(function TEXT, module TEXT, kernel INTEGER, ns INTEGER, samples "
    "INTEGER);"
    "CREATE TEMP TABLE part_within(function TEXT, ns INTEGER);";

#define NAMES_UP(way)                                                                                        \
    "WITH RECURSIVE up(id, n) AS (SELECT ?1, 0 UNION ALL SELECT c.parent_id, n + 1 FROM up JOIN call c ON "  \
    "c.id = up.id WHERE c.parent_id IS NOT NULL AND n < 64) " way

static int prepare_all(struct maker *m)
{
    m->add = prepare(m, "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    m->go_on =
        prepare(m, "UPDATE part SET end_ns = ?2 WHERE end_ns = ?1 AND what = 'waiting' AND who IS NULL "
                   "AND state IS ?3 AND syscall IS ?4 AND place IS ?5 AND timer IS ?6");
    /* The sample of a switch is taken in the run that ends with it, how long before its record a machine
     * that stands still decides. Where switches were lost the run began behind them. */
    m->mark_off =
        prepare(m, "SELECT detail FROM mark WHERE name = 'offcpu' AND thread_id = ?1 AND time_ns BETWEEN "
                   "max(coalesce((SELECT end_ns FROM offcpu WHERE thread_id = ?1 AND start_ns < ?2 ORDER BY "
                   "start_ns DESC LIMIT 1), 0), coalesce((SELECT max(start_ns) FROM slice WHERE thread_id = "
                   "?1 AND start_ns < ?2), 0)) AND ?2 AND detail IS NOT NULL ORDER BY time_ns DESC LIMIT 1");
    m->mark_waiting = prepare(m, "SELECT detail FROM mark WHERE name = 'waiting' AND thread_id = ?1 AND "
                                 "time_ns BETWEEN ?2 AND ?3 AND detail IS NOT NULL LIMIT 1");
    m->mark_woken = prepare(m, "SELECT time_ns, detail FROM mark WHERE name = 'woken' AND thread_id = ?1 AND "
                               "time_ns BETWEEN ?2 AND ?3 ORDER BY time_ns LIMIT 1");
    m->on_cpu = prepare(
        m, "SELECT CASE t.tid WHEN 0 THEN 'nobody: the CPU was idle' ELSE 'thread ' || t.tid || ' \"' || "
           "t.name || '\"' END, sum(min(i.end_ns, ?3) - max(i.start_ns, ?2)) FROM slice i JOIN thread t ON "
           "t.id = i.thread_id WHERE i.cpu = ?1 AND i.start_ns >= coalesce((SELECT max(k.start_ns) FROM "
           "slice k WHERE k.cpu = ?1 AND k.start_ns <= ?2), ?2) AND i.start_ns < ?3 AND i.end_ns > ?2 GROUP "
           "BY i.thread_id ORDER BY 2 DESC LIMIT 1");
    m->place = prepare(
        m, NAMES_UP("SELECT group_concat(name, ' < ') FROM (SELECT s.name FROM up JOIN call c ON c.id = "
                    "up.id JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id WHERE NOT "
                    "m.kernel AND s.name NOT LIKE '%@plt' AND (c.flags & 32 = 0 OR ?2) ORDER BY n LIMIT 5)"));
    m->stack_place =
        prepare(m, "SELECT group_concat(name, ' < ') FROM (SELECT s.name FROM stack k JOIN symbol s ON s.id "
                   "= k.symbol_id WHERE k.id = ?1 ORDER BY k.depth LIMIT 5)");
    m->call_syscall = prepare(
        m, NAMES_UP("SELECT substr(s.name, 11) FROM up JOIN call c ON c.id = up.id JOIN symbol s ON s.id = "
                    "c.symbol_id WHERE s.name GLOB '__x64_sys_*' AND c.flags & 32 = 0 ORDER BY n LIMIT 1"));
    return m->add && m->go_on && m->mark_off && m->mark_waiting && m->mark_woken && m->on_cpu && m->place &&
                   m->stack_place && m->call_syscall
               ? 0
               : m->err->code;
}

static void free_all(struct maker *m)
{
    sqlite3_stmt *const all[] = {m->add,    m->go_on, m->mark_off,    m->mark_waiting, m->mark_woken,
                                 m->on_cpu, m->place, m->stack_place, m->call_syscall};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sqlite3_finalize(all[i]);
    st_vec_free(&m->runs);
    st_vec_free(&m->stretches);
    vw_records_free(&m->records);
}

/* Of an event loop that was away the system call that took longest is known, and how long that was. */
static void find_longest(struct maker *m, int64_t id)
{
    sqlite3_stmt *s = prepare(
        m,
        "SELECT c.value FROM stall_attr c JOIN stall_attr n ON n.stall_id = ?1 AND n.key = 'syscall_ns' "
        "JOIN stall l ON l.id = ?1 WHERE c.stall_id = ?1 AND c.key = 'longest_syscall' AND l.kind = 'busy' "
        "AND n.value * 2 > l.duration_ns AND n.value <= l.duration_ns");

    if (s && one_row(s, id, 0, 0))
        snprintf(m->longest, sizeof(m->longest), "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
}

/* Whose stall it is, from when to when; 0: there are no parts. */
static bool find_stall(struct maker *m, int64_t id)
{
    sqlite3_stmt *s = prepare(
        m, "SELECT thread_id, start_ns, duration_ns, kind, syscall FROM stall WHERE id = ?1 AND thread_id IS "
           "NOT NULL AND duration_ns > 0");
    bool found = s && one_row(s, id, 0, 0);

    if (found) {
        const char *kind = (const char *)sqlite3_column_text(s, 3);

        m->thread = sqlite3_column_int64(s, 0);
        m->start = vw_time_column(s, 1);
        m->end = m->start + vw_time_column(s, 2);
        const char *call = (const char *)sqlite3_column_text(s, 4);

        snprintf(m->kind, sizeof(m->kind), "%s", kind ? kind : "");
        if (!strcmp(m->kind, "syscall") && call)
            snprintf(m->syscall, sizeof(m->syscall), "%s", call);
    }
    sqlite3_finalize(s);
    if (found)
        find_longest(m, id);
    return found;
}

static int make(struct maker *m, int64_t id)
{
    int rc = prepare_all(m);

    if (rc || !find_stall(m, id))
        return rc;
    if (!strcmp(m->kind, "irq") || !strcmp(m->kind, "softirq"))
        return add(m, m->start, m->end, "handler", NULL, NULL, 0);
    rc = read_stretches(m);
    if (!rc)
        rc = vw_records_read(m->db, m->thread, m->start, m->end, &m->records, m->err);
    if (!rc)
        rc = add_all(m);
    return rc ? rc : vw_parts_calls(m->db, id, m->thread, &m->runs, m->err);
}

int vw_make_parts(sqlite3 *db, int64_t id, struct st_error *err)
{
    struct maker m = {.db = db, .err = err, .id = id};
    int rc;

    err->code = 0;
    if (sqlite3_exec(db, tables_sql, NULL, NULL, NULL))
        return failed(&m);
    rc = make(&m, id);
    free_all(&m);
    return rc ? rc : vw_parts_wait(db, id, err);
}
