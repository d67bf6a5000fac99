/* Spools: what is read is what was written, with memory for all of it and with memory for nothing; a full
 * disk. */
#include "base/spool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 200000 };

static struct st_spill *new_spill(size_t budget)
{
    struct st_spill *spill;
    struct st_error err = {0};

    assert_int_equal(st_spill_new(ST_BUILD_DIR "/spool-test", budget, &spill, &err), 0);
    return spill;
}

static size_t size_of(uint32_t i)
{
    return 4 + i % 61;
}

/* Record i begins with i. The place of record RECORDS / 2 is returned. */
static struct st_spool_place fill(struct st_spool *s)
{
    struct st_spool_place place, middle = {0};

    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t *to = st_spool_room(s, 64, &place, NULL);

        assert_non_null(to);
        memset(to, (int)i, size_of(i));
        memcpy(to, &i, sizeof(i));
        st_spool_wrote(s, size_of(i));
        if (i == RECORDS / 2)
            middle = place;
    }
    return middle;
}

static void check(const struct st_spool *s, struct st_spool_place from, uint32_t first)
{
    struct st_spool_reader r = {.spool = s};
    struct st_error err = {0};

    assert_int_equal(st_spool_seek(&r, from, &err), 0);
    for (uint32_t i = first; i < RECORDS; i++) {
        uint32_t number;

        if (r.at == r.end)
            assert_int_equal(st_spool_next(&r, &err), 0);
        memcpy(&number, r.at, sizeof(number));
        assert_int_equal(number, i);
        assert_int_equal(r.at[size_of(i) - 1], size_of(i) > 4 ? (uint8_t)i : i >> 24);
        r.at += size_of(i);
    }
    assert_ptr_equal(r.at, r.end);
    assert_int_equal(st_spool_next(&r, &err), 0);
    assert_ptr_equal(r.at, r.end);
    st_spool_close(&r);
}

static void what_was_written_is_read(struct st_spill *spill)
{
    struct st_spool two[2] = {{.spill = spill}, {.spill = spill}};
    struct st_spool_place middle[2];

    for (int i = 0; i < 2; i++)
        middle[i] = fill(&two[i]);
    for (int i = 0; i < 2; i++) {
        check(&two[i], (struct st_spool_place){0}, 0);
        check(&two[i], middle[i], RECORDS / 2);
    }
    st_spool_clear(&two[0]);
    check(&two[1], (struct st_spool_place){0}, 0);
    fill(&two[0]);
    check(&two[0], (struct st_spool_place){0}, 0);
    st_spool_clear(&two[0]);
    st_spool_clear(&two[1]);
}

static void within_the_budget_nothing_is_written(void **state)
{
    struct st_spill *spill = new_spill(SIZE_MAX);

    (void)state;
    what_was_written_is_read(spill);
    assert_int_equal(st_spill_bytes(spill), 0);
    st_spill_free(spill);
    what_was_written_is_read(NULL);
}

static void beyond_it_the_rest_is_in_the_file(void **state)
{
    static const size_t budgets[] = {0, 4096, 1 << 20, 8 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        struct st_spill *spill = new_spill(budgets[i]);

        what_was_written_is_read(spill);
        assert_true(st_spill_bytes(spill) >=
                    (budgets[i] > 4 << 20 ? 4 << 20 : 12 << 20)); /* of three times 6.8 MB */
        st_spill_free(spill);
    }
}

/* No room: the size a file may have stands in for the disk. */
static void a_full_disk_is_told(void **state)
{
    struct rlimit was, small = {64 * 1024, RLIM_INFINITY};
    struct st_spill *spill = new_spill(0);
    struct st_spool s = {.spill = spill};
    struct st_error err = {0};
    struct st_spool_place place;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < RECORDS && st_spool_room(&s, 64, &place, &err); i++)
        st_spool_wrote(&s, 64);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(err.code, ST_EFAIL);
    assert_non_null(strstr(err.text, "temporary file in '" ST_BUILD_DIR "'"));
    st_spool_clear(&s);
    st_spill_free(spill);
}

static void a_folder_that_is_not_there_is_told(void **state)
{
    struct st_spill *spill;
    struct st_spool s = {0};
    struct st_error err = {0};
    struct st_spool_place place;

    (void)state;
    assert_int_equal(st_spill_new("/nowhere/x.db", 0, &spill, &err), 0);
    s.spill = spill;
    for (int i = 0; i < RECORDS && st_spool_room(&s, 64, &place, &err); i++)
        st_spool_wrote(&s, 64);
    assert_int_equal(err.code, ST_EFAIL);
    assert_non_null(strstr(err.text, "'/nowhere': No such file"));
    st_spool_clear(&s);
    st_spill_free(spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_budget_nothing_is_written),
        cmocka_unit_test(beyond_it_the_rest_is_in_the_file),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_folder_that_is_not_there_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
