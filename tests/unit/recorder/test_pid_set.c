/* Which processes' records are the target's. */
#include "recorder/perf/record.h"
#include "recorder/sideband/pid_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int born(rec_pid_set *set, uint32_t parent, uint32_t pid, uint32_t tid)
{
    const struct rec_task_record r = {
        .header = {.type = PERF_RECORD_FORK, .size = sizeof(r)}, .pid = pid, .ppid = parent, .tid = tid};

    return rec_pid_set_takes(set, &r.header);
}

static int of(rec_pid_set *set, uint32_t type, uint32_t pid)
{
    struct {
        struct rec_comm_record r;

        char name[8];
    } record = {.r = {.header = {.type = type, .size = sizeof(record)}, .pid = pid, .tid = pid}};

    return rec_pid_set_takes(set, &record.r.header);
}

static void those_in_the_set_are_taken(void **state)
{
    rec_pid_set set = {0};

    (void)state;
    for (pid_t pid = 50; pid > 0; pid -= 10)
        assert_int_equal(rec_pid_set_add(&set, pid), 0);
    assert_int_equal(rec_pid_set_add(&set, 30), 0);
    assert_int_equal(set.n, 5);
    for (pid_t pid = 0; pid <= 60; pid++) {
        bool is = pid && pid % 10 == 0 && pid <= 50;

        assert_int_equal(rec_pid_set_has(&set, pid), is);
        assert_int_equal(of(&set, PERF_RECORD_COMM, (uint32_t)pid), is);
        assert_int_equal(of(&set, PERF_RECORD_MMAP, (uint32_t)pid), is);
        assert_int_equal(of(&set, PERF_RECORD_MMAP2, (uint32_t)pid), is);
        assert_int_equal(of(&set, PERF_RECORD_EXIT, (uint32_t)pid), is);
        assert_int_equal(of(&set, PERF_RECORD_LOST, (uint32_t)pid), true);
    }
    st_vec_free(&set);
}

static void what_they_fork_is_theirs(void **state)
{
    rec_pid_set set = {0};

    (void)state;
    assert_int_equal(rec_pid_set_add(&set, 7), 0);
    assert_int_equal(born(&set, 7, 7, 8), true); /* a thread */
    assert_int_equal(of(&set, PERF_RECORD_COMM, 8), false);
    assert_int_equal(born(&set, 7, 9, 9), true);
    assert_int_equal(born(&set, 9, 10, 10), true);
    assert_int_equal(of(&set, PERF_RECORD_MMAP2, 10), true);
    assert_int_equal(born(&set, 2, 11, 11), false);
    assert_int_equal(born(&set, 2, 2, 12), false);
    assert_int_equal(of(&set, PERF_RECORD_MMAP2, 11), false);
    st_vec_free(&set);
}

/* Numbers begin anew: a stranger may get that of a process that has ended. */
static void a_number_that_a_stranger_gets_is_not_theirs(void **state)
{
    rec_pid_set set = {0};

    (void)state;
    assert_int_equal(rec_pid_set_add(&set, 7), 0);
    assert_int_equal(born(&set, 7, 9, 9), true);
    assert_int_equal(of(&set, PERF_RECORD_EXIT, 9), true);
    assert_int_equal(born(&set, 2, 9, 9), false);
    assert_int_equal(of(&set, PERF_RECORD_MMAP2, 9), false);
    assert_int_equal(set.n, 1);
    st_vec_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_in_the_set_are_taken),
        cmocka_unit_test(what_they_fork_is_theirs),
        cmocka_unit_test(a_number_that_a_stranger_gets_is_not_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
