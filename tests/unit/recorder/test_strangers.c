/* Records of processes that turn out to be the target's: in the order of time, and no longer than until the
 * next review but one. */
#include "recorder/perf/record.h"
#include "recorder/sideband/strangers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    uint32_t wanted; /* the process whose records are taken; 0: none */

    uint32_t pids[16];

    size_t n;
};

static void keep(struct rec_strangers *s, uint32_t pid, uint64_t time, size_t more)
{
    uint64_t buffer[32] = {0};
    struct rec_comm_record *r = (struct rec_comm_record *)buffer;
    struct rec_trailer *t;
    size_t size = offsetof(struct rec_comm_record, comm) + 8 + more;

    r->header = (struct perf_event_header){.type = PERF_RECORD_COMM, .size = (uint16_t)(size + sizeof(*t))};
    r->pid = r->tid = pid;
    t = (struct rec_trailer *)((char *)buffer + size);
    t->time = time;
    assert_int_equal(rec_strangers_keep(s, &r->header, NULL), 0);
}

static int look(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    const struct rec_comm_record *r = (const struct rec_comm_record *)record;
    struct seen *seen = ctx;

    (void)err;
    assert_int_equal(record->type, PERF_RECORD_COMM);
    seen->pids[seen->n++] = r->pid;
    return r->pid == seen->wanted;
}

static void review(struct rec_strangers *s, struct seen *seen, uint32_t wanted)
{
    *seen = (struct seen){.wanted = wanted};
    assert_int_equal(rec_strangers_review(s, look, seen, NULL), 0);
}

static void records_come_in_the_order_of_time(void **state)
{
    struct rec_strangers s = {0};
    struct seen seen;

    (void)state;
    keep(&s, 3, 30, 0);
    keep(&s, 1, 10, 16);
    keep(&s, 2, 20, 8);
    review(&s, &seen, 0);
    assert_int_equal(seen.n, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(seen.pids[i], i + 1);
    rec_strangers_free(&s);
}

static void they_stay_for_two_reviews(void **state)
{
    struct rec_strangers s = {0};
    struct seen seen;

    (void)state;
    keep(&s, 1, 10, 8);
    keep(&s, 2, 20, 0);
    keep(&s, 3, 30, 16);
    review(&s, &seen, 2); /* that one goes */
    keep(&s, 4, 5, 24);
    review(&s, &seen, 0);
    assert_int_equal(seen.n, 3);
    assert_int_equal(seen.pids[0], 4);
    assert_int_equal(seen.pids[1], 1);
    assert_int_equal(seen.pids[2], 3);
    review(&s, &seen, 0);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.pids[0], 4);
    review(&s, &seen, 0);
    assert_int_equal(seen.n, 0);
    assert_int_equal(s.words.n, 0);
    rec_strangers_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_in_the_order_of_time),
        cmocka_unit_test(they_stay_for_two_reviews),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
