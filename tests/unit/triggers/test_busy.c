/* busy and quiet against an event loop that notes how long it was away, and a heartbeat that notes its
 * pauses. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int lengths[ABOVE + BELOW] = {30, 2,  25, 35, 1, 3,  45, 30, 25, 5,
                                           30, 35, 2,  30, 4, 25, 30, 1,  28, 33};

static int epoll, ends[2];

static void wait_for_work(int ms)
{
    struct epoll_event event;

    epoll_wait(epoll, &event, 1, ms);
}

static __attribute__((noinline)) void be_away(int i)
{
    uint64_t start = workload_now();
    char byte;

    if (i % 2) /* in a system call: a receive time-out would do as well */
        while (workload_now() - start < (uint64_t)lengths[i] * MS)
            if (syscall(SYS_getpid) < 0)
                _exit(1);
    while (workload_now() - start < (uint64_t)lengths[i] * MS)
        ;
    if (read(ends[0], &byte, 1) > 0)
        _exit(1);
}

/* Waits for work of 30 ms each between them are no stalls. */
static void loop(struct workload *w)
{
    epoll = epoll_create1(0);
    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start;

        wait_for_work(i % 4 ? 1 : 30);
        start = workload_now();
        be_away(i);
        workload_end(w, start);
    }
    wait_for_work(1);
    w->shared->note[0] = 1;
}

static void test_loop_that_is_away(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe2(ends, 04000 /* O_NONBLOCK */), 0);
    spans_run(&work, loop, &w, "busy>20ms", ABOVE + BELOW, ABOVE);
    assert_true(spans_assert(&work, &w, ST_STALL_BUSY, 20 * MS, 2 * MS) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_true(r->syscall == SYS_getpid || r->syscall == SYS_read);
        assert_true(r->ustack_n > 1);
    }
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, " was away from its event loop for "));
    watch_stop(&w);
    workload_wait(&work);
}

/* Leaves the loop for a slow call, and one that does not come back. */
static void never_back(struct workload *w)
{
    char byte;

    epoll = epoll_create1(0);
    wait_for_work(1);
    w->shared->note[0] = 1;
    if (read(ends[0], &byte, 1) != 1)
        _exit(1);
    wait_for_work(1);
}

static void test_loop_that_does_not_come_back(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    r = spans_hang(&work, never_back, &w, "busy>20ms");
    assert_int_equal(r->syscall, SYS_read);
    assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
    assert_int_equal(write(ends[1], "x", 1), 1);
    spans_wait_completion(&w, work.pid);
    r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_int_equal(r->syscall, SYS_read);
    assert_true(strtoull(spans_attribute(r, "syscall_ns"), NULL, 10) > 20 * MS);
    assert_int_equal(r->waker_tid, getpid());
    watch_stop(&w);
    workload_wait(&work);
}

/* Its thread ends while it is away. */
static void ends_away(struct workload *w)
{
    char byte;

    epoll = epoll_create1(0);
    wait_for_work(1);
    w->shared->note[0] = 1;
    if (read(ends[0], &byte, 1) != 1)
        _exit(1);
}

static void test_thread_that_ends(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    r = spans_hang(&work, ends_away, &w, "busy>20ms");
    assert_int_equal(write(ends[1], "x", 1), 1);
    workload_wait(&work);
    spans_wait_completion(&w, work.pid);
    r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_int_equal(r->syscall, SYS_read);
    assert_true(r->measured_ns >= 60 * MS && r->end_ktime == r->start_ktime + r->measured_ns);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_FIRED, 0), 1);
    watch_stop(&w);
}

/* A loop by another call: idle= names it. */
static void read_loop(struct workload *w)
{
    char byte;

    for (int i = 0; i < 3; i++) {
        uint64_t start;

        if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1)
            _exit(1);
        start = workload_now();
        while (workload_now() - start < 30 * MS)
            ;
        workload_end(w, start);
    }
    if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1)
        _exit(1);
}

static void test_another_wait_for_work(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    spans_run(&work, read_loop, &w, "busy>20ms", 3, 0);
    assert_int_equal(told_fired(&w, 0, -1), 1); /* it left a poll, and never came back to one */
    watch_stop(&w);
    workload_wait(&work);
    spans_run(&work, read_loop, &w, "busy>20ms,idle=read", 3, 3);
    assert_int_equal(told_fired(&w, 0, -1), 3);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- quiet ---- */

__attribute__((noinline)) void st_test_heartbeat(int which)
{
    __asm__ volatile("" ::"r"(which) : "memory");
}

/* Beats every ms, but for the pauses. */
static void beat(struct workload *w)
{
    st_test_heartbeat(0);
    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start = workload_now();

        st_test_heartbeat(i);
        workload_sleep_ms(lengths[i]);
        st_test_heartbeat(-1);
        workload_end(w, start);
        for (int j = 0; j < 5; j++) {
            workload_sleep_ms(1);
            st_test_heartbeat(-1);
        }
    }
    w->shared->note[0] = 1;
    while (!w->shared->note[1]) {
        workload_sleep_ms(1);
        st_test_heartbeat(-1);
    }
}

/* Before the workload is let go and after its end there is silence too: an ongoing stall each. */
static size_t drop_before(struct watch *w, uint64_t ktime)
{
    size_t n = 0;

    for (size_t i = 0; i < w->records.n; i++)
        if (w->records.at[i].r.start_ktime >= ktime)
            w->records.at[n++] = w->records.at[i];
    w->records.n = n;
    return n;
}

static void test_heartbeat_that_pauses(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, beat);
    watch_start(&w, "quiet:st_test_heartbeat>20ms", &work.pid, 1, NULL, NULL);
    workload_go(&work);
    for (int i = 0; i < 1500 && !work.shared->note[0]; i++)
        watch_collect(&w, SIZE_MAX, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    drop_before(&w, work.go_ns);
    assert_int_equal(work.shared->stalls, ABOVE + BELOW);
    assert_true(spans_assert(&work, &w, ST_STALL_QUIET, 20 * MS, 2 * MS) >= ABOVE);
    work.shared->note[1] = 1;
    watch_stop(&w);
    workload_wait(&work);
}

static void beat_and_stop(struct workload *w)
{
    for (int i = 0; i < 50; i++) {
        st_test_heartbeat(i);
        workload_sleep_ms(1);
    }
    w->shared->note[0] = 1;
    poll(NULL, 0, 500);
    st_test_heartbeat(1);
}

static void test_heartbeat_that_stops(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, beat_and_stop, &w, "quiet:st_test_heartbeat>100ms");
    assert_int_equal(work.shared->note[0], 1);
    assert_true(r->measured_ns >= 140 * MS);
    told_describe(&w, r, text, sizeof(text));
    assert_non_null(strstr(text, "did the event last: none for "));
    assert_true(told_has_frame(r->kstack, r->kstack_n, "schedule_hrtimeout_range") || r->kstack_n > 3);
    spans_wait_completion(&w, work.pid);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_FIRED, 0), 1);
    watch_stop(&w);
    workload_wait(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_that_is_away),     cmocka_unit_test(test_loop_that_does_not_come_back),
        cmocka_unit_test(test_thread_that_ends),      cmocka_unit_test(test_another_wait_for_work),
        cmocka_unit_test(test_heartbeat_that_pauses), cmocka_unit_test(test_heartbeat_that_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
