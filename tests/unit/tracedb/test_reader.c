/* tdb_open: what is no trace database is told apart. */
#include "tracedb/tracedb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int set_up(void **state)
{
    int fd;

    (void)state;
    strcpy(path, "/tmp/tdb-test-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static void fill(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void run(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refused(int code, const char *said)
{
    struct st_error err = {0};
    sqlite3 *db = (sqlite3 *)0x1;

    assert_int_equal(tdb_open(path, &db, &err), code);
    assert_ptr_equal(db, (sqlite3 *)0x1);
    if (!strstr(err.text, said) || !strstr(err.text, path))
        fail_msg("'%s' does not name '%s' and the file", err.text, said);
}

static void not_a_database(void **state)
{
    (void)state;
    fill("this is a text, which is long enough to be looked at as a header of a database, or so one would "
         "think");
    refused(ST_EBADFILE, "not SQLite");
    fill("");
    refused(ST_EBADFILE, "empty");
}

static void another_database(void **state)
{
    (void)state;
    run("CREATE TABLE t (a)");
    refused(ST_EBADFILE, "not a trace database");
}

static void a_newer_one(void **state)
{
    (void)state;
    run("PRAGMA application_id = 0x73746c74; PRAGMA user_version = 99; CREATE TABLE t (a)");
    refused(ST_EBADFILE, "version 99");
    refused(ST_EBADFILE, "up to version 4");
}

static void one_that_never_was(void **state)
{
    (void)state;
    run("PRAGMA application_id = 0x73746c74; CREATE TABLE t (a)");
    refused(ST_EBADFILE, "version 0");
}

static void no_file(void **state)
{
    char was[64];

    (void)state;
    strcpy(was, path);
    strcpy(path, "/nowhere/at.db");
    refused(ST_EFAIL, "No such file");
    strcpy(path, "/tmp");
    refused(ST_EFAIL, "directory");
    strcpy(path, was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(not_a_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_newer_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_never_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_file, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
