/* How threads waited as the snapshot was made: a mark where the context switches do not say otherwise. */
#include "model_world.h"
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000 * 1000 };

/* Threads 10 to 15 of process 10; the last record is at 9 ms. */
static void begin(const char *meta, size_t size)
{
    recording_at(1 * MS, 10, 10, 0);
    for (uint32_t tid = 10; tid < 16; tid++)
        recording_comm(10, tid, "t", false);
    recording_meta(meta, size);
}

static void switched(uint64_t time, uint32_t tid, bool out, bool preempted)
{
    recording_at(time, 10, tid, 0);
    recording_switch(out, preempted);
}

static const char *marks(void)
{
    recording_at(9 * MS, 10, 10, 0);
    recording_comm(10, 10, "t", false);
    world_load(0);
    world_store();
    return world_query("SELECT t.tid, (m.time_ns + (SELECT value FROM meta WHERE key = 'origin_perf_ns')) / "
                       "1000000, m.detail FROM mark m JOIN thread t ON t.id = m.thread_id WHERE m.name = "
                       "'waiting' ORDER BY t.tid");
}

static void who_waits_is_told_in_words(void **state)
{
    static const char meta[] =
        "waiting.10=pid=10 time=8000000 state=S syscall=230\0"
        "waiting.11=pid=10 time=8000000 state=D syscall=-1\0"
        "waiting.12=pid=10 time=8000000 state=T syscall=-1\0"
        "waiting.13=pid=10 time=8000000 state=t syscall=-1\0"
        "waiting.14=pid=10 time=8000000 state=S syscall=99999\0"
        "waiting.15=pid=10 time=12000000 state=S syscall=0"; /* behind the last record */

    (void)state;
    begin(meta, sizeof(meta));
    switched(2 * MS, 10, false, false);
    switched(3 * MS, 10, true, false);
    switched(4 * MS, 15, false, false);
    switched(5 * MS, 15, true, false);
    assert_string_equal(marks(), "10|8|sleeping in clock_nanosleep\n"
                                 "11|8|disk sleep\n"
                                 "12|8|stopped\n"
                                 "13|8|tracing stop\n"
                                 "14|8|sleeping in system call 99999\n"
                                 "15|9|sleeping in read\n");
}

/* The thread ran, or could have, as far as the switches tell; or the line is none. */
static void what_the_switches_deny_is_not_told(void **state)
{
    static const char meta[] =
        "waiting.10=pid=10 time=8000000 state=S syscall=0\0"
        "waiting.11=pid=10 time=8000000 state=S syscall=0\0"
        "waiting.12=pid=10 time=8000000 state=R syscall=-1\0"
        "waiting.13=pid=77 time=8000000 state=S syscall=0\0"
        "waiting.14=pid=10 time=8000000 state=S\0"
        "waiting.99=pid=10 time=8000000 state=S syscall=0\0"
        "waiting.15=pid=10 time=400000 state=S syscall=0"; /* before the first record */

    (void)state;
    begin(meta, sizeof(meta));
    switched(2 * MS, 10, false, false);
    switched(3 * MS, 10, true, false);
    switched(7 * MS, 10, false, false);
    switched(8500000, 10, true, true);
    switched(8600000, 11, false, false);
    switched(8700000, 11, true, false);
    assert_string_equal(marks(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_waits_is_told_in_words, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(what_the_switches_deny_is_not_told, world_set_up, world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
