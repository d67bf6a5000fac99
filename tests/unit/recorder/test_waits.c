/* Waits of which no mark was taken: which of them a snapshot tells, each once, and in what words. */
#include "recorder/perf/record.h"
#include "recorder/sideband/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STALLED = 11, OTHER = 12, ID = 77, SLEEPING = 1, STOPPED = 4, MS = 1000000 };

static struct rec_waits *waits;

static struct rec_store *store;

static int begin(void **state)
{
    const struct rec_store_bounds bounds = {0};

    (void)state;
    return rec_waits_open(&waits, NULL) || rec_store_open(&bounds, &store, NULL);
}

static int end(void **state)
{
    (void)state;
    rec_waits_close(waits);
    rec_store_close(store);
    return 0;
}

static void wait_of(uint32_t tid, uint64_t from, uint64_t to, uint32_t state, int call, bool compat)
{
    rec_waits_take(waits, &(struct select_switch){.time = to,
                                                  .next_pid = 10,
                                                  .next_tid = tid,
                                                  .left = from,
                                                  .left_cpu = 3,
                                                  .state = state,
                                                  .syscall = call,
                                                  .compat = compat});
}

/* "TID TIME TEXT", one a line, in the order of time; the records are whole, and of the event. */
static const char *told(void)
{
    static char text[1 << 16];
    struct rec_view view;
    struct rec_stored *list;
    size_t n = 0;

    text[0] = '\0';
    assert_int_equal(rec_store_view(store, &view), 0);
    assert_int_equal(rec_view_sorted(&view, &list, NULL), 0);
    for (size_t i = 0; i < view.n; i++) {
        const struct rec_sample_head *head = (const struct rec_sample_head *)list[i].record;
        const char *raw = (const char *)(head + 1) + sizeof(uint32_t);
        struct st_mark_record mark;

        memcpy(&mark, raw, sizeof(mark));
        assert_int_equal(head->header.type, PERF_RECORD_SAMPLE);
        assert_int_equal(head->header.size % 8, 0);
        assert_int_equal(head->id, ID);
        assert_int_equal(head->cpu, 3);
        assert_int_equal(mark.magic, ST_MARK_MAGIC);
        assert_string_equal(mark.name, "offcpu");
        assert_int_equal(mark.text_n, strlen(mark.text) + 1);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%u %lu %s\n", head->tid, (unsigned long)head->time,
                              mark.text);
        assert_true(n < sizeof(text));
    }
    free(list);
    rec_view_free(&view);
    return text;
}

static void waits_are_told_once_in_words(void **state)
{
    (void)state;
    wait_of(STALLED, 1000, 2 * MS, SLEEPING, 0, false);
    wait_of(STALLED, 3000, 2 * MS, SLEEPING, 3, true);
    wait_of(STALLED, 4000, 2 * MS, STOPPED, -1, false);
    wait_of(OTHER, 2000, 2 * MS, SLEEPING, 202, false);
    rec_waits_take(waits, &(struct select_switch){.time = 5000, .next_tid = STALLED}); /* short, or marked */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rec_waits_tell(waits, ID, STALLED, store, NULL), 0);
        assert_string_equal(told(), "11 1000 sleeping in read\n"
                                    "12 2000 sleeping in futex\n"
                                    "11 3000 sleeping in read\n"
                                    "11 4000 stopped\n");
    }
}

/* Of threads that the snapshot is not about the longest waits are told, of the stalled one all. */
static void of_others_the_longest_are_told(void **state)
{
    unsigned own = 0, others = 0;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        wait_of(OTHER, 10 * MS * i + 1, 10 * MS * i + 1 + (i % 2 ? 5 : 2) * MS, SLEEPING, i % 2 ? 202 : 0,
                false);
        wait_of(STALLED, 10 * MS * i + 2, 10 * MS * i + 2 + MS, SLEEPING, 0, false);
    }
    assert_int_equal(rec_waits_tell(waits, ID, STALLED, store, NULL), 0);
    for (const char *line = told(); *line; line = strchr(line, '\n') + 1) {
        own += !strncmp(line, "11 ", 3);
        others += !strncmp(line, "12 ", 3);
        assert_true(!!strstr(line, "12 ") == !!strstr(line, "futex") || strncmp(line, "12 ", 3));
    }
    assert_int_equal(own, 1000);
    assert_int_equal(others, 256);
    assert_null(strstr(told(), "12 1 "));
}

/* What is older than the newest 16,384 is forgotten. */
static void the_newest_are_kept(void **state)
{
    (void)state;
    wait_of(STALLED, 5, 2 * MS, SLEEPING, 0, false);
    for (uint64_t i = 0; i < 16384; i++)
        wait_of(OTHER, 1000 + i, 3 * MS, SLEEPING, 0, false);
    assert_int_equal(rec_waits_tell(waits, ID, STALLED, store, NULL), 0);
    assert_true(strncmp(told(), "11 ", 3));
    assert_null(strstr(told(), "\n11 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_are_told_once_in_words, begin, end),
        cmocka_unit_test_setup_teardown(of_others_the_longest_are_told, begin, end),
        cmocka_unit_test_setup_teardown(the_newest_are_kept, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
