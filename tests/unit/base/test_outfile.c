/* A file gets its name on any file system, and never in place of another. */
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int refuses_links, refuses_flags; /* errno of a file system that cannot */

int __real_linkat(int from, const char *name, int to, const char *as, int flags);
int __wrap_linkat(int from, const char *name, int to, const char *as, int flags);
int __wrap_linkat(int from, const char *name, int to, const char *as, int flags)
{
    errno = refuses_links;
    return refuses_links ? -1 : __real_linkat(from, name, to, as, flags);
}

int __real_renameat2(int from, const char *name, int to, const char *as, unsigned flags);
int __wrap_renameat2(int from, const char *name, int to, const char *as, unsigned flags);
int __wrap_renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
    errno = refuses_flags;
    return refuses_flags ? -1 : __real_renameat2(from, name, to, as, flags);
}

static char folder[] = "/tmp/stalltrap-test.XXXXXX";
static char path[64];

static int begin(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.data", folder);
    return 0;
}

/* rmdir() says no where a temporary file was left. */
static int end(void **state)
{
    (void)state;
    refuses_links = refuses_flags = 0;
    unlink(path);
    return rmdir(folder);
}

static int write_file(const char *text, struct st_error *err)
{
    struct st_outfile out;

    assert_int_equal(st_outfile_open(&out, path, err), 0);
    assert_int_equal(st_outfile_write(&out, text, strlen(text), err), 0);
    return st_outfile_commit(&out, false, err);
}

static void holds(const char *expected)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

static void names_and_never_replaces(void)
{
    struct st_error err = {0};
    struct stat st;

    assert_int_equal(write_file("first", &err), 0);
    holds("first");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(write_file("second", &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "File exists"));
    holds("first");
}

static void by_rename(void **state)
{
    (void)state;
    refuses_links = EPERM;
    names_and_never_replaces();
}

static void by_link(void **state)
{
    (void)state;
    refuses_flags = EINVAL;
    names_and_never_replaces();
}

/* exFAT by way of FUSE. */
static void by_neither(void **state)
{
    static const int links[] = {EPERM, EOPNOTSUPP, ENOSYS};

    (void)state;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        refuses_links = links[i];
        refuses_flags = EINVAL;
        names_and_never_replaces();
        unlink(path);
    }
}

static void tells_another_error(void **state)
{
    struct st_error err = {0};

    (void)state;
    refuses_flags = EIO;
    assert_int_equal(write_file("first", &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "Input/output error"));
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_rename, begin, end),
        cmocka_unit_test_setup_teardown(by_link, begin, end),
        cmocka_unit_test_setup_teardown(by_neither, begin, end),
        cmocka_unit_test_setup_teardown(tells_another_error, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
