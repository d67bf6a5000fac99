/* The loop's thread before all others: who inherits it, and what happens when it does not sleep. */
#include "recorder/arm/urgent.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int policy(void)
{
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static int begin(void **state)
{
    (void)state;
    rec_urgent_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    rec_urgent_end();
    return 0;
}

/* Whoever may not has an ordinary thread, and all works. */
static int may(void)
{
    return policy() == SCHED_FIFO;
}

static void begins_and_ends(void **state)
{
    struct rlimit limit;

    (void)state;
    if (!may())
        skip(); /* needs CAP_SYS_NICE */
    rec_urgent_begin();
    assert_int_equal(policy(), SCHED_FIFO);
    rec_urgent_end();
    assert_int_equal(policy(), SCHED_OTHER);
    assert_int_equal(getrlimit(RLIMIT_RTTIME, &limit), 0);
    assert_true(limit.rlim_cur != REC_URGENT_MS * 1000);
    rec_urgent_end();
}

static void *look(void *at)
{
    *(int *)at = policy();
    return NULL;
}

static void nobody_inherits_it(void **state)
{
    pthread_t thread;
    int other = -1, status;
    pid_t pid;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(other, SCHED_OTHER);
    pid = fork();
    if (!pid) {
        struct rlimit limit;

        rec_urgent_restore();
        getrlimit(RLIMIT_RTTIME, &limit);
        _exit(policy() != SCHED_OTHER || limit.rlim_cur == REC_URGENT_MS * 1000);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static uint64_t cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void who_does_not_sleep_is_ordinary(void **state)
{
    (void)state;
    if (!may())
        skip(); /* needs CAP_SYS_NICE */
    for (uint64_t begun = cpu_ms(); policy() == SCHED_FIFO;)
        assert_true(cpu_ms() - begun < 100 * REC_URGENT_MS);
    assert_int_equal(policy(), SCHED_OTHER);
    rec_urgent_end();
    rec_urgent_begin();
    assert_int_equal(policy(), SCHED_FIFO);
}

/* RLIMIT_CPU ends a child as it would without. */
static void a_child_has_its_own_limits(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (!pid) {
        struct rlimit limit = {.rlim_cur = 1, .rlim_max = 60};

        setrlimit(RLIMIT_CPU, &limit);
        while (policy() == SCHED_OTHER)
            ;
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(begins_and_ends, begin, end),
        cmocka_unit_test_setup_teardown(nobody_inherits_it, begin, end),
        cmocka_unit_test_setup_teardown(who_does_not_sleep_is_ordinary, begin, end),
        cmocka_unit_test_setup_teardown(a_child_has_its_own_limits, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
