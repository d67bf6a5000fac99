/* Tiles: at every level every call is there once, alone or counted; damaged ones are refused. */
#include "base/vec.h"
#include "packed.h"

#include "tracedb/tiles.h"
#include "tracedb/tracedb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/tdb-tiles-XXXXXX";

/* Calls of thread 1, depth 0 and 1: lengths from 0 ns to some us, a call of the other depth in each, some
 * time between. */
static struct tdb_span *add_calls(struct tdb_writer *w, int64_t thread, int n)
{
    struct tdb_span *calls = calloc((size_t)n * 2, sizeof(*calls)), *c = calls;
    struct st_error err = {0};
    int64_t before;
    uint64_t at = 0;

    assert_non_null(calls);
    for (int i = 0; i < n; i++, c += 2) {
        uint64_t length = i % 10 ? (uint64_t)1 << (i * 7 % 13) : 0, inside = length / 2;

        c[0] = (struct tdb_span){at, length, length - inside, (uint32_t)i % 3, 0, 0, 0};
        c[1] = (struct tdb_span){
            at, inside, inside, 3, 2 * (uint32_t)i + 1, 1, TDB_CALL_TAIL | (i % 4 ? 0 : TDB_CALL_RECURSIVE)};
        at += length + (uint64_t)i % 5;
    }
    assert_int_equal(tdb_add_calls(w, thread, 0, pack(calls, NULL, (size_t)n * 2), &before, &err), 0);
    return calls;
}

static void make(int n)
{
    struct tdb_span *first, *second;
    struct tdb_writer *w;
    struct st_error err = {0};

    assert_int_equal(tdb_writer_open(path, &w, &err), 0);
    tdb_add_row(w, "process", (struct tdb_value[]){TDB_N(1), TDB_N(1), TDB_T("p"), TDB_0, TDB_0, TDB_0}, 6,
                &err);
    tdb_add_row(w, "module", (struct tdb_value[]){TDB_N(1), TDB_T("m"), TDB_T("m"), TDB_0, TDB_N(0)}, 5,
                &err);
    for (int i = 1; i <= 4; i++)
        tdb_add_row(w, "symbol", (struct tdb_value[]){TDB_N(i), TDB_N(1), TDB_T("f"), TDB_N(i), TDB_N(1)}, 5,
                    &err);
    for (int i = 1; i <= 2; i++)
        tdb_add_row(w, "thread", (struct tdb_value[]){TDB_N(i), TDB_N(1), TDB_N(i), TDB_T("t"), TDB_0, TDB_0},
                    6, &err);
    first = add_calls(w, 1, n);
    second = add_calls(w, 2, 5);
    for (int i = 0; i < 6; i++)
        tdb_add_row(w, "offcpu",
                    (struct tdb_value[]){TDB_N(i + 1), TDB_N(1), TDB_N(i * 1000), TDB_N(i * 1000 + 300),
                                         TDB_N(i % 2), TDB_0},
                    6, &err);
    assert_int_equal(tdb_writer_commit(w, true, &err), 0);
    free(first);
    free(second);
}

static int set_up(void **state)
{
    int fd = mkstemp(path);
    struct st_error err = {0};

    (void)state;
    close(fd);
    make(TDB_TILE_CALLS);
    return tdb_open(path, (sqlite3 **)state, &err);
}

static int tear_down(void **state)
{
    sqlite3_close(*state);
    return unlink(path);
}

struct seen {
    int level, depth;

    int64_t singles, calls, busy, last;

    int64_t dense_least, ids_wrong;

    sqlite3 *db;
};

static int64_t number(sqlite3 *db, const char *sql, int64_t a, int64_t b, int64_t c, int64_t d)
{
    sqlite3_stmt *s;
    int64_t n;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_int64(s, 1, a);
    sqlite3_bind_int64(s, 2, b);
    sqlite3_bind_int64(s, 3, c);
    sqlite3_bind_int64(s, 4, d);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

/* Where one function took more than half of the time of a dense block (a call takes 1 ns at least), it has
 * its name. */
static void named_for_the_most(const struct seen *s, const struct tdb_block *b)
{
    static const char sql[] =
        "WITH f AS (SELECT symbol_id, sum(max(duration_ns, 1)) AS ns FROM call WHERE thread_id = 1 AND depth "
        "= ?1 "
        "AND start_ns >= ?2 AND start_ns < ?2 + ?3 AND duration_ns < ?3 GROUP BY 1) "
        "SELECT count(*) FROM f WHERE 2 * ns > (SELECT sum(ns) FROM f) AND symbol_id <> ?4";

    assert_int_equal(number(s->db, sql, s->depth, b->start, b->duration, b->symbol_id), 0);
}

static int look(void *ctx, const struct tdb_block *b)
{
    struct seen *s = ctx;
    int64_t bucket = b->start >> s->level;

    assert_true(bucket >= s->last);
    s->last = bucket;
    s->calls += b->calls;
    if (b->dense) {
        assert_int_equal(b->start, bucket << s->level);
        assert_int_equal(b->duration, (int64_t)1 << s->level);
        named_for_the_most(s, b);
        s->busy += b->busy_ns;
        return 0;
    }
    s->singles++;
    s->busy += b->duration;
    if (s->depth >= 0)
        s->ids_wrong += 1 - number(s->db,
                                   "SELECT count(*) FROM call WHERE id = ?1 AND start_ns = ?2 AND "
                                   "duration_ns = ?3 AND depth = ?4 "
                                   "AND thread_id = 1",
                                   b->id, b->start, b->duration, s->depth);
    return 0;
}

static void every_call_is_there_once(void **state)
{
    sqlite3 *db = *state;
    int64_t first = number(db, "SELECT first_level FROM summary WHERE thread_id = 1", 0, 0, 0, 0);
    int64_t last = number(db, "SELECT last_level FROM summary WHERE thread_id = 1", 0, 0, 0, 0);
    struct st_error err = {0};

    assert_true(first >= 2 && last >= first + 2 * TDB_LEVEL_STEP);
    for (int level = (int)first; level <= last; level += TDB_LEVEL_STEP)
        for (int depth = 0; depth < 2; depth++) {
            struct seen s = {.level = level, .depth = depth, .db = db};
            sqlite3_stmt *stmt;

            assert_int_equal(
                sqlite3_prepare_v2(
                    db,
                    "SELECT number, data FROM tile WHERE thread_id = 1 AND level = ?1 AND depth = ?2 "
                    "ORDER BY number",
                    -1, &stmt, NULL),
                SQLITE_OK);
            sqlite3_bind_int(stmt, 1, level);
            sqlite3_bind_int(stmt, 2, depth);
            while (sqlite3_step(stmt) == SQLITE_ROW)
                assert_int_equal(tdb_read_tile(sqlite3_column_blob(stmt, 1),
                                               (size_t)sqlite3_column_bytes(stmt, 1), level,
                                               sqlite3_column_int64(stmt, 0), look, &s, &err),
                                 0);
            sqlite3_finalize(stmt);
            assert_int_equal(s.calls, TDB_TILE_CALLS);
            assert_int_equal(s.ids_wrong, 0);
            assert_int_equal(
                s.busy, number(db, "SELECT sum(duration_ns) FROM call WHERE thread_id = 1 AND depth = ?1",
                               depth, 0, 0, 0));
            assert_int_equal(
                s.singles,
                number(db,
                       "SELECT count(*) FROM call WHERE thread_id = 1 AND depth = ?1 AND duration_ns >= ?2",
                       depth, (int64_t)1 << level, 0, 0));
        }
}

static void the_last_level_is_one_screen(void **state)
{
    sqlite3 *db = *state;

    assert_int_equal(number(db,
                            "SELECT max(number) FROM tile t JOIN summary y USING (thread_id) WHERE level = "
                            "last_level AND depth >= 0",
                            0, 0, 0, 0),
                     0);
}

static void small_threads_have_a_summary_only(void **state)
{
    sqlite3 *db = *state;

    assert_int_equal(number(db, "SELECT calls FROM summary WHERE thread_id = 2", 0, 0, 0, 0), 10);
    assert_int_equal(
        number(db, "SELECT depths FROM summary WHERE thread_id = 2 AND first_level IS NULL", 0, 0, 0, 0), 2);
    assert_int_equal(number(db, "SELECT count(*) FROM tile WHERE thread_id = 2", 0, 0, 0, 0), 0);
    assert_true(number(db, "SELECT count(*) FROM function_summary", 0, 0, 0, 0) > 0);
    assert_int_equal(
        number(db,
               "SELECT count(*) FROM (SELECT s.name, f.calls, f.total_ns, f.self_ns, f.min_ns, f.max_ns "
               "FROM function_summary f JOIN symbol s ON s.id = f.symbol_id EXCEPT SELECT function, "
               "calls, total_ns, self_ns, min_ns, max_ns FROM functions)",
               0, 0, 0, 0),
        0);
    assert_int_equal(
        number(db, "SELECT (SELECT count(*) FROM functions) - (SELECT count(*) FROM function_summary)", 0, 0,
               0, 0),
        0);
    assert_int_equal(
        number(db,
               "SELECT count(*) FROM summary y WHERE start_ns = (SELECT min(start_ns) FROM call WHERE "
               "thread_id = y.thread_id) "
               "AND end_ns >= (SELECT max(start_ns + duration_ns) FROM call WHERE thread_id = y.thread_id)",
               0, 0, 0, 0),
        2);
}

static int count(void *ctx, const struct tdb_block *b)
{
    (void)b;
    ++*(int *)ctx;
    return 0;
}

/* A tile cut anywhere gives the blocks before the cut, or an error; random bytes never more than that. */
static void damaged_tiles_are_refused(void **state)
{
    sqlite3 *db = *state;
    sqlite3_stmt *stmt;
    struct st_error err = {0};
    int blocks = 0, refused = 0, size;
    uint8_t *copy;

    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT data FROM tile WHERE depth = 0 ORDER BY length(data) DESC LIMIT 1", -1,
                           &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    size = sqlite3_column_bytes(stmt, 0);
    copy = malloc((size_t)size);
    memcpy(copy, sqlite3_column_blob(stmt, 0), (size_t)size);
    sqlite3_finalize(stmt);
    for (int n = 0; n < size; n++)
        refused += tdb_read_tile(copy, (size_t)n, 4, 0, count, &blocks, &err) == ST_EBADFILE;
    assert_true(refused > size / 4);
    for (int i = 0; i < 2000; i++) {
        uint8_t noise[64];

        for (size_t k = 0; k < sizeof(noise); k++)
            noise[k] = (uint8_t)(rand() >> 4 | (i & 1 ? 0x80 : 0));
        (void)tdb_read_tile(noise, sizeof(noise), i % 70 - 5, i % 3 ? i : INT64_MAX - i, count, &blocks,
                            &err);
    }
    free(copy);
    memset(&err, 0, sizeof(err));
    assert_int_equal(
        tdb_read_tile("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, 4, 0, count, &blocks, &err),
        ST_EBADFILE);
    assert_non_null(strstr(err.text, "damaged"));
}

static int stop(void *ctx, const struct tdb_block *b)
{
    (void)b;
    return ++*(int *)ctx == 3 ? 77 : 0;
}

static void the_reader_stops_when_told(void **state)
{
    sqlite3 *db = *state;
    sqlite3_stmt *stmt;
    struct st_error err = {0};
    int n = 0;

    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT data, level, number FROM tile ORDER BY length(data) DESC LIMIT 1", -1,
                           &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(tdb_read_tile(sqlite3_column_blob(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0),
                                   sqlite3_column_int(stmt, 1), sqlite3_column_int64(stmt, 2), stop, &n,
                                   &err),
                     77);
    sqlite3_finalize(stmt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_there_once),          cmocka_unit_test(the_last_level_is_one_screen),
        cmocka_unit_test(small_threads_have_a_summary_only), cmocka_unit_test(damaged_tiles_are_refused),
        cmocka_unit_test(the_reader_stops_when_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
