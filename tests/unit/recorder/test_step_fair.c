/* Threads that never wait go on side by side while they are stepped. How evenly is the scheduler's matter
 * too, so this is judged where nothing else runs. */
#include "tests/unit/recorder/step_harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

static uint64_t most_spun(void)
{
    uint64_t most = 0;

    for (int i = 0; i < 4; i++)
        most = spun[i] > most ? spun[i] : most;
    return most;
}

/* None starves. They are compared while they stand still. */
static void test_is_fair(void **state)
{
    const struct rec_ring *rings;
    struct harness x;
    size_t n;
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
    harness_freeze(&x, &rings, &n);
    assert_true(most_spun() < 6 * least_spun());
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_fair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
