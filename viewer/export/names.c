/* The names of an export: symbols, modules and threads, read once. */
#include "base/safetext.h"
#include "base/vec.h"
#include "tracedb/tracedb.h"
#include "viewer/export/export.h"
#include "viewer/rows.h"

#include <stdlib.h>
#include <string.h>

int vw_export_failed(struct vw_export *x, struct st_error *err)
{
    return st_fail(err, ST_EFAIL, "cannot read the trace: %s", sqlite3_errmsg(x->db));
}

/* A JSON string of the text, malloc'd; NULL when memory ran out. */
static char *json_text(const char *text)
{
    char *json = NULL;
    size_t size = 0;
    FILE *mem = open_memstream(&json, &size);

    if (!mem)
        return NULL;
    vw_json_string(mem, text, strlen(text));
    if (fclose(mem)) {
        free(json);
        return NULL;
    }
    return json;
}

static char *column_copy(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return strdup(text ? text : "");
}

typedef int row_fn(struct vw_export *x, sqlite3_stmt *stmt, void *list);

static int each_row(struct vw_export *x, const char *sql, row_fn *fn, void *list, struct st_error *err)
{
    sqlite3_stmt *stmt;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(x->db, sql, -1, &stmt, NULL))
        return vw_export_failed(x, err);
    while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (fn(x, stmt, list))
            rc = st_nomem(err, "the trace's names");
    if (!rc && step != SQLITE_DONE)
        rc = vw_export_failed(x, err);
    sqlite3_finalize(stmt);
    return rc;
}

typedef ST_VEC(struct vw_export_module) module_vec;
typedef ST_VEC(struct vw_export_symbol) symbol_vec;
typedef ST_VEC(struct vw_export_thread) thread_vec;

static int push_module(module_vec *v, int64_t id, char *name, bool kernel)
{
    struct vw_export_module m = {.id = id, .name = name, .kernel = kernel, .index = -1};

    m.json = name ? json_text(name) : NULL;
    if (m.json && !st_vec_push(v, m))
        return 0;
    free(m.name);
    free(m.json);
    return -1;
}

static int add_module(struct vw_export *x, sqlite3_stmt *stmt, void *list)
{
    (void)x;
    return push_module(list, sqlite3_column_int64(stmt, 0), column_copy(stmt, 1),
                       sqlite3_column_int(stmt, 2) != 0);
}

static int by_id(const void *key, const void *member)
{
    int64_t id = *(const int64_t *)key, other = *(const int64_t *)member;

    return (id > other) - (id < other);
}

static int push_symbol(struct vw_export *x, symbol_vec *v, int64_t id, char *name, int64_t module)
{
    struct vw_export_symbol s = {.id = id, .name = name, .index = -1};

    s.module = bsearch(&module, x->module_list, x->modules, sizeof(*x->module_list), by_id);
    if (!s.module)
        s.module = x->module_list;
    s.json = name ? json_text(name) : NULL;
    if (s.json && !st_vec_push(v, s))
        return 0;
    free(s.name);
    free(s.json);
    return -1;
}

static int add_symbol(struct vw_export *x, sqlite3_stmt *stmt, void *list)
{
    return push_symbol(x, list, sqlite3_column_int64(stmt, 0), column_copy(stmt, 1),
                       sqlite3_column_int64(stmt, 2));
}

static bool is_wanted(const struct vw_export *x, const struct vw_export_thread *t)
{
    char tid[24];

    snprintf(tid, sizeof(tid), "%lld", (long long)t->tid);
    for (size_t i = 0; i < x->nthreads; i++)
        if (!strcmp(x->threads[i], tid) || !strcmp(x->threads[i], t->name))
            return true;
    return x->nthreads == 0;
}

static int add_thread(struct vw_export *x, sqlite3_stmt *stmt, void *list)
{
    thread_vec *v = list;
    struct vw_export_thread t = {.id = sqlite3_column_int64(stmt, 0),
                                 .process_id = sqlite3_column_int64(stmt, 1),
                                 .pid = sqlite3_column_int64(stmt, 2),
                                 .tid = sqlite3_column_int64(stmt, 3),
                                 .name = column_copy(stmt, 4),
                                 .process = column_copy(stmt, 5),
                                 .has_calls = sqlite3_column_int(stmt, 6) != 0};

    if (t.name && t.process) {
        t.wanted = is_wanted(x, &t);
        if (!st_vec_push(v, t))
            return 0;
    }
    free(t.name);
    free(t.process);
    return -1;
}

static int check_wanted(const struct vw_export *x, struct st_error *err)
{
    for (size_t i = 0; i < x->nthreads; i++) {
        bool found = false;

        for (size_t k = 0; k < x->all_threads && !found; k++) {
            const char *one[] = {x->threads[i]};
            const struct vw_export only = {.threads = one, .nthreads = 1};

            found = is_wanted(&only, &x->thread_list[k]);
        }
        if (!found) {
            st_fail(err, ST_EFAIL, "no thread '%s' in this trace", x->threads[i]);
            return st_hint(err, "stalltrap query TRACE.db 'SELECT tid, name FROM threads' lists them");
        }
    }
    return 0;
}

int vw_export_load_names(struct vw_export *x, struct st_error *err)
{
    module_vec modules = {0};
    symbol_vec symbols = {0};
    thread_vec threads = {0};
    /* The first of each stands for what a damaged trace refers to and does not have. */
    int rc =
        push_module(&modules, INT64_MIN, strdup("[unknown]"), false) ? st_nomem(err, "the trace's names") : 0;

    if (!rc)
        rc = each_row(x, "SELECT id, name, kernel FROM module ORDER BY id", add_module, &modules, err);
    x->module_list = modules.at;
    x->modules = modules.n;
    if (!rc && push_symbol(x, &symbols, INT64_MIN, strdup("[unknown]"), INT64_MIN))
        rc = st_nomem(err, "the trace's names");
    if (!rc)
        rc = each_row(x, "SELECT id, name, module_id FROM symbol ORDER BY id", add_symbol, &symbols, err);
    x->symbol_list = symbols.at;
    x->symbols = symbols.n;
    if (!rc)
        rc = each_row(x,
                      "SELECT t.id, p.id, p.pid, t.tid, t.name, p.name, EXISTS (SELECT 1 FROM call WHERE "
                      "id >= " TDB_THREAD_FIRST_ID("t.id") " AND id < " TDB_THREAD_END_ID(
                          "t.id") " AND thread_id = t.id) FROM thread t JOIN process p ON p.id = "
                                  "t.process_id ORDER BY t.id",
                      add_thread, &threads, err);
    x->thread_list = threads.at;
    x->all_threads = threads.n;
    return rc ? rc : check_wanted(x, err);
}

void vw_export_free_names(struct vw_export *x)
{
    for (size_t i = 0; i < x->modules; i++) {
        free(x->module_list[i].name);
        free(x->module_list[i].json);
    }
    for (size_t i = 0; i < x->symbols; i++) {
        free(x->symbol_list[i].name);
        free(x->symbol_list[i].json);
    }
    for (size_t i = 0; i < x->all_threads; i++) {
        free(x->thread_list[i].name);
        free(x->thread_list[i].process);
    }
    free(x->module_list);
    free(x->symbol_list);
    free(x->thread_list);
}

struct vw_export_symbol *vw_export_symbol(struct vw_export *x, int64_t id)
{
    struct vw_export_symbol *s;

    /* The decoder numbers them from 1 without holes. */
    if (id > 0 && (uint64_t)id < x->symbols && x->symbol_list[id].id == id)
        return &x->symbol_list[id];
    s = bsearch(&id, x->symbol_list, x->symbols, sizeof(*x->symbol_list), by_id);
    return s ? s : x->symbol_list;
}

struct vw_export_thread *vw_export_thread(struct vw_export *x, int64_t id)
{
    return x->all_threads ? bsearch(&id, x->thread_list, x->all_threads, sizeof(*x->thread_list), by_id)
                          : NULL;
}

char *vw_export_thread_label(const struct vw_export_thread *t, char *buf, size_t size)
{
    char name[256];

    st_safe_text(name, sizeof(name), t->name);
    snprintf(buf, size, "%s %lld", name, (long long)t->tid);
    return buf;
}
