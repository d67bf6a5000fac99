/* A stall that was told while it went on, and its end. */
#include "base/stall_complete.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct st_stall_record record(st_u32 flags, st_u64 seq, st_u32 trigger)
{
    return (struct st_stall_record){.flags = flags, .seq = seq, .trigger = trigger, .start_ktime = 100};
}

static void put_extra(struct st_stall_record *r, const char *text)
{
    size_t n = strlen(text) + 1;

    memcpy(r->extra + r->extra_n, text, n);
    r->extra_n = (st_u16)(r->extra_n + n);
}

static bool has_extra(const struct st_stall_record *r, const char *text)
{
    for (size_t at = 0; at < r->extra_n; at += strlen(r->extra + at) + 1)
        if (!strcmp(r->extra + at, text))
            return true;
    return false;
}

static void only_the_end_of_that_stall(void **state)
{
    struct st_stall_record ongoing = record(ST_STALL_ONGOING | ST_STALL_FIRED, 7, 1);
    struct st_stall_record ended = record(ST_STALL_FIRED, 7, 1);
    struct st_stall_record end = record(ST_STALL_COMPLETION, 7, 1);
    struct st_stall_record other = record(ST_STALL_COMPLETION, 8, 1);
    struct st_stall_record of_other = record(ST_STALL_COMPLETION, 7, 0);

    (void)state;
    assert_true(st_stall_completes(&ongoing, &end));
    assert_false(st_stall_completes(&ongoing, &other));
    assert_false(st_stall_completes(&ongoing, &of_other));
    assert_false(st_stall_completes(&ongoing, &ongoing));
    assert_false(st_stall_completes(&ended, &end));
}

static void what_was_seen_at_the_time_stays(void **state)
{
    struct st_stall_record r = record(ST_STALL_ONGOING | ST_STALL_FIRED, 7, 1);
    struct st_stall_record end = record(ST_STALL_COMPLETION, 7, 1);

    (void)state;
    r.ustack_n = r.kstack_n = 1;
    r.ustack[0] = 11;
    r.kstack[0] = 12;
    r.next_tid = end.next_tid = 5;
    memcpy(r.next_comm, "other", 6);
    put_extra(&r, "file=pipe:[3]");
    put_extra(&r, "seen_so_far=9");
    end.end_ktime = 400;
    end.waker_tid = 6;
    put_extra(&r, "peer=10.0.0.1:80");
    put_extra(&end, "peer=10.0.0.2:80");
    put_extra(&end, "bytes=1");
    st_stall_complete(&r, &end);
    assert_int_equal(r.end_ktime, 400);
    assert_int_equal(r.waker_tid, 6);
    assert_int_equal(r.ustack[0], 11);
    assert_int_equal(r.kstack[0], 12);
    assert_string_equal(r.next_comm, "other");
    assert_true(has_extra(&r, "file=pipe:[3]"));
    assert_true(has_extra(&r, "bytes=1"));
    assert_false(has_extra(&r, "seen_so_far=9"));
    assert_true(has_extra(&r, "peer=10.0.0.2:80")); /* the newer one, and no other */
    assert_false(has_extra(&r, "peer=10.0.0.1:80"));
    assert_true(r.flags & ST_STALL_FIRED);
    assert_false(r.flags & ST_STALL_ONGOING);
    assert_false(st_stall_completes(&r, &end)); /* once */
}

static void what_the_end_tells_is_newer(void **state)
{
    struct st_stall_record r = record(ST_STALL_ONGOING, 7, 1);
    struct st_stall_record end = record(ST_STALL_COMPLETION, 7, 1);

    (void)state;
    r.ustack_n = end.ustack_n = 1;
    r.ustack[0] = 11;
    end.ustack[0] = 21;
    r.next_tid = 5;
    end.next_tid = 6;
    memcpy(r.next_comm, "other", 6);
    st_stall_complete(&r, &end);
    assert_int_equal(r.ustack[0], 21);
    assert_int_equal(r.next_tid, 6);
    assert_string_equal(r.next_comm, ""); /* that of another thread is none */
    assert_false(r.flags & ST_STALL_FIRED);
}

static void attributes_that_have_no_room_are_left_out(void **state)
{
    struct st_stall_record r = record(ST_STALL_ONGOING, 7, 1);
    struct st_stall_record end = record(ST_STALL_COMPLETION, 7, 1);

    (void)state;
    put_extra(&r, "accepted=1");
    put_extra(&r, "file=pipe:[3]");
    memset(end.extra, 'x', ST_STALL_EXTRA - 12);
    end.extra_n = ST_STALL_EXTRA - 11;
    st_stall_complete(&r, &end);
    assert_true(has_extra(&r, "accepted=1"));
    assert_false(has_extra(&r, "file=pipe:[3]"));
    assert_int_equal(r.extra_n, ST_STALL_EXTRA);
}

/* As a user's own BPF program may write it. */
static void an_attribute_without_an_end_is_none(void **state)
{
    struct st_stall_record r = record(ST_STALL_ONGOING, 7, 1);
    struct st_stall_record end = record(ST_STALL_COMPLETION, 7, 1);

    (void)state;
    put_extra(&r, "accepted=1");
    memcpy(r.extra + r.extra_n, "file=", 5);
    memset(r.extra + r.extra_n + 5, 'x', ST_STALL_EXTRA - r.extra_n - 5);
    r.extra_n = ST_STALL_EXTRA;
    st_stall_complete(&r, &end);
    assert_true(has_extra(&r, "accepted=1"));
    assert_int_equal(r.extra_n, sizeof("accepted=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_end_of_that_stall),
        cmocka_unit_test(what_was_seen_at_the_time_stays),
        cmocka_unit_test(what_the_end_tells_is_newer),
        cmocka_unit_test(attributes_that_have_no_room_are_left_out),
        cmocka_unit_test(an_attribute_without_an_end_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
