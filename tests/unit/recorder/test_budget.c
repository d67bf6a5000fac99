/* How many context switches and wake-ups are sampled, at the edges of every rate. */
#include "recorder/sources/sample/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 8 };

/* The periods that are chosen, of those that were chosen before. */
static void share(struct smp_pace paces[], size_t n, uint64_t most, uint64_t total)
{
    struct smp_pace *list[MOST];

    for (size_t i = 0; i < n; i++)
        list[i] = &paces[i];
    smp_budget_share(list, n, most, total);
}

static unsigned alone(uint64_t rate, uint64_t most)
{
    struct smp_pace p = {.rate = rate};

    share(&p, 1, most, most);
    return p.every;
}

static void up_to_the_bound_every_one_is_sampled(void **state)
{
    (void)state;
    assert_int_equal(alone(0, 1000), 1);
    assert_int_equal(alone(999, 1000), 1);
    assert_int_equal(alone(1000, 1000), 1);
    assert_int_equal(alone(1001, 1000), 2);
    assert_int_equal(alone(2000, 1000), 2);
    assert_int_equal(alone(2001, 1000), 3);
    assert_int_equal(alone(1, 1), 1);
    assert_int_equal(alone(7, 0), 7); /* one a second at the least */
    assert_int_equal(alone(UINT64_MAX, 1), UINT32_MAX);
    share(NULL, 0, 1000, 1000);
}

/* At every rate what is sampled stays within the bound, and is more than half of what may be. */
static void the_bound_is_kept_and_used(void **state)
{
    (void)state;
    for (uint64_t most = 1; most < 1u << 20; most = most * 3 / 2 + 1)
        for (uint64_t rate = 1; rate < 1ull << 32; rate = rate * 5 / 3 + 1) {
            uint64_t every = alone(rate, most);

            assert_true(rate / every <= most);
            assert_true(every == 1 || 2 * (rate / every + 1) > most);
        }
}

/* Those that have few keep them; the others share what is left. */
static void together_they_stay_within_the_total(void **state)
{
    struct smp_pace p[] = {{.rate = 10}, {.rate = 500}, {.rate = 3000}, {.rate = 50000}};
    uint64_t sampled = 0;

    (void)state;
    share(p, 4, 1000, 1200);
    assert_int_equal(p[0].every, 1);
    assert_true(p[1].every > 1);
    assert_true(p[3].every > p[2].every);
    for (size_t i = 0; i < 4; i++)
        sampled += p[i].rate / p[i].every;
    assert_true(sampled <= 1200);
    share(p, 4, 1000, 1000000);
    assert_int_equal(p[1].every, 1);
}

/* A rate that goes up and down about a bound does not change the period each time. */
static void a_period_goes_down_only_by_half(void **state)
{
    struct smp_pace p = {.rate = 8000};

    (void)state;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 8);
    p.rate = 5000;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 8);
    p.rate = 8001;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 9);
    p.rate = 4000;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 4);
    p.rate = 1500;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 2);
    p.rate = 0;
    share(&p, 1, 1000, 1000);
    assert_int_equal(p.every, 1);
}

static void timers_are_slow_where_that_helps(void **state)
{
    const struct smp_cost dear = {.timer = 2000, .slow_timer = 500},
                          alike = {.timer = 2000, .slow_timer = 1000};

    (void)state;
    assert_false(smp_budget_is_slow(&dear, 5000, false)); /* 10 ms a second */
    assert_true(smp_budget_is_slow(&dear, 5001, false));
    assert_true(smp_budget_is_slow(&dear, 2501, true));
    assert_false(smp_budget_is_slow(&dear, 2500, true));
    assert_false(smp_budget_is_slow(&dear, 0, true));
    assert_false(smp_budget_is_slow(&alike, UINT64_MAX, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_the_bound_every_one_is_sampled),
        cmocka_unit_test(the_bound_is_kept_and_used),
        cmocka_unit_test(together_they_stay_within_the_total),
        cmocka_unit_test(a_period_goes_down_only_by_half),
        cmocka_unit_test(timers_are_slow_where_that_helps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
