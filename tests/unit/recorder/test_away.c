/* In what state and system call threads wait, read from /proc: of real ones. */
#include "recorder/sideband/away.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t AN_HOUR = 3600ull * 1000000000;

static int tids[2][2]; /* pipes: a thread says its number, then waits in the other */

static void *reads(void *unused)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    char c;

    if (write(tids[0][1], &tid, sizeof(tid)) == sizeof(tid))
        while (read(tids[1][0], &c, 1) < 0)
            ;
    return unused;
}

static void *spins(void *unused)
{
    for (volatile int go = 1; go;)
        ;
    return unused;
}

/* A process: its first thread sleeps, one reads, and one spins. */
static pid_t start(pid_t *reader)
{
    pthread_t one, two;
    pid_t pid;

    if (pipe(tids[0]) || pipe(tids[1]))
        abort();
    pid = fork();
    if (!pid) {
        const struct timespec long_time = {.tv_sec = 36000};

        prctl(PR_SET_NAME, ") R 1 2 3 (", 0, 0, 0); /* a name that looks like what stands behind it */
        if (pthread_create(&one, NULL, reads, NULL) || pthread_create(&two, NULL, spins, NULL))
            _exit(1);
        for (;;)
            clock_nanosleep(CLOCK_REALTIME, 0, &long_time, NULL);
    }
    assert_true(pid > 0);
    assert_int_equal(read(tids[0][0], reader, sizeof(*reader)), sizeof(*reader));
    return pid;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 4; i++)
        close(tids[i / 2][i % 2]);
}

static const struct rec_away *find(const rec_away_list *list, pid_t tid)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].tid == tid)
            return &list->at[i];
    return NULL;
}

/* Reads until the thread is in that state. */
static struct rec_away until(const struct rec_away_wanted *wanted, pid_t tid, char state, rec_away_list *list)
{
    for (;;) {
        const struct rec_away *a;

        list->n = 0;
        assert_int_equal(rec_away_read(wanted, list, NULL), 0);
        a = find(list, tid);
        if (a && a->state == state)
            return *a;
        usleep(1000);
    }
}

static void each_is_told_with_its_system_call(void **state)
{
    rec_away_list list = {0};
    struct rec_away a;
    pid_t reader, pid = start(&reader);
    struct rec_away_wanted wanted = {.pids = &pid, .npids = 1, .most_ns = AN_HOUR};

    (void)state;
    do
        a = until(&wanted, reader, 'S', &list);
    while (a.syscall != SYS_read); /* a moment ago it still wrote */
    assert_int_equal(a.pid, pid);
    do
        a = until(&wanted, pid, 'S', &list);
    while (a.syscall != SYS_clock_nanosleep);
    assert_in_range(list.n, 1, 2); /* the third never waits */
    kill(pid, SIGSTOP);
    a = until(&wanted, reader, 'T', &list);
    assert_int_equal(a.syscall, -1);
    finish(pid);
    st_vec_free(&list);
}

/* The one that the snapshot is about comes first, whatever time there is. */
static void time_bounds_the_others(void **state)
{
    rec_away_list list = {0};
    pid_t reader, pid = start(&reader);
    struct rec_away_wanted all = {.pids = &pid, .npids = 1, .most_ns = AN_HOUR},
                           one = {.pid = pid, .tid = reader, .pids = &pid, .npids = 1};

    (void)state;
    until(&all, reader, 'S', &list);
    list.n = 0;
    assert_int_equal(rec_away_read(&one, &list, NULL), 2);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.at[0].tid, reader);
    finish(pid);
    st_vec_free(&list);
}

static void who_has_ended_is_no_error(void **state)
{
    rec_away_list list = {0};
    pid_t reader, pid = start(&reader);
    struct rec_away_wanted wanted = {.pid = pid, .tid = reader, .pids = &pid, .npids = 1, .most_ns = AN_HOUR};

    (void)state;
    finish(pid);
    assert_int_equal(rec_away_read(&wanted, &list, NULL), 0);
    assert_int_equal(list.n, 0);
    st_vec_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_told_with_its_system_call),
        cmocka_unit_test(time_bounds_the_others),
        cmocka_unit_test(who_has_ended_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
