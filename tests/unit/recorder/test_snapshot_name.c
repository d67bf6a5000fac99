/* The numbers of snapshots. */
#include "recorder/snapshot_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void touch(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void numbers_go_on(void **state)
{
    static const char *const names[] = {"p.3.data",   "p.12.db",    "p.13.txt",   "p.14.data.old", "p..data",
                                        "pp.99.data", "p.x99.data", ".p.77.data", "p.-5.data"};
    char folder[] = "/tmp/stalltrap-unit.XXXXXX", prefix[128], path[256];
    unsigned n = 0;
    int at;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof(prefix), "%s/p", folder);
    at = rec_snapshot_folder(prefix, NULL);
    assert_true(at >= 0);
    assert_int_equal(rec_snapshot_next(at, prefix, &n, NULL), 0);
    assert_int_equal(n, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        touch(folder, names[i]);
    assert_int_equal(rec_snapshot_next(at, prefix, &n, NULL), 0);
    assert_int_equal(n, 13);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    close(at);
    assert_int_equal(rec_snapshot_folder("/no/such/folder/p", NULL), ST_EFAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_go_on)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
