/* How long a system call was asked to wait: by its arguments, as the BPF programs find it; and of a process
 * that sleeps, by its memory. */
#include "triggers/bpf/timeout.h"
#include "triggers/timeout_asked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timeout_place place(int call, st_u64 a, st_u64 b, st_u64 c, st_u64 d, st_u64 e)
{
    const st_u64 args[6] = {a, b, c, d, e, 0};

    return timeout_of(call, args);
}

#define assert_place(found, form_is, value_is)                                                               \
    do {                                                                                                     \
        struct timeout_place _p = (found);                                                                   \
                                                                                                             \
        assert_int_equal(_p.form, form_is);                                                                  \
        if (_p.form != TIMEOUT_NONE)                                                                         \
            assert_int_equal(_p.value, value_is);                                                            \
    } while (0)

static void the_numbers_are_the_kernels(void **state)
{
    (void)state;
    assert_int_equal(TIMEOUT_NR_POLL, SYS_poll);
    assert_int_equal(TIMEOUT_NR_SELECT, SYS_select);
    assert_int_equal(TIMEOUT_NR_NANOSLEEP, SYS_nanosleep);
    assert_int_equal(TIMEOUT_NR_RT_SIGTIMEDWAIT, SYS_rt_sigtimedwait);
    assert_int_equal(TIMEOUT_NR_FUTEX, SYS_futex);
    assert_int_equal(TIMEOUT_NR_SEMTIMEDOP, SYS_semtimedop);
    assert_int_equal(TIMEOUT_NR_CLOCK_NANOSLEEP, SYS_clock_nanosleep);
    assert_int_equal(TIMEOUT_NR_EPOLL_WAIT, SYS_epoll_wait);
    assert_int_equal(TIMEOUT_NR_PSELECT6, SYS_pselect6);
    assert_int_equal(TIMEOUT_NR_PPOLL, SYS_ppoll);
    assert_int_equal(TIMEOUT_NR_EPOLL_PWAIT, SYS_epoll_pwait);
    assert_int_equal(TIMEOUT_NR_EPOLL_PWAIT2, SYS_epoll_pwait2);
}

static void each_call_has_its_place(void **state)
{
    (void)state;
    assert_place(place(SYS_poll, 1, 1, 300, 4, 5), TIMEOUT_MILLISECONDS, 300);
    assert_place(place(SYS_poll, 1, 1, 0xffffffff, 4, 5), TIMEOUT_NONE, 0);
    assert_place(place(SYS_epoll_wait, 1, 2, 3, 300, 5), TIMEOUT_MILLISECONDS, 300);
    assert_place(place(SYS_epoll_pwait, 1, 2, 3, (st_u64)-1, 5), TIMEOUT_NONE, 0);
    assert_place(place(SYS_epoll_pwait2, 1, 2, 3, 44, 5), TIMEOUT_TIMESPEC, 44);
    assert_place(place(SYS_select, 1, 2, 3, 4, 55), TIMEOUT_TIMEVAL, 55);
    assert_place(place(SYS_pselect6, 1, 2, 3, 4, 55), TIMEOUT_TIMESPEC, 55);
    assert_place(place(SYS_pselect6, 1, 2, 3, 4, 0), TIMEOUT_NONE, 0);
    assert_place(place(SYS_ppoll, 1, 2, 33, 4, 5), TIMEOUT_TIMESPEC, 33);
    assert_place(place(SYS_nanosleep, 11, 2, 3, 4, 5), TIMEOUT_TIMESPEC, 11);
    assert_place(place(SYS_clock_nanosleep, CLOCK_REALTIME, 0, 33, 4, 5), TIMEOUT_TIMESPEC, 33);
    assert_place(place(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, 33, 4, 5), TIMEOUT_UNTIL, 33);
    assert_place(place(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, 33, 4, 5), TIMEOUT_UNTIL_REAL, 33);
    assert_place(place(SYS_clock_nanosleep, CLOCK_BOOTTIME, TIMER_ABSTIME, 33, 4, 5), TIMEOUT_NONE, 0);
    assert_place(place(SYS_futex, 1, FUTEX_WAIT_PRIVATE, 3, 44, 5), TIMEOUT_TIMESPEC, 44);
    assert_place(place(SYS_futex, 1, FUTEX_WAIT_BITSET_PRIVATE, 3, 44, 5), TIMEOUT_UNTIL, 44);
    assert_place(place(SYS_futex, 1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 3, 44, 5), TIMEOUT_UNTIL_REAL,
                 44);
    assert_place(place(SYS_futex, 1, FUTEX_LOCK_PI, 3, 44, 5), TIMEOUT_UNTIL_REAL, 44);
    assert_place(place(SYS_futex, 1, FUTEX_LOCK_PI2, 3, 44, 5), TIMEOUT_UNTIL, 44);
    assert_place(place(SYS_futex, 1, FUTEX_REQUEUE, 3, 44, 5), TIMEOUT_NONE, 0); /* a number, no address */
    assert_place(place(SYS_read, 1, 2, 3, 4, 5), TIMEOUT_NONE, 0);
}

static void what_is_no_time_has_no_length(void **state)
{
    const st_u64 third[] = {0, 300000000}, micro[] = {0, 300000}, much[] = {1, 1000000000},
                 neg[] = {-1ull, 5};
    const st_u64 at[] = {100, 500000000}, start = 100200000000;

    (void)state;
    assert_int_equal(timeout_ns(TIMEOUT_TIMESPEC, third, start, 0), 300000000);
    assert_int_equal(timeout_ns(TIMEOUT_TIMEVAL, micro, start, 0), 300000000);
    assert_int_equal(timeout_ns(TIMEOUT_TIMESPEC, much, start, 0), 0);
    assert_int_equal(timeout_ns(TIMEOUT_TIMEVAL, third, start, 0), 0);
    assert_int_equal(timeout_ns(TIMEOUT_TIMESPEC, neg, start, 0), 0);
    assert_int_equal(timeout_ns(TIMEOUT_UNTIL, at, start, 7), 300000000);
    assert_int_equal(timeout_ns(TIMEOUT_UNTIL_REAL, at, start, 100000000), 200000000);
    assert_int_equal(timeout_ns(TIMEOUT_UNTIL, at, start + 400000000, 0), 0); /* over before it began */
}

static void a_wait_fits_its_time_out_or_not(void **state)
{
    (void)state;
    assert_true(ST_TIMEOUT_FITS(300000000, 300060000));
    assert_true(ST_TIMEOUT_FITS(300000000, 299900000)); /* the clocks */
    assert_false(ST_TIMEOUT_FITS(300000000, 262000000));
    assert_false(ST_TIMEOUT_FITS(300000000, 330000000));
}

static void the_memory_is_read(void **state)
{
    struct timespec t = {0, 300000000}, now;
    const uint64_t sleep[6] = {CLOCK_REALTIME, 0, (uint64_t)&t}, nowhere[6] = {CLOCK_REALTIME, 0, 8},
                   until[6] = {CLOCK_MONOTONIC, TIMER_ABSTIME, (uint64_t)&now};

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_int_equal(trg_timeout_asked(getpid(), SYS_clock_nanosleep, sleep, 0), 300000000);
    assert_int_equal(trg_timeout_asked(getpid(), SYS_clock_nanosleep, nowhere, 0), 0);
    assert_int_equal(trg_timeout_asked(getpid(), SYS_clock_nanosleep, until, 0), 0);
    assert_int_equal(trg_timeout_asked(getpid(), SYS_clock_nanosleep, until,
                                       (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - 5),
                     5);
    assert_int_equal(trg_timeout_asked(getpid(), SYS_poll, (const uint64_t[6]){0, 0, 300}, 0), 300000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_the_kernels),
        cmocka_unit_test(each_call_has_its_place),
        cmocka_unit_test(what_is_no_time_has_no_length),
        cmocka_unit_test(a_wait_fits_its_time_out_or_not),
        cmocka_unit_test(the_memory_is_read),
    };

    return cmocka_run_group_tests_name("timeout", tests, NULL, NULL);
}
