/* Samples with every field, each read at its place; and cut short at every word. */
#include "hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALL                                                                                                  \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |       \
     PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |      \
     PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |            \
     PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |          \
     PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |       \
     PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX)

static const uint64_t words[] = {
    10,             /* IDENTIFIER */
    0x1111,         /* IP */
    7ull << 32 | 6, /* TID */
    50,             /* TIME */
    0x2222,         /* ADDR */
    10,             /* ID */
    99,             /* STREAM_ID */
    3,              /* CPU */
    4,              /* PERIOD */
    2,
    500,
    400, /* READ of a group: count, times, then value, id and lost of each */
    1,
    10,
    0,
    2,
    11,
    0, /**/
    3,
    0xa,
    0xb,
    0xc,                /* CALLCHAIN */
    0x6161616100000004, /* RAW: 4 bytes */
    1,
    5,
    0xf0,
    0xf8,
    1, /* BRANCH_STACK: count, index, from, to, flags */
    2,
    0x71,
    0x72, /* REGS_USER: abi, then two registers */
    16,
    0x81,
    0x82,
    8, /* STACK_USER: room, bytes, valid bytes */
    91,
    92,
    93, /* WEIGHT, DATA_SRC, TRANSACTION */
    2,
    0x75, /* REGS_INTR */
    94,
    95,
    96,
    97, /* PHYS_ADDR, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE */
    13,
    0x0807060504030201,
    0x0d0c0b0a09, /* AUX: 13 bytes, padded */
};

#define NWORDS (sizeof(words) / sizeof(words[0]))

static struct perf_event_attr attr = {
    .sample_type = ALL,
    .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
                   PERF_FORMAT_ID | PERF_FORMAT_LOST,
    .branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
    .sample_regs_user = 0x101,
    .sample_regs_intr = 0x2,
};

/* A record of the first `n` words. */
static void make(struct made *m, const uint64_t *all, size_t n)
{
    made_start(m, PERF_RECORD_SAMPLE, 0);
    for (size_t i = 0; i < n; i++)
        made_u64(m, all[i]);
}

static int take(const struct perf_event_attr *a, const struct made *m, struct pd_sample *s,
                struct st_error *err)
{
    const struct pd_event event = {.attr = *a, .name = ""};
    const struct pd_record record = {.header = &m->header, .file = "f", .offset = 0x40, .event = &event};

    return pd_record_sample(&record, s, err);
}

static void every_field_is_found(void **state)
{
    struct pd_sample s;
    struct made m;

    (void)state;
    make(&m, words, NWORDS);
    assert_int_equal(take(&attr, &m, &s, NULL), 0);
    assert_int_equal(s.ip, 0x1111);
    assert_int_equal(s.addr, 0x2222);
    assert_int_equal(s.period, 4);
    assert_int_equal(s.ncallchain, 3);
    assert_int_equal(s.callchain[2], 0xc);
    assert_int_equal(s.raw_size, 4);
    assert_memory_equal(s.raw, "aaaa", 4);
    assert_int_equal(s.nbranches, 1);
    assert_int_equal(s.branches[0].from, 0xf0);
    assert_int_equal(s.branches[0].to, 0xf8);
    assert_int_equal(s.user_abi, PERF_SAMPLE_REGS_ABI_64);
    assert_int_equal(s.user_regs[1], 0x72);
    assert_int_equal(s.user_stack_size, 8);
    assert_int_equal(*(const uint8_t *)s.user_stack, 0x81);
    assert_int_equal(s.aux_size, 13);
    assert_int_equal(((const uint8_t *)s.aux)[12], 13);
}

static void a_sample_cut_anywhere_is_told(void **state)
{
    struct pd_sample s;
    struct made m;

    (void)state;
    for (size_t n = 0; n < NWORDS; n++) {
        static const struct pd_sample nothing;
        struct st_error err = {0};

        make(&m, words, n);
        assert_int_equal(take(&attr, &m, &s, &err), ST_EBADFILE);
        assert_non_null(strstr(err.text, "f: at offset 0x40: SAMPLE (9): its "));
        assert_non_null(strstr(err.text, " goes beyond its end"));
        assert_memory_equal(&s, &nothing, sizeof(s));
    }
}

/* Each word in turn a huge or a slightly wrong number: counts and sizes must be checked, without overflow. */
static void any_count_may_be_wrong(void **state)
{
    static const uint64_t wrong[] = {UINT64_MAX,
                                     UINT64_MAX / 2,
                                     UINT64_MAX / 8,
                                     UINT64_MAX / 8 + 1,
                                     UINT64_MAX / 16 + 1,
                                     UINT32_MAX,
                                     UINT64_MAX / 3 + 1,
                                     0xffffffff00000000,
                                     1000,
                                     17,
                                     1,
                                     0};
    uint64_t changed[NWORDS];
    struct pd_sample s;
    struct made m;

    (void)state;
    for (size_t i = 0; i < NWORDS; i++)
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            int rc;

            memcpy(changed, words, sizeof(words));
            changed[i] = wrong[k];
            make(&m, changed, NWORDS);
            rc = take(&attr, &m, &s, NULL);
            assert_true(rc == 0 || rc == ST_EBADFILE);
            if (rc)
                continue;
            assert_in_range(s.ncallchain, 0, NWORDS);
            assert_in_range(s.nbranches, 0, NWORDS);
            assert_in_range(s.raw_size, 0, NWORDS * 8);
            assert_in_range(s.aux_size, 0, NWORDS * 8);
            assert_in_range(s.user_stack_size, 0, NWORDS * 8);
        }
}

static void empty_fields_are_none(void **state)
{
    static const uint64_t empty[] = {0 /* chain */, 0 /* branches */, 0 /* abi */, 0 /* stack room */};
    const struct perf_event_attr a = {.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK |
                                                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                      .sample_regs_user = 0xff,
                                      .sample_period = 12};
    struct pd_sample s;
    struct made m;

    (void)state;
    make(&m, empty, 4);
    assert_int_equal(take(&a, &m, &s, NULL), 0);
    assert_int_equal(s.ncallchain, 0);
    assert_int_equal(s.nbranches, 0);
    assert_int_equal(s.user_abi, 0);
    assert_null(s.user_regs);
    assert_null(s.user_stack);
    assert_int_equal(s.period, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_found),
        cmocka_unit_test(a_sample_cut_anywhere_is_told),
        cmocka_unit_test(any_count_may_be_wrong),
        cmocka_unit_test(empty_fields_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
