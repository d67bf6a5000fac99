/* Threads and processes that come and go while they are stepped. */
#include "tests/unit/recorder/step_harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
#ifdef ST_SANITIZED /* whose own 75,000 instructions for a thread take long to step */
    GENERATIONS = 1,
    AT_ONCE = 3,
#else
    GENERATIONS = 6,
    AT_ONCE = 8,
#endif
};

static void *brief(void *arg)
{
    _Atomic int *sum = arg;

    ++*sum;
    return NULL;
}

/* Threads by the dozen. */
static int many_threads(void)
{
    static _Atomic int sum;
    pthread_t t[AT_ONCE];

    for (int i = 0; i < GENERATIONS; i++) {
        for (int j = 0; j < AT_ONCE; j++)
            if (pthread_create(&t[j], NULL, brief, &sum))
                return 1;
        for (int j = 0; j < AT_ONCE; j++)
            pthread_join(t[j], NULL);
    }
    return sum;
}

static int many_children(void)
{
    int sum = 0, status;

    for (int i = 0; i < AT_ONCE; i++)
        if (!fork())
            _exit(i);
    while (wait(&status) > 0)
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    return sum;
}

/* Every one of them is recorded from its first instruction to its last, and the program does what it does
 * alone. */
static void all_are_recorded(int (*program)(void), int want_status, size_t want_rings)
{
    const struct rec_ring *rings;
    struct harness x;
    size_t n;
    pid_t pid;

    harness_log_begin();
    harness_fork(&x, NULL, program);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    assert_int_equal(harness_until_end(&x, 200), 0);
    harness_freeze(&x, &rings, &n);
    assert_int_equal(n, want_rings);
    assert_true(harness_log->n < LOG_MAX);
    for (size_t i = 0; i < n; i++) {
        struct harness_walk w = harness_compare(&rings[i]);

        assert_true(w.compared > 5);
        assert_int_equal(w.errors, 0);
        assert_int_equal(w.differences, 0);
    }
    harness_resume(&x);
    harness_close(&x);
    harness_wait(&x);
    assert_int_equal(x.status, want_status << 8);
}

static void test_many_threads(void **state)
{
    (void)state;
    all_are_recorded(many_threads, GENERATIONS * AT_ONCE, GENERATIONS * AT_ONCE + 1);
}

static void test_many_children(void **state)
{
    (void)state;
    all_are_recorded(many_children, AT_ONCE * (AT_ONCE - 1) / 2, AT_ONCE + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_many_children),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
