/* System calls by number and by name. */
#include "base/syscalls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

static char buf[64];

static const char *name(int number, bool compat)
{
    return st_syscall_name(number, compat, buf, sizeof(buf));
}

static void names_of_both(void **state)
{
    (void)state;
    assert_string_equal(name(SYS_recvfrom, false), "recvfrom");
    assert_string_equal(name(SYS_read, false), "read");
    assert_string_equal(name(3, true), "read");
    assert_string_equal(name(162, true), "nanosleep");
    assert_string_equal(name(335, false), "uretprobe");
    assert_string_equal(name(500, true), "32-bit system call 500");
    assert_string_equal(name(470, false), "listns");
    assert_string_equal(name(470, true), "listns");
    assert_string_equal(name(511, false), "system call 511");
    assert_string_equal(name(-10036, false), "system call -10036");
}

static void numbers_of_both(void **state)
{
    (void)state;
    assert_int_equal(st_syscall_number("recvfrom", false), SYS_recvfrom);
    assert_int_equal(st_syscall_number("waitpid", true), 7);
    assert_int_equal(st_syscall_number("waitpid", false), -1);
    assert_int_equal(st_syscall_number("accept4", true), 364);
    assert_int_equal(st_syscall_number("futex_wait", false), 455);
    assert_int_equal(st_syscall_number("nonsense", false), -1);
}

static void all_names(void **state)
{
    const char *names[ST_SYSCALLS];
    size_t n = st_syscall_names(names, ST_SYSCALLS);

    (void)state;
    assert_true(n > 350 && n < ST_SYSCALLS);
    for (size_t i = 0; i < n; i++)
        assert_true(st_syscall_number(names[i], false) >= 0);
    assert_int_equal(st_syscall_names(names, 3), 3);
    assert_string_equal(names[2], "open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_both),
        cmocka_unit_test(numbers_of_both),
        cmocka_unit_test(all_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
