/* How many marks a bucket gives, from the boot of the machine on and at the edges of its interval. */
#include "triggers/bpf/select_shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint64_t intervals[] = {1, 1000, 1000000, 40000000, 5000000000};
static const uint64_t clocks[] = {0, 1, 1000, 1000000, 80000000000, UINT64_MAX / 2};

/* How many are due of those that come every `step` ns. */
static unsigned count(struct select_bucket *b, uint64_t from, uint64_t step, unsigned n, uint64_t interval)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < n; i++)
        taken += select_is_due(b, from + i * step, interval);
    return taken;
}

#define EACH(i, list) for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)

/* The first after a boot may find a clock that is younger than a burst. */
static void the_first_is_always_due(void **state)
{
    (void)state;
    EACH(i, intervals)
    EACH(c, clocks)
    {
        struct select_bucket b = {0};

        assert_true(select_is_due(&b, clocks[c], intervals[i]));
    }
}

/* Also where the very first came as the clock began. */
static void one_is_due_after_each_interval(void **state)
{
    (void)state;
    EACH(i, intervals)
    EACH(c, clocks)
    {
        struct select_bucket b = {0};

        assert_int_equal(count(&b, clocks[c], intervals[i], 100, intervals[i]), 100);
    }
}

static void after_a_pause_a_burst_is_due_and_no_more(void **state)
{
    (void)state;
    EACH(i, intervals)
    {
        uint64_t now = 1000 * intervals[i];
        struct select_bucket b = {0};

        assert_int_equal(count(&b, now, 0, 1000, intervals[i]), SELECT_BURST + 1);
        assert_false(select_is_due(&b, now + intervals[i] - 1, intervals[i]));
        assert_true(select_is_due(&b, now + intervals[i], intervals[i]));
        assert_false(select_is_due(&b, now + intervals[i], intervals[i]));
        now += 1000000 * intervals[i];
        assert_int_equal(count(&b, now, 0, 1000, intervals[i]), SELECT_BURST + 1);
    }
}

/* Of ten in an interval one is taken, and the burst. */
static void in_the_long_run_it_is_one_an_interval(void **state)
{
    (void)state;
    EACH(i, intervals)
    {
        uint64_t step = intervals[i] / 10 ? intervals[i] / 10 : 1, now = 1000 * intervals[i];
        unsigned n = 10000, all = (unsigned)(n * step / intervals[i]);
        struct select_bucket b = {0};
        unsigned taken = count(&b, now, step, n, intervals[i]);

        assert_in_range(taken, all > SELECT_BURST ? all - 1 : 0, all + SELECT_BURST + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_always_due),
        cmocka_unit_test(one_is_due_after_each_interval),
        cmocka_unit_test(after_a_pause_a_burst_is_due_and_no_more),
        cmocka_unit_test(in_the_long_run_it_is_one_an_interval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
