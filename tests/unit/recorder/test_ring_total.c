/* What all rings may take together: sizes, room, and whose ring goes first. */
#include "recorder/sources/ring_total.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include <cmocka.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static const uint64_t SECOND = 1000000000;

static void rings_are_halved_until_all_fit(void **state)
{
    (void)state;
    assert_int_equal(rec_ring_fit(4 * MIB, 16 * KIB, 1, 4 * MIB), 4 * MIB);
    assert_int_equal(rec_ring_fit(4 * MIB, 16 * KIB, 2, 8 * MIB), 4 * MIB);
    assert_int_equal(rec_ring_fit(4 * MIB, 16 * KIB, 2, 8 * MIB - 1), 2 * MIB);
    assert_int_equal(rec_ring_fit(4 * MIB, 16 * KIB, 256, 64 * MIB), 256 * KIB);
    assert_int_equal(rec_ring_fit(4 * MIB, 512 * KIB, 256, 64 * MIB), 512 * KIB);  /* not below the least */
    assert_int_equal(rec_ring_fit(4 * MIB, 16 * KIB, 0, MIB), 4 * MIB);            /* of none */
    assert_int_equal(rec_ring_fit(MIB, 16 * KIB, SIZE_MAX, UINT64_MAX), 16 * KIB); /* no product overflows */
    assert_int_equal(rec_ring_fit(16 * KIB, 16 * KIB, 9, 1), 16 * KIB);
}

static void the_default_is_a_share_of_the_memory(void **state)
{
    struct rec_ring_total t;
    struct sysinfo info;

    (void)state;
    assert_int_equal(sysinfo(&info), 0);
    rec_ring_total_open(&t, 0);
    assert_int_equal(t.most, (uint64_t)info.totalram * info.mem_unit / 8);
    assert_false(t.asked);
    rec_ring_total_open(&t, 12345);
    assert_int_equal(t.most, 12345);
    assert_true(t.asked);
}

static void made(struct rec_ring_total *t, pid_t tid, uint64_t now)
{
    assert_int_equal(rec_ring_made(t, 10, tid, MIB, now), 0);
}

static void room_is_what_is_left(void **state)
{
    struct rec_ring_total t;

    (void)state;
    rec_ring_total_open(&t, 2 * MIB);
    assert_true(rec_ring_has_room(&t, 8 * MIB)); /* the first one */
    made(&t, 1, 0);
    assert_true(rec_ring_has_room(&t, MIB));
    assert_false(rec_ring_has_room(&t, MIB + 1));
    made(&t, 2, 0);
    assert_false(rec_ring_has_room(&t, 1));
    rec_ring_dropped(&t, 0);
    assert_int_equal(t.uses.at[0].tid, 2);
    assert_true(rec_ring_has_room(&t, MIB));
    rec_ring_total_close(&t);
}

/* Drops the one that goes next: its thread, or 0. */
static pid_t next(struct rec_ring_total *t, uint64_t now)
{
    size_t i = rec_ring_idlest(t, now);
    pid_t tid = i < t->uses.n ? t->uses.at[i].tid : 0;

    if (tid)
        rec_ring_dropped(t, i);
    return tid;
}

static void the_longest_idle_goes_first(void **state)
{
    struct rec_ring_total t;

    (void)state;
    rec_ring_total_open(&t, 64 * MIB);
    for (pid_t tid = 1; tid <= 5; tid++)
        made(&t, tid, SECOND);
    for (size_t i = 0; i < 5; i++)
        rec_ring_look(&t, i, 100, 2 * SECOND); /* all have moved, */
    rec_ring_look(&t, 2, 200, 4 * SECOND);     /* thread 3 goes on, */
    rec_ring_look(&t, 0, 200, 3 * SECOND);     /* 1 did, */
    rec_ring_look(&t, 1, 100, 9 * SECOND);     /* 2 stands still, */
    rec_ring_look(&t, 3, 50, 5 * SECOND);      /* and 4 went round: it is at an earlier place */
    made(&t, 6, 9 * SECOND);                   /* 6 is new */
    assert_int_equal(next(&t, 9 * SECOND), 2);
    assert_int_equal(next(&t, 9 * SECOND), 5);
    assert_int_equal(next(&t, 9 * SECOND), 1);
    assert_int_equal(next(&t, 9 * SECOND), 3);
    assert_int_equal(next(&t, 9 * SECOND), 4);
    assert_int_equal(next(&t, 10 * SECOND - 1), 0); /* within a second nobody is idle */
    assert_int_equal(next(&t, 10 * SECOND), 6);
    assert_int_equal(next(&t, 99 * SECOND), 0);
    rec_ring_total_close(&t);
}

static void who_has_none_is_kept(void **state)
{
    struct rec_ring_total t;
    char text[96];

    (void)state;
    rec_ring_total_open(&t, 2 * MIB);
    rec_ring_total_describe(&t, text, sizeof(text));
    assert_string_equal(text, " (2 MiB in all at most)");
    t.told = true;
    for (pid_t tid = 1; tid <= REC_MOST_GONE + 1; tid++)
        assert_int_equal(
            rec_ring_tell_gone(&t, &(struct rec_ring_gone){.pid = 10, .tid = tid, .until = 7}, NULL), 0);
    assert_int_equal(t.gone.n, REC_MOST_GONE);
    assert_int_equal(t.ngone, REC_MOST_GONE + 1);
    assert_false(rec_ring_is_gone(&t, 10, 1)); /* the oldest made room */
    assert_true(rec_ring_is_gone(&t, 10, 2));
    assert_false(rec_ring_is_gone(&t, 11, 2));
    rec_ring_total_describe(&t, text, sizeof(text));
    assert_string_equal(text, " (2 MiB in all at most, 4097 threads have none)");
    rec_ring_total_clear(&t);
    assert_int_equal(t.gone.n + t.ngone + t.uses.n, 0);
    rec_ring_total_close(&t);
}

static void who_ran_has_one_first(void **state)
{
    static const struct rec_ring_wish all[] = {{.tid = 1, .times = 9},
                                               {.tid = 2, .times = 2, .ran = true},
                                               {.tid = 3, .times = 7},
                                               {.tid = 4, .times = 9},
                                               {.tid = 5, .times = 3, .ran = true}};
    static const pid_t order[] = {5, 2, 1, 4, 3};
    rec_ring_wishes list = {0};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(st_vec_push(&list, all[i]), 0);
    rec_ring_wish_sort(&list);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(list.at[i].tid, order[i]);
    st_vec_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_are_halved_until_all_fit),
        cmocka_unit_test(the_default_is_a_share_of_the_memory),
        cmocka_unit_test(room_is_what_is_left),
        cmocka_unit_test(the_longest_idle_goes_first),
        cmocka_unit_test(who_has_none_is_kept),
        cmocka_unit_test(who_ran_has_one_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
