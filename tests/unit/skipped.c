/* Linked into every unit test: a program all of whose tests were skipped ends with 77, which ctest tells as
 * skipped, and so does one that could not decide about one of them, if none failed. cmocka alone ends with 0.
 */
#include "inconclusive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define ALL_SKIPPED 77

/* What is behind cmocka's macros, and what the linker puts in its place (--wrap). */
int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
void __real__skip(const char *file, int line);
void __wrap__skip(const char *file, int line);

static size_t skipped, undecided;

void __wrap__skip(const char *file, int line)
{
    skipped++;
    __real__skip(file, line);
}

void test_inconclusive(const char *format, ...)
{
    char why[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, sizeof(why), format, ap);
    va_end(ap);
    print_message("inconclusive: %s\n", why);
    undecided++;
    skip();
}

int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    int failed;

    skipped = undecided = 0;
    failed = __real__cmocka_run_group_tests(group, tests, n, setup, teardown);
    return !failed && n && (undecided || skipped == n) ? ALL_SKIPPED : failed;
}
