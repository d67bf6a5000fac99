/* What is said of a system call that is never made: which others were. */
#include "base/syscalls.h"
#include "triggers/unseen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static struct call_count calls[OFFCPU_SYSCALLS];

static void called(const char *name, unsigned long count, unsigned long worst)
{
    int number = st_syscall_number(name, false);

    assert_true(number >= 0);
    calls[number] = (struct call_count){count, worst};
}

static void expect(const char *name, const char *said)
{
    char text[512];

    trg_unseen_call(name, calls, text, sizeof(text));
    assert_string_equal(text, said);
}

static void test_nothing_was_called(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    expect("fdatasync", "not called since armed; nor was any other system call");
}

/* However often others were. */
static void test_the_same_work_comes_first(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    called("fsync", 41, 300000000);
    called("epoll_wait", 123456, 1000);
    called("pread64", 1, 0);
    called("recvfrom", 2, 2000);
    called("read", 1000, 3000);
    called("readv", 3, 1000);
    expect("fdatasync", "not called since armed; fsync was, 41 times, worst 300 ms");
    expect("msync", "not called since armed; fsync was, 41 times, worst 300 ms");
    expect("preadv2",
           "not called since armed; read was, 1,000 times, worst 3.00 us; readv, 3 times, worst 1.00 us; "
           "recvfrom, 2 times, worst 2.00 us");
    called("readv", 0, 0);
    expect("preadv2",
           "not called since armed; read was, 1,000 times, worst 3.00 us; recvfrom, 2 times, worst 2.00 us; "
           "pread64, 1 time");
    expect("poll", "not called since armed; epoll_wait was, 123,456 times, worst 1.00 us");
}

static void test_else_the_most_frequent(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    called("read", 5, 1000);
    called("write", 7, 1000);
    called("lseek", 6, 1000);
    called("fsync", 4, 1000);
    expect("flock",
           "not called since armed; write was, 7 times, worst 1.00 us; lseek, 6 times, worst 1.00 us; "
           "read, 5 times, worst 1.00 us");
    expect("getpid",
           "not called since armed; write was, 7 times, worst 1.00 us; lseek, 6 times, worst 1.00 us; "
           "read, 5 times, worst 1.00 us");
}

/* A text that has little room is cut, and ends. */
static void test_little_room(void **state)
{
    char text[600];

    (void)state;
    memset(calls, 0, sizeof(calls));
    for (int i = 0; i < OFFCPU_SYSCALLS; i++)
        calls[i] = (struct call_count){~0ull >> 1, ~0ull >> 1};
    for (size_t size = 1; size <= sizeof(text); size++) {
        memset(text, 'x', sizeof(text));
        trg_unseen_call("fsync", calls, text, size);
        assert_true(strnlen(text, sizeof(text)) < size);
        for (size_t i = size; i < sizeof(text); i++)
            assert_int_equal(text[i], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_was_called),
        cmocka_unit_test(test_the_same_work_comes_first),
        cmocka_unit_test(test_else_the_most_frequent),
        cmocka_unit_test(test_little_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
