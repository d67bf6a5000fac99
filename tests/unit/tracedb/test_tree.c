/* B-trees that are written without SQLite: SQLite finds them sound, and in them what was put in, whatever the
 * number and the size of the entries. */
#include "tracedb/tree.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef ST_SANITIZED
#define STEP 7 /* each round trip is a database; the plain build makes them all */
#define MANY 40000
#else
#define STEP 1
#define MANY 200000
#endif

static char path[] = "/tmp/tdb-tree-XXXXXX";

static int set_up(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    close(fd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    int64_t n;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) || sqlite3_step(s) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void assert_sound(sqlite3 *db, const char *what, int64_t n)
{
    sqlite3_stmt *s;

    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    if (strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0)
        fail_msg("%s, %lld entries: %s", what, (long long)n, sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
}

/* An empty file of small pages with a table, an index of it and a table without rowid; other pages are free
 * already. */
static sqlite3 *make_empty(int page)
{
    char sql[64];
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    snprintf(sql, sizeof(sql), "PRAGMA page_size = %d", page);
    run(db, sql);
    run(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
    run(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); CREATE INDEX ta ON t (a);"
            "CREATE TABLE w (k PRIMARY KEY, data) WITHOUT ROWID;"
            "CREATE TABLE x (y); INSERT INTO x VALUES (zeroblob(5000)); DROP TABLE x");
    return db;
}

static uint32_t root_of(sqlite3 *db, const char *name)
{
    char sql[96];

    snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", name);
    return (uint32_t)number(db, sql);
}

/* A number of every width, ascending with i. */
static int64_t value_of(int64_t i)
{
    return (i - 5) * (i - 5) * (i < 5 ? -1 : 1) * (i > 20 ? 1000 : 1);
}

static size_t blob_of(int64_t i, size_t most)
{
    return 1 + (size_t)(i * 7919) % most;
}

static int fill_table(struct tdb_tree *t, int64_t n, struct st_error *err)
{
    uint8_t record[sizeof(struct tdb_record) + 16];
    int rc = 0;

    for (int64_t i = 0; i < n && !rc; i++) {
        struct tdb_record r;

        r.ntypes = r.nvalues = 0;
        tdb_record_null(&r);
        tdb_record_number(&r, value_of(i));
        tdb_record_number(&r, i % 3);
        rc = tdb_tree_add(t, i + 1, record, tdb_record_put(&r, 0, record), err);
    }
    return rc;
}

static int fill_index(struct tdb_tree *t, int64_t n, struct st_error *err)
{
    uint8_t record[sizeof(struct tdb_record) + 16];
    int rc = 0;

    for (int64_t i = 0; i < n && !rc; i++) {
        struct tdb_record r;

        r.ntypes = r.nvalues = 0;
        tdb_record_number(&r, value_of(i));
        tdb_record_number(&r, i + 1);
        rc = tdb_tree_add(t, 0, record, tdb_record_put(&r, 0, record), err);
    }
    return rc;
}

static int fill_blobs(struct tdb_tree *t, int64_t n, size_t most, struct st_error *err)
{
    uint8_t *record = malloc(sizeof(struct tdb_record) + 16 + most);
    int rc = 0;

    assert_non_null(record);
    for (int64_t i = 0; i < n && !rc; i++) {
        size_t blob = blob_of(i, most), head;
        struct tdb_record r;

        r.ntypes = r.nvalues = 0;
        tdb_record_number(&r, i);
        head = tdb_record_put(&r, blob, record);
        memset(record + head, (int)(i & 0xff), blob);
        rc = tdb_tree_add(t, 0, record, head + blob, err);
    }
    free(record);
    return rc;
}

/* With `gap`, all pages before the one that SQLite locks by are taken, but for three. */
static void fill(const uint32_t *roots, int64_t n, size_t most, bool gap)
{
    struct st_error err = {0};
    struct tdb_pages pages;
    struct tdb_tree *tree;
    struct tdb_page_range before = {0};
    int fd = open(path, O_RDWR);

    assert_int_equal(tdb_pages_open(&pages, fd, path, &err), 0);
    if (gap) {
        struct tdb_page_range taken;

        assert_int_equal(tdb_pages_take_new(&pages, tdb_pages_locked(&pages) - pages.next - 3, &taken, &err),
                         0);
        before = taken;
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tdb_tree_open(&pages, roots[i], i > 0, &tree, &err), 0);
        assert_int_equal(i == 0   ? fill_table(tree, n, &err)
                         : i == 1 ? fill_index(tree, n, &err)
                                  : fill_blobs(tree, n, most, &err),
                         0);
        assert_int_equal(tdb_tree_close(tree, &err), 0);
    }
    assert_int_equal(tdb_pages_give(&pages, before, &err), 0);
    assert_int_equal(tdb_pages_close(&pages, &err), 0);
    tdb_pages_free(&pages);
    close(fd);
}

static void check(sqlite3 *db, int64_t n, size_t most)
{
    int64_t bytes = 0, sum = 0;

    for (int64_t i = 0; i < n; i++) {
        bytes += (int64_t)blob_of(i, most);
        sum += value_of(i);
    }
    assert_sound(db, "trees", n);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), n);
    assert_int_equal(number(db, "SELECT coalesce(sum(a), 0) FROM t"), sum);
    assert_int_equal(number(db, "SELECT count(*) FROM t INDEXED BY ta WHERE a > -99999"), n);
    assert_int_equal(
        number(db, "SELECT count(*) FROM t x JOIN t y INDEXED BY ta ON y.a = x.a WHERE y.id = x.id"), n);
    assert_int_equal(number(db, "SELECT coalesce(sum(length(data)), 0) FROM w"), bytes);
    assert_int_equal(
        number(db, "SELECT count(*) FROM w WHERE hex(substr(data, -1)) = printf('%02X', k % 256)"), n);
}

static void round_trip(int page, int64_t n, size_t most, bool gap)
{
    sqlite3 *db = make_empty(page);
    uint32_t roots[3] = {root_of(db, "t"), root_of(db, "ta"), root_of(db, "w")};

    sqlite3_close(db);
    fill(roots, n, most, gap);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
    check(db, n, most);
    /* It is a database like any other: it takes rows, and loses them. */
    run(db, "INSERT INTO t SELECT id + 1000000, a, 1 FROM t; DELETE FROM t WHERE id % 2; DELETE FROM w WHERE "
            "k % 3");
    assert_sound(db, "changed trees", n);
    sqlite3_close(db);
    assert_int_equal(truncate(path, 0), 0);
}

/* Around every count at which a page of the small size, and a level, is full. */
static void any_number_of_entries(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 400; n += STEP)
        round_trip(512, n, 60, false);
    for (int64_t n = 400; n < 6000; n += 173 * STEP)
        round_trip(512, n, 60, false);
}

static void any_size_of_entries(void **state)
{
    static const size_t sizes[] = {20, 90, 110, 500, 600, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int64_t n = 1; n < 300; n = n * 2 + 1)
            round_trip(512, n, sizes[i], false);
    round_trip(4096, 1000, 9000, false);
    round_trip(65536, 3000, 90000, false);
}

static void many_entries(void **state)
{
    (void)state;
    round_trip(512, MANY, 40, false);
    round_trip(4096, MANY, 40, false);
}

/* https://www.sqlite.org/fileformat2.html#the_lock_byte_page: at 1 GiB, in a file that is mostly holes here.
 */
static void the_page_of_the_lock_is_left_out(void **state)
{
    (void)state;
    round_trip(65536, 100, 200, true);
    round_trip(65536, 40000, 90, true);
    round_trip(65536, 50, 300000, true);
}

static void numbers_are_what_sqlite_reads(void **state)
{
    static const int64_t numbers[] = {INT64_MIN,
                                      -0x800000000001,
                                      -0x800000000000,
                                      -0x80000001,
                                      -0x80000000LL,
                                      -0x800001,
                                      -0x800000,
                                      -0x8001,
                                      -0x8000,
                                      -0x81,
                                      -0x80,
                                      -1,
                                      0,
                                      1,
                                      2,
                                      0x7f,
                                      0x80,
                                      0x7fff,
                                      0x8000,
                                      0x7fffff,
                                      0x800000,
                                      0x7fffffff,
                                      0x80000000LL,
                                      0x7fffffffffff,
                                      0x800000000000,
                                      INT64_MAX};
    enum { N = sizeof(numbers) / sizeof(numbers[0]) };
    uint8_t record[sizeof(struct tdb_record) + 16];
    sqlite3 *db = make_empty(4096);
    uint32_t root = root_of(db, "t");
    struct st_error err = {0};
    struct tdb_pages pages;
    struct tdb_tree *tree;
    int fd;

    (void)state;
    sqlite3_close(db);
    fd = open(path, O_RDWR);
    assert_int_equal(tdb_pages_open(&pages, fd, path, &err), 0);
    assert_int_equal(tdb_tree_open(&pages, root, false, &tree, &err), 0);
    for (int64_t i = 0; i < N; i++) {
        struct tdb_record r;

        r.ntypes = r.nvalues = 0;
        tdb_record_null(&r);
        tdb_record_number(&r, numbers[i]);
        tdb_record_null(&r);
        /* rowids of every length, too */
        assert_int_equal(tdb_tree_add(tree, i == N - 1 ? INT64_MAX : (int64_t)1 << (i * 2), record,
                                      tdb_record_put(&r, 0, record), &err),
                         0);
    }
    assert_int_equal(tdb_tree_close(tree, &err), 0);
    assert_int_equal(tdb_pages_close(&pages, &err), 0);
    tdb_pages_free(&pages);
    close(fd);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "REINDEX");
    assert_sound(db, "numbers", N);
    for (int64_t i = 0; i < N; i++) {
        char sql[96];

        snprintf(sql, sizeof(sql), "SELECT a FROM t WHERE id = %lld",
                 i == N - 1 ? (long long)INT64_MAX : (long long)1 << (i * 2));
        assert_true(number(db, sql) == numbers[i]);
    }
    assert_int_equal(number(db, "SELECT count(*) FROM t WHERE b IS NULL"), N);
    sqlite3_close(db);
    assert_int_equal(truncate(path, 0), 0);
}

static void a_file_that_is_none_is_refused(void **state)
{
    struct st_error err = {0};
    struct tdb_pages pages;
    int fd = open(path, O_RDWR);

    (void)state;
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(tdb_pages_open(&pages, fd, path, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, path));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_entries),
        cmocka_unit_test(any_size_of_entries),
        cmocka_unit_test(many_entries),
        cmocka_unit_test(the_page_of_the_lock_is_left_out),
        cmocka_unit_test(numbers_are_what_sqlite_reads),
        cmocka_unit_test(a_file_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
