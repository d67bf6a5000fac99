/* What a record says of a thread within a stall that is no single wait: its state and stacks at the moment it
 * was noticed, and of its waits the one that the stall was about. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIGGER "func:st_test_stage>20ms"
#define SLEEPS  1 /* TASK_INTERRUPTIBLE */
#define STOPPED 4 /* __TASK_STOPPED */

static int first[2], second[2];

__attribute__((noinline)) void st_test_stage(void (*what)(void))
{
    what();
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void wait_twice(void)
{
    struct pollfd more = {.fd = second[0], .events = POLLIN};
    char byte;

    if (read(first[0], &byte, 1) != 1 || poll(&more, 1, -1) != 1)
        _exit(1);
}

static void read_then_poll(struct workload *w)
{
    (void)w;
    st_test_stage(wait_twice);
}

/* The stall that was noticed while it read is about the read, whatever it waits for behind it. */
static void test_the_longest_wait_is_kept(void **state)
{
    bool longer = false;

    (void)state;
    NEEDS_BPF();
    for (int attempt = 0; attempt < 5 && !longer; attempt++) {
        const struct st_stall_record *r;
        struct workload work;
        uint64_t begin, fed;
        struct watch w;

        assert_int_equal(pipe(first) | pipe(second), 0);
        r = spans_hang(&work, read_then_poll, &w, TRIGGER);
        assert_int_equal(r->state & 0xff, SLEEPS);
        assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_int_equal(r->waker_ctx, 0);
        begin = r->start_ktime;
        fed = workload_now();
        assert_int_equal(write(first[1], "x", 1), 1);
        while (!workload_sleeps(work.pid))
            sched_yield();
        assert_int_equal(write(second[1], "x", 1), 1);
        longer = fed - begin > 2 * (workload_now() - fed);
        spans_wait_completion(&w, work.pid);
        r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
        assert_int_equal(r->state & 0xff, SLEEPS);
        assert_int_equal(r->waker_tid, getpid());
        if (longer) { /* else the machine made the second wait the longer one */
            assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
            assert_true(r->wake_ktime - begin < 2 * (fed - begin));
        }
        watch_stop(&w);
        workload_wait(&work);
        for (int i = 0; i < 2; i++) {
            close(first[i]);
            close(second[i]);
        }
    }
    if (!longer)
        skip();
}

static void spin(void)
{
    char byte;

    while (read(first[0], &byte, 1) != 1) /* does not block */
        for (int i = 0; i < 10000; i++)
            __asm__ volatile("");
}

static void compute(struct workload *w)
{
    (void)w;
    workload_be_ordinary();
    st_test_stage(spin);
}

static void test_who_computes_has_no_state(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe2(first, O_NONBLOCK), 0);
    r = spans_hang(&work, compute, &w, TRIGGER);
    assert_int_equal(r->state, 0);
    assert_false(told_has_frame(r->kstack, r->kstack_n, "schedule_timeout"));
    assert_int_equal(write(first[1], "x", 1), 1);
    spans_wait_completion(&w, work.pid);
    r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_int_equal(r->state, 0);
    assert_int_equal(r->waker_ctx, 0);
    watch_stop(&w);
    workload_wait(&work);
    close(first[0]);
    close(first[1]);
}

static void be_stopped(void)
{
    raise(SIGSTOP);
}

static void stop(struct workload *w)
{
    (void)w;
    st_test_stage(be_stopped);
}

static void test_who_is_stopped_is_told_as_stopped(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, stop, &w, TRIGGER);
    assert_int_equal(r->state & 0xff, STOPPED);
    assert_true(told_has_frame(r->kstack, r->kstack_n, "do_signal_stop"));
    assert_string_equal(spans_attribute(r, "stop_signal"), "19");
    assert_int_equal(strncmp(spans_attribute(r, "stopped_by"), "thread ", 7), 0);
    assert_int_equal(atoi(spans_attribute(r, "stopped_by") + 7), work.pid);
    assert_int_equal(kill(work.pid, SIGCONT), 0);
    spans_wait_completion(&w, work.pid);
    r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_int_equal(r->state & 0xff, STOPPED);
    assert_int_equal(r->waker_tid, getpid());
    assert_string_equal(spans_attribute(r, "stop_signal"), "19");
    watch_stop(&w);
    workload_wait(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_wait_is_kept),
        cmocka_unit_test(test_who_computes_has_no_state),
        cmocka_unit_test(test_who_is_stopped_is_told_as_stopped),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
