/* The writer: what is there after a commit, and what after anything else. */
#include "packed.h"

#include "tracedb/tracedb.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char path[96];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tdb-test-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/t.db", folder);
    return 0;
}

static int files(void)
{
    DIR *dir = opendir(folder);
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    int64_t n;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void assert_text(sqlite3 *db, const char *sql, const char *expected)
{
    sqlite3_stmt *s;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(s, 0), expected);
    sqlite3_finalize(s);
}

static void add(struct tdb_writer *w, const char *table, const struct tdb_value *values, size_t n)
{
    struct st_error err = {0};

    if (tdb_add_row(w, table, values, n, &err))
        fail_msg("%s", err.text);
}
#define ADD(w, table, ...)                                                                                   \
    add(w, table, (struct tdb_value[]){__VA_ARGS__},                                                         \
        sizeof((struct tdb_value[]){__VA_ARGS__}) / sizeof(struct tdb_value))

static struct tdb_writer *start(void)
{
    struct st_error err = {0};
    struct tdb_writer *w;

    if (tdb_writer_open(path, &w, &err))
        fail_msg("%s", err.text);
    ADD(w, "process", TDB_N(1), TDB_N(100), TDB_T("p"), TDB_0, TDB_N(0), TDB_0);
    ADD(w, "thread", TDB_N(1), TDB_N(1), TDB_N(101), TDB_T("t"), TDB_0, TDB_0);
    ADD(w, "module", TDB_N(1), TDB_T("libc.so.6"), TDB_T("/lib/libc.so.6"), TDB_0, TDB_N(0));
    ADD(w, "module", TDB_N(2), TDB_T("[kernel]"), TDB_T(""), TDB_0, TDB_N(1));
    ADD(w, "symbol", TDB_N(1), TDB_N(1), TDB_T("read"), TDB_N(16), TDB_N(32));
    ADD(w, "symbol", TDB_N(2), TDB_N(2), TDB_T("[syscall]"), TDB_N(0), TDB_N(0));
    return w;
}

static void add_calls(struct tdb_writer *w)
{
    static const struct tdb_span calls[] = {
        {1010, 100, 30, 0, 0, 0, TDB_CALL_NO_CALL},
        {1020, 70, 20, 1, 1, 1, 0},
        {1030, 50, 50, 0, 2, 2, TDB_CALL_RECURSIVE | TDB_CALL_TAIL},
    };
    struct st_error err = {0};
    int64_t before = -1;

    assert_int_equal(tdb_add_calls(w, 1, 1000, pack(calls, NULL, 3), &before, &err), 0);
    assert_int_equal(before, 0);
}

static sqlite3 *open_it(void)
{
    struct st_error err = {0};
    sqlite3 *db;

    if (tdb_open(path, &db, &err))
        fail_msg("%s", err.text);
    return db;
}

static void rows_come_back_through_the_views(void **state)
{
    struct tdb_writer *w = start();
    struct st_error err = {0};
    struct stat st;
    sqlite3 *db;

    (void)state;
    add_calls(w);
    ADD(w, "stall", TDB_N(1), TDB_T("offcpu>20ms"), TDB_N(1), TDB_T("offcpu"), TDB_N(5), TDB_0, TDB_N(99),
        TDB_N(20), TDB_T("sleeping"), TDB_T("read"), TDB_0, TDB_T("why"), TDB_N(1), TDB_0, TDB_0, TDB_0,
        TDB_0, TDB_0, TDB_0);
    ADD(w, "gap", TDB_0, TDB_N(1), TDB_N(0), TDB_N(0), TDB_N(10), TDB_T("overflow"), TDB_T("detail"), TDB_0);
    assert_int_equal(tdb_set_meta_text(w, "source", "step", &err), 0);
    assert_int_equal(tdb_set_meta_number(w, "origin_perf_ns", 123456789012345, &err), 0);
    assert_int_equal(tdb_writer_commit(w, false, &err), 0);

    assert_int_equal(files(), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    db = open_it();
    assert_text(db, "PRAGMA integrity_check", "ok");
    assert_int_equal(number(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_int_equal(number(db, "PRAGMA user_version"), TDB_VERSION);
    assert_int_equal(number(db, "PRAGMA application_id"), TDB_APPLICATION_ID);
    assert_int_equal(number(db, "SELECT value FROM meta WHERE key = 'origin_perf_ns'"), 123456789012345);
    assert_text(db,
                "SELECT group_concat(id || ':' || tid || ':' || thread || ':' || function || ':' || module "
                "|| ':' || depth || ':' ||"
                " coalesce(parent_id, '-') || ':' || start_ns || ':' || end_ns || ':' || duration_ns || ':' "
                "|| self_ns || ':' || kernel"
                " || ':' || flags, ' ') FROM calls",
                "1:101:t:read:libc.so.6:0:-:10:110:100:30:0:1 2:101:t:[syscall]:[kernel]:1:1:20:90:70:20:1:0 "
                "3:101:t:read:libc.so.6:2:2:30:80:50:50:0:4");
    assert_text(db,
                "SELECT calls || ':' || total_ns || ':' || self_ns || ':' || min_ns || ':' || max_ns FROM "
                "functions WHERE function = 'read'",
                "2:100:80:50:100");
    assert_text(
        db,
        "SELECT id || ':' || pid || ':' || tid || ':' || name || ':' || process || ':' || calls FROM threads",
        "1:100:101:t:p:3");
    assert_text(db,
                "SELECT trigger || ':' || tid || ':' || thread || ':' || coalesce(end_ns, 'open') || ':' || "
                "reason FROM stalls",
                "offcpu>20ms:101:t:open:why");
    assert_text(db, "SELECT reason || ':' || cpu FROM gaps", "overflow:0");
    sqlite3_close(db);
}

static void the_database_is_read_only(void **state)
{
    struct tdb_writer *w = start();
    struct st_error err = {0};
    sqlite3 *db;

    (void)state;
    assert_int_equal(tdb_writer_commit(w, false, &err), 0);
    db = open_it();
    assert_int_equal(sqlite3_exec(db, "DELETE FROM process", NULL, NULL, NULL), SQLITE_READONLY);
    sqlite3_close(db);
}

static void indexes_serve_the_viewer(void **state)
{
    struct tdb_span calls[1000];
    int64_t before = 0;
    struct tdb_writer *w = start();
    struct st_error err = {0};
    sqlite3_stmt *s;
    sqlite3 *db;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        calls[i] = (struct tdb_span){i, 1, 1, 0, 0, 0, 0};
    for (int64_t thread = 1; thread <= 10; thread++)
        assert_int_equal(tdb_add_calls(w, thread, 0, pack(calls, NULL, 1000), &before, &err), 0);
    assert_int_equal(before, 9000);
    assert_int_equal(tdb_writer_commit(w, false, &err), 0);
    db = open_it();
    assert_int_equal(
        sqlite3_prepare_v2(db, "EXPLAIN QUERY PLAN SELECT * FROM call WHERE symbol_id = 1", -1, &s, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_non_null(strstr((const char *)sqlite3_column_text(s, 3), "call_symbol"));
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void nothing_is_there_before_the_commit(void **state)
{
    struct tdb_writer *w = start();

    (void)state;
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(files(), 1);
    tdb_writer_abort(w);
    assert_int_equal(files(), 0);
    tdb_writer_abort(NULL);
}

static void what_is_there_stays_unless_replaced(void **state)
{
    struct st_error err = {0};
    struct stat before, after;

    (void)state;
    assert_int_equal(tdb_writer_commit(start(), false, &err), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(tdb_writer_commit(start(), false, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(files(), 1);
    assert_int_equal(tdb_writer_commit(start(), true, &err), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    assert_int_equal(files(), 1);
}

static void errors_carry_what_sqlite_says(void **state)
{
    struct tdb_writer *w = start();
    struct st_error err = {0};

    (void)state;
    assert_int_equal(tdb_add_row(w, "no_such_table", (struct tdb_value[]){TDB_N(1)}, 1, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "no such table"));
    assert_int_equal(tdb_add_row(w, "meta", (struct tdb_value[]){TDB_T("k"), TDB_0, TDB_0}, 3, &err),
                     ST_EFAIL);
    assert_non_null(strstr(err.text, "2 columns but 3 values"));
    assert_int_equal(tdb_set_meta_text(w, "twice", "1", &err), 0);
    assert_int_equal(tdb_set_meta_text(w, "twice", "2", &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "UNIQUE"));
    assert_int_equal(tdb_set_meta_text(w, "after", "3", &err), 0);
    tdb_writer_abort(w);
    assert_int_equal(tdb_writer_open("/nowhere/t.db", &w, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "/nowhere/t.db"));
}

/* No room: the size a file may have stands in for the disk. */
static void a_full_disk_leaves_nothing(void **state)
{
    struct rlimit was, small = {256 * 1024, RLIM_INFINITY};
    struct tdb_writer *w = start();
    struct st_error err = {0};
    struct tdb_span *calls = calloc(100000, sizeof(*calls));
    int64_t before;
    int rc;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_non_null(calls);
    assert_int_equal(tdb_add_calls(w, 1, 0, pack(calls, NULL, 100000), &before, &err), 0);
    rc = tdb_writer_commit(w, false, &err);
    free(calls);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, ST_EFAIL);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(files(), 0);
}

static void calls_out_of_order_are_refused(void **state)
{
    static const struct tdb_span late[] = {{20, 5, 5, 0, 0, 0, 0}, {10, 5, 5, 0, 0, 0, 0}};
    static const struct tdb_span own_parent[] = {{20, 5, 5, 0, 1, 0, 0}};
    static const struct tdb_span early[] = {{20, 5, 5, 0, 0, 0, 0}};
    struct tdb_writer *w = start();
    struct st_error err = {0};
    int64_t before;

    (void)state;
    assert_int_equal(tdb_add_calls(w, 1, 0, pack(late, NULL, 2), &before, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "thread 1"));
    assert_int_equal(tdb_add_calls(w, 1, 0, pack(own_parent, NULL, 1), &before, &err), ST_EFAIL);
    assert_int_equal(tdb_add_calls(w, 1, 21, pack(early, NULL, 1), &before, &err), ST_EFAIL);
    assert_int_equal(tdb_add_calls(w, 2, 20, pack(early, NULL, 1), &before, &err), 0);
    assert_int_equal(tdb_add_calls(w, 2, 20, pack(early, NULL, 1), &before, &err), ST_EFAIL);
    assert_int_equal(tdb_add_calls(w, 1, 20, pack(early, NULL, 1), &before, &err), ST_EFAIL);
    assert_int_equal(tdb_writer_commit(w, false, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_back_through_the_views, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_database_is_read_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(indexes_serve_the_viewer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_there_before_the_commit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_there_stays_unless_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_carry_what_sqlite_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_out_of_order_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_nothing, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
