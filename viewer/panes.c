/* The panes beside the timeline: lists, SQL, details; and files that hold a screen. */
#include "base/outfile.h"
#include "base/safetext.h"
#include "viewer/functions.h"
#include "viewer/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ?1: the selected call's symbol; ?2: the last searched text; ?3: the selected call. Each reads an amount
 * that does not grow with the trace: of a function's calls, those around the selected one. */
static const struct {
    enum vw_request request;

    const char *title, *sql;
} lists[] = {
    {VW_REQ_LIST_FUNCTIONS, "functions by own time",
     "SELECT s.name AS function, m.name AS module, count(*) AS calls, sum(c.self_ns) AS self_ns, sum(CASE "
     "WHEN "
     "c.flags & 256 THEN 0 ELSE c.duration_ns END) AS total_ns, max(c.duration_ns) AS max_ns, s.id AS "
     "go_symbol_id FROM call c JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id GROUP "
     "BY c.symbol_id ORDER BY self_ns DESC"},
    {VW_REQ_LIST_CALLS, "calls of this function around this one, the slowest first",
     "SELECT s.name AS function, t.name AS thread, t.tid, c.start_ns, c.duration_ns, c.self_ns, c.id AS "
     "go_call_id, c.thread_id AS "
     "go_thread_id FROM (SELECT id FROM (SELECT id FROM call WHERE symbol_id = ?1 AND id >= ?3 ORDER BY id "
     "LIMIT 1000) UNION ALL SELECT id FROM (SELECT id FROM call WHERE symbol_id = ?1 AND id < ?3 ORDER BY id "
     "DESC LIMIT 1000)) n CROSS JOIN call c ON c.id = n.id JOIN symbol s ON s.id = c.symbol_id JOIN thread t "
     "ON t.id = c.thread_id ORDER BY c.duration_ns DESC, c.id"},
    {VW_REQ_LIST_HITS, "search hits",
     "SELECT s.name AS function, t.name AS thread, t.tid, c.start_ns, c.duration_ns, c.id AS go_call_id, "
     "c.thread_id AS go_thread_id FROM "
     "symbol s CROSS JOIN call c ON c.symbol_id = s.id JOIN thread t ON t.id = c.thread_id WHERE ?2 <> '' "
     "AND "
     "instr(lower(s.name), lower(?2))"},
    {VW_REQ_LIST_STALLS, "stalls",
     "SELECT thread, tid, kind, start_ns, duration_ns, state, syscall, waker, thread_id AS go_thread_id FROM "
     "stalls ORDER BY start_ns"},
    {VW_REQ_LIST_GAPS, "gaps",
     "SELECT coalesce(t.name || ' ' || t.tid, 'CPU ' || g.cpu, 'all') AS track, g.start_ns, g.end_ns - "
     "g.start_ns AS duration_ns, reason, "
     "detail, g.thread_id AS go_thread_id FROM gap g LEFT JOIN thread t ON t.id = g.thread_id ORDER BY "
     "g.start_ns"},
    {VW_REQ_LIST_MARKS, "marks in the trace",
     "SELECT coalesce(t.name || ' ' || t.tid, 'all') AS track, m.time_ns, m.name, m.detail, m.thread_id AS "
     "go_thread_id FROM mark m LEFT "
     "JOIN thread t ON t.id = m.thread_id ORDER BY m.time_ns"},
};

/* The same as the view `functions`, from what the decoder counted. */
static const char counted_functions[] =
    "SELECT s.name AS function, m.name AS module, f.calls, f.self_ns, f.total_ns, f.max_ns, s.id AS "
    "go_symbol_id FROM "
    "function_summary f JOIN symbol s ON s.id = f.symbol_id JOIN module m ON m.id = s.module_id ORDER BY "
    "f.self_ns DESC LIMIT 10000";

static int open_list(struct vw_view *v, sqlite3_stmt *stmt, const char *title, bool plain)
{
    struct st_error why = {0};

    vw_list_free(&v->list);
    if (vw_list_read(&v->list, stmt, plain, &why)) {
        st_safe_text(v->message, sizeof(v->message), why.text);
        v->list_open = false;
        return 0;
    }
    st_safe_text(v->list.title, sizeof(v->list.title), title);
    v->list_open = true;
    return 0;
}

int vw_open_list(struct vw_view *v, enum vw_request request, struct st_error *err)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        bool counted = request == VW_REQ_LIST_FUNCTIONS && v->trace->counted;
        sqlite3_stmt *stmt;
        int rc;

        if (lists[i].request != request)
            continue;
        if (request == VW_REQ_LIST_CALLS && !v->selected) {
            snprintf(v->message, sizeof(v->message), "no call is selected");
            return 0;
        }
        if (sqlite3_prepare_v2(v->trace->db, counted ? counted_functions : lists[i].sql, -1, &stmt, NULL))
            return vw_sql_failed(v->trace, err);
        if (sqlite3_bind_parameter_count(stmt) >= 1)
            sqlite3_bind_int64(stmt, 1, v->found.call.symbol_id);
        if (sqlite3_bind_parameter_count(stmt) >= 2)
            sqlite3_bind_text(stmt, 2, v->pattern, -1, SQLITE_STATIC);
        if (sqlite3_bind_parameter_count(stmt) >= 3)
            sqlite3_bind_int64(stmt, 3, v->found.call.id);
        rc = open_list(v, stmt, lists[i].title, false);
        sqlite3_finalize(stmt);
        return rc;
    }
    return 0;
}

int vw_run_sql(struct vw_view *v, const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    vw_deny_attach(v->trace->db);

    if (sqlite3_prepare_v2(v->trace->db, sql, -1, &stmt, NULL) || !stmt) {
        st_safe_text(v->message, sizeof(v->message), stmt ? "" : sqlite3_errmsg(v->trace->db));
        return 0;
    }
    if (!sqlite3_stmt_readonly(stmt))
        snprintf(v->message, sizeof(v->message), "a trace is read-only: this statement would change it");
    else
        open_list(v, stmt, sql, true);
    sqlite3_finalize(stmt);
    return 0;
}

static int go_place(struct vw_view *v, struct st_error *err)
{
    struct vw_place p;
    struct vw_found found;
    int rc = 0;

    if (!vw_list_count(&v->list))
        return 0;
    p = v->list.places.at[v->list.at];
    if (p.call_id)
        rc = vw_find_id(v->trace, p.call_id, &found, err);
    else if (p.symbol_id)
        rc = vw_find_longest_of(v->trace, p.symbol_id, &found, err);
    if (rc > 0) {
        vw_view_remember(v);
        vw_view_select(v, &found);
    } else if (!rc && p.time >= 0) {
        vw_view_go(v, p.thread_id, p.time);
    } else if (!rc) {
        snprintf(v->message, sizeof(v->message),
                 "this row is no place: it needs call_id, symbol_id, or start_ns and thread_id");
    }
    return rc < 0 ? rc : 0;
}

/* Keys that the open list takes; the others stay the timeline's. Returns 1 when the key was taken. */
int vw_list_key(struct vw_view *v, uint32_t key, struct st_error *err)
{
    int page = v->screen->height / 3;

    switch (key) {
    case 'q':
    case 033:
        v->list_open = false;
        return 1;
    case 'j':
    case VW_KEY_DOWN:
        vw_list_move(&v->list, 1);
        return 1;
    case 'k':
    case VW_KEY_UP:
        vw_list_move(&v->list, -1);
        return 1;
    case VW_KEY_PAGE_DOWN:
        vw_list_move(&v->list, page);
        return 1;
    case VW_KEY_PAGE_UP:
        vw_list_move(&v->list, -page);
        return 1;
    case 'g':
    case VW_KEY_HOME:
        vw_list_move(&v->list, -VW_LIST_ROWS);
        return 1;
    case 'G':
    case VW_KEY_END:
        vw_list_move(&v->list, VW_LIST_ROWS);
        return 1;
    case '\r':
    case '\n':
        return go_place(v, err) ? err->code : 1;
    default:
        return 0;
    }
}

/* What the details pane tells of the selection, a line each: a title and one text. ?1 is the call, ?2 its
 * start, ?3 its thread. */
static const struct {
    const char *title, *sql;
} details[] = {
    {"source",
     "SELECT o.file || ':' || o.line FROM call c JOIN source o ON o.symbol_id = c.symbol_id WHERE c.id = ?1"},
    {"IPC", "SELECT printf('%.2f (%,d instructions, %,d cycles)', 1.0 * instructions / cycles, instructions, "
            "cycles) FROM call WHERE id = ?1 AND cycles > 0"},
    {"module", "SELECT m.path || coalesce(', build id ' || m.build_id, '') FROM call c JOIN symbol s ON s.id "
               "= c.symbol_id JOIN module m ON "
               "m.id = s.module_id WHERE c.id = ?1"},
    {"address", "SELECT printf('0x%x, %d bytes', s.address, s.size) FROM call c JOIN symbol s ON s.id = "
                "c.symbol_id WHERE c.id = ?1"},
    {"called by", "WITH RECURSIVE up(id, n) AS (SELECT parent_id, 1 FROM call WHERE id = ?1 UNION ALL SELECT "
                  "c.parent_id, n + 1 FROM up JOIN "
                  "call c ON c.id = up.id WHERE n < 40) SELECT group_concat(name, ' < ') FROM (SELECT s.name "
                  "FROM up JOIN call c ON c.id = "
                  "up.id JOIN symbol s ON s.id = c.symbol_id ORDER BY n)"},
    {"off-CPU in it",
     "SELECT count(*) || ' times, ' || duration(sum(o.end_ns - o.start_ns)) || CASE WHEN sum(preempted) THEN "
     "', "
     "' || sum(preempted) || ' of them preempted' ELSE '' END FROM (SELECT start_ns, end_ns, preempted FROM "
     "offcpu WHERE thread_id = ?3 AND start_ns >= ?2 AND start_ns < (SELECT start_ns + duration_ns FROM call "
     "WHERE id = ?1) LIMIT 10000) o HAVING count(*) > 0"},
    {"stall", "SELECT l.reason FROM stall l WHERE l.thread_id = ?3 AND l.start_ns >= ?2 AND l.start_ns < "
              "(SELECT start_ns + duration_ns FROM call "
              "WHERE id = ?1) ORDER BY l.duration_ns DESC LIMIT 1"},
    {"its record", "SELECT group_concat(a.key || ' ' || a.value, ', ') FROM stall_attr a WHERE a.stall_id = "
                   "(SELECT l.id FROM stall l WHERE "
                   "l.thread_id = ?3 AND l.start_ns >= ?2 AND l.start_ns < (SELECT start_ns + duration_ns "
                   "FROM call WHERE id = ?1) ORDER BY "
                   "l.duration_ns DESC LIMIT 1) AND a.key NOT LIKE '%frame.%'"},
    {"interpreted", "SELECT group_concat(value, ' < ') FROM (SELECT a.value FROM stall_attr a WHERE "
                    "a.stall_id = (SELECT l.id FROM stall l WHERE l.thread_id = ?3 AND l.start_ns >= ?2 AND "
                    "l.start_ns < (SELECT start_ns + duration_ns FROM call WHERE id = ?1) ORDER BY "
                    "l.duration_ns DESC LIMIT 1) AND a.key LIKE 'frame.%' ORDER BY CAST(substr(a.key, 7) AS "
                    "INTEGER))"},
    {"on CPU",
     "SELECT cpu FROM slice WHERE thread_id = ?3 AND start_ns <= ?2 ORDER BY start_ns DESC LIMIT 1"},
};

/* The first two of details are of what databases have from version 3 on. */
enum { OLD_DETAILS = 2 };

/* Draws the lines that there is an answer to. */
int vw_draw_details(struct vw_view *v, int first, int rows, struct st_error *err)
{
    int y = first;

    for (size_t i = v->trace->sourced ? 0 : OLD_DETAILS;
         v->selected && i < sizeof(details) / sizeof(details[0]) && y < first + rows; i++) {
        char safe[2048], line[2100];
        sqlite3_stmt *stmt;
        int rc;

        rc = vw_statement(v->trace, details[i].sql, &stmt, err);

        if (rc)
            return rc;
        sqlite3_bind_int64(stmt, 1, v->found.call.id);
        if (sqlite3_bind_parameter_count(stmt) >= 2)
            sqlite3_bind_int64(stmt, 2, v->found.call.start);
        if (sqlite3_bind_parameter_count(stmt) >= 3)
            sqlite3_bind_int64(stmt, 3, v->found.thread_id);
        if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
            const char *text = (const char *)sqlite3_column_text(stmt, 0);

            st_safe_text(safe, sizeof(safe), text ? text : "");
            snprintf(line, sizeof(line), "%-14s %s", details[i].title, safe);
            vw_put_text(v->screen, 0, y++, v->screen->width, VW_STYLE_PLAIN, line);
        }
        sqlite3_reset(stmt);
    }
    return 0;
}

int vw_save_screen(const struct vw_screen *s, const char *path, struct st_error *err)
{
    struct st_outfile out;
    FILE *f;
    int rc = st_outfile_open(&out, path, err);

    if (rc)
        return rc;
    f = fdopen(dup(out.fd), "w");
    if (f)
        vw_screen_print(s, f);
    if (!f || fclose(f)) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", path);
        st_outfile_abort(&out);
        return rc;
    }
    return st_outfile_commit(&out, true, err);
}
