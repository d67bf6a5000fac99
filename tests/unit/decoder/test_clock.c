/* The conversion between TSC and perf clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/pt/clock.h"

/* Figures of a real machine; the products do not fit into 64 bits unless they are split. */
static void it_converts_as_perf_does(void **state)
{
    struct dec_clock clock = {.mult = 1076264588, .shift = 31, .zero = 18433473881008870804u, .known = true};
    (void)state;
    assert_int_equal(dec_clock_ns(&clock, 0), 18433473881008870804u);
    assert_int_equal(dec_clock_ns(&clock, (uint64_t)1 << 31), 18433473881008870804u + 1076264588u);
    assert_int_equal(dec_clock_ns(&clock, 40450075438444022),
                     40450075438444022 / 2147483648u * 1076264588 +
                         40450075438444022 % 2147483648u * 1076264588 / 2147483648u + 18433473881008870804u);
}

static void there_and_back_is_within_a_tick(void **state)
{
    struct dec_clock clock = {.mult = 894784853, .shift = 31, .zero = 5000, .known = true};
    (void)state;
    for (uint64_t tsc = 1; tsc < (uint64_t)1 << 60; tsc = tsc * 3 + 7) {
        uint64_t ns = dec_clock_ns(&clock, tsc);
        uint64_t back = dec_clock_tsc(&clock, ns);
        assert_true(back <= tsc && tsc - back <= 3); /* a ns is 2.4 ticks */
    }
}

static void the_ends_of_time_stay_what_they_are(void **state)
{
    struct dec_clock clock = {.mult = 10, .shift = 3, .zero = 100, .known = true};
    (void)state;
    assert_int_equal(dec_clock_tsc(&clock, 0), 0);
    assert_int_equal(dec_clock_tsc(&clock, UINT64_MAX), UINT64_MAX);
}

static void without_a_conversion_time_is_the_tsc(void **state)
{
    struct dec_clock clock = {0};
    (void)state;
    assert_int_equal(dec_clock_ns(&clock, 123456), 123456);
    assert_int_equal(dec_clock_tsc(&clock, 123456), 123456);
}

static void senseless_figures_do_no_harm(void **state)
{
    struct dec_clock clock = {.mult = 3, .shift = 200, .known = true};
    (void)state;
    dec_clock_ns(&clock, UINT64_MAX);
    clock.mult = 0;
    assert_int_equal(dec_clock_tsc(&clock, 17), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_converts_as_perf_does),
        cmocka_unit_test(there_and_back_is_within_a_tick),
        cmocka_unit_test(the_ends_of_time_stay_what_they_are),
        cmocka_unit_test(without_a_conversion_time_is_the_tsc),
        cmocka_unit_test(senseless_figures_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
