/* offcpu: waits for work are no stalls, and which are is the user's choice. */
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TIMES 10

/* ---- idle waits ---- */

static void sleep_often(struct workload *w)
{
    for (int i = 0; i < TIMES; i++) {
        uint64_t start = workload_now();

        workload_sleep_ms(40);
        workload_end(w, start);
    }
}

static void test_sleep_is_idle(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_often, &w, BLOCKS, TIMES, 0);
    assert_int_equal(work.shared->stalls, TIMES);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
}

static const struct st_stall_record *first_sleep(const struct watch *w)
{
    for (size_t i = 0; i < w->records.n; i++)
        if (w->records.at[i].r.syscall == SYS_clock_nanosleep && w->records.at[i].r.waker_ctx)
            return &w->records.at[i].r;
    fail_msg("no sleep was told");
    return NULL;
}

static void test_sleep_counts_when_asked(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    told_run(&work, sleep_often, &w, BLOCKS ",idle=yes", TIMES, TIMES);
    told_assert_each_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_true(r->flags & ST_STALL_IDLE);
        if (r->start_ktime < work.go_ns) /* a poll: it waited to be let go */
            continue;
        assert_int_equal(r->syscall, SYS_clock_nanosleep);
        if (!(r->flags & ST_STALL_ONGOING))
            assert_int_equal(r->waker_ctx, ST_WAKER_IRQ);
    }
    told_describe(&w, first_sleep(&w), text, sizeof(text));
    assert_non_null(strstr(text, "in clock_nanosleep, woken by its own time-out"));
    watch_stop(&w);
    workload_wait(&work);
}

static void wait_on_epoll(struct workload *w)
{
    uint64_t start = workload_now();
    struct epoll_event event;
    int fd = epoll_create1(0);

    if (fd < 0 || epoll_wait(fd, &event, 1, 1000))
        _exit(1);
    workload_end(w, start);
}

static void test_epoll_is_idle(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, wait_on_epoll, &w, BLOCKS, 1, 0);
    assert_int_equal(work.shared->stalls, 1);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
}

static uint32_t lock_word;

/* Condition variables wait by FUTEX_WAIT_BITSET, mutexes by FUTEX_WAIT. */
static void wait_on_futexes(struct workload *w)
{
    struct timespec soon = {0, 45000000}, later;
    uint64_t start;

    clock_gettime(CLOCK_MONOTONIC, &later);
    later.tv_nsec += 45000000;
    later.tv_sec += later.tv_nsec / 1000000000;
    later.tv_nsec %= 1000000000;
    syscall(SYS_futex, &lock_word, FUTEX_WAIT_BITSET, 0, &later, NULL, FUTEX_BITSET_MATCH_ANY);
    start = workload_now();
    syscall(SYS_futex, &lock_word, FUTEX_WAIT, 0, &soon, NULL, 0);
    workload_end(w, start);
}

static void test_condition_is_idle_and_mutex_is_not(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, wait_on_futexes, &w, BLOCKS, 1, 1);
    told_assert_each_once(&work, &w, 1);
    watch_stop(&w);
    workload_wait(&work);
}

static int pipe_ends[2];

static void read_pipe(struct workload *w)
{
    for (int i = 0; i < TIMES; i++)
        workload_read_fed(w, pipe_ends[0]);
}

static void test_own_idle_call(void **state)
{
    struct workload work;
    struct watch w;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&work, read_pipe);
    watch_start(&w, BLOCKS ",idle=read", &work.pid, 1, NULL, NULL);
    feeder = workload_feeder(&work, pipe_ends[1], 40, TIMES);
    workload_go(&work);
    told_collect(&w, &work, TIMES, 0);
    assert_int_equal(work.shared->stalls, TIMES);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep_is_idle), cmocka_unit_test(test_sleep_counts_when_asked),
        cmocka_unit_test(test_epoll_is_idle), cmocka_unit_test(test_condition_is_idle_and_mutex_is_not),
        cmocka_unit_test(test_own_idle_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
