/* Threads and processes that come and go while they are stepped. */
#include "tests/unit/recorder/step_harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ------------------------------------------------------------------ */
/* Fairness                                                            */

static _Atomic uint64_t *spun;

static void *spin(void *arg)
{
    for (;;)
        spun[(long)arg]++;
    return arg;
}

static int spinning_threads(void)
{
    pthread_t t;

    for (long i = 0; i < 4; i++)
        if (pthread_create(&t, NULL, spin, (void *)i))
            return 1;
    return pause();
}

static uint64_t least_spun(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 4; i++)
        least = spun[i] < least ? spun[i] : least;
    return least;
}

/* Threads that never wait go on side by side: none starves. */
static void test_is_fair(void **state)
{
    struct harness x;
    uint64_t most = 0;
    pid_t pid;

    (void)state;
    spun = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(spun != MAP_FAILED);
    harness_fork(&x, NULL, spinning_threads);
    pid = x.child;
    harness_let_go(&x);
    assert_true(UNTIL(least_spun() > 0));
    harness_arm_pid(&x, &pid);
    for (int i = 0; i < 4; i++)
        spun[i] = 0;
    assert_true(UNTIL(least_spun() > 300));
    for (int i = 0; i < 4; i++)
        most = spun[i] > most ? spun[i] : most;
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
    assert_true(most < 300 * 3);
}

/* ------------------------------------------------------------------ */
/* Coming and going                                                    */

enum {
#ifdef __SANITIZE_ADDRESS__ /* whose own 75,000 instructions for a thread take long to step */
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
        cmocka_unit_test(test_is_fair),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_many_children),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
