/* The histogram: each value in its own bucket, and percentiles as near as the buckets are wide. */
#include "triggers/bpf/bucket.h"
#include "triggers/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void test_log2_at_every_power_and_beside_it(void **state)
{
    (void)state;
    assert_int_equal(log2_of(0), 0);
    for (unsigned power = 0; power < 64; power++) {
        uint64_t v = 1ull << power;

        assert_int_equal(log2_of(v), power);
        assert_int_equal(log2_of(v | v >> 1), power);
        assert_int_equal(log2_of(v | (v - 1)), power);
        if (power)
            assert_int_equal(log2_of(v - 1), power - 1);
        if (power)
            assert_int_equal(log2_of(v + 1), power);
    }
}

/* A value alone in the histogram with a worst far above: the percentile is the upper edge of its bucket. */
static uint64_t edge_above(uint64_t v)
{
    struct hist h = {.worst = UINT64_MAX};

    assert_true(bucket_of(v) < HIST_BUCKETS);
    h.bucket[bucket_of(v)] = 1;
    return trg_hist_percentile(&h, 1);
}

static void assert_in_its_bucket(uint64_t v)
{
    uint64_t edge = edge_above(v);

    if (edge <= v || (v >= HIST_STEPS && edge - v > v / HIST_STEPS + 1) || (v < HIST_STEPS && edge != v + 1))
        fail_msg("%llu is in the bucket that ends at %llu", (unsigned long long)v, (unsigned long long)edge);
}

static void test_a_value_lies_below_the_edge_of_its_bucket(void **state)
{
    (void)state;
    for (uint64_t v = 1; v < 100000; v++)
        assert_in_its_bucket(v);
    for (unsigned power = 16; power < 63; power++)
        for (uint64_t step = 0; step < HIST_STEPS; step++) {
            uint64_t v = (HIST_STEPS + step) << (power - 3);

            assert_in_its_bucket(v);
            assert_in_its_bucket(v - 1);
            assert_in_its_bucket(v + 1);
        }
}

static void test_powers_hold_their_values(void **state)
{
    uint64_t n[64];

    (void)state;
    for (unsigned power = 1; power < 63; power++) {
        struct hist h = {0};

        h.bucket[bucket_of(1ull << power)]++;
        h.bucket[bucket_of((2ull << power) - 1)]++;
        trg_hist_powers(&h, n);
        assert_int_equal(n[power], 2);
    }
}

enum { VALUES = 20000 };

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* From 1 us to 1 s, as many in each octave; always the same ones. */
static uint64_t next_value(uint64_t *seed)
{
    uint64_t power;

    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    power = 10 + (*seed >> 59) % 20;
    return (1ull << power) + ((*seed >> 20) & ((1ull << power) - 1));
}

static void test_percentiles_are_within_a_bucket_of_the_truth(void **state)
{
    static const double shares[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    static uint64_t values[VALUES];
    struct hist h = {0};
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = next_value(&seed);
        h.bucket[bucket_of(values[i])]++;
        h.sum += values[i];
        h.worst = values[i] > h.worst ? values[i] : h.worst;
    }
    qsort(values, VALUES, sizeof(*values), by_value);
    for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
        uint64_t truth = values[(size_t)(VALUES * shares[i]) - 1];
        uint64_t got = trg_hist_percentile(&h, shares[i]);

        if (got < truth || got - truth > truth / HIST_STEPS + 1)
            fail_msg("%g %%: %llu, in truth %llu", shares[i] * 100, (unsigned long long)got,
                     (unsigned long long)truth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log2_at_every_power_and_beside_it),
        cmocka_unit_test(test_a_value_lies_below_the_edge_of_its_bucket),
        cmocka_unit_test(test_powers_hold_their_values),
        cmocka_unit_test(test_percentiles_are_within_a_bucket_of_the_truth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
