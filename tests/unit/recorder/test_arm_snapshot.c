/* The order of a trap's steps, and what later snapshots are told of a freeze that came to nothing. */
#include "arm_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void completes_after_resume(void **state)
{
    struct arm *arm = *state;

    has_fired = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    hand_all_back(arm);
    assert_string_equal(steps, "freeze copy resume complete write");
}

static void stops_the_stalled_thread_first(void **state)
{
    struct arm *arm = *state;

    has_fired = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    hand_all_back(arm);
    assert_int_equal(stopped_first.tid, 4312);
    assert_int_equal(stopped_first.cpu, 3);
    assert_int_equal(arm_want(arm, ARM_SNAP, NULL, &error), 0);
    hand_all_back(arm);
    assert_int_equal(stopped_first.tid, -1);
    assert_int_equal(stopped_first.cpu, -1);
}

/* Where nothing is frozen there is nothing to wait for, and what /proc tells is newest now. */
static void completes_at_once_before_after(void **state)
{
    struct arm *arm = *state;

    arm->options.after = 1000000000;
    arm->after.fd = rec_timer_open(NULL);
    has_fired = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    assert_string_equal(steps, "complete");
    assert_int_equal(arm_on_after(arm, &error), 0);
    hand_all_back(arm);
    assert_string_equal(steps, "complete freeze copy resume write");
    close(arm->after.fd);
}

static void keeps_record_of_failed_copy(void **state)
{
    struct arm *arm = *state;

    has_fired = fails_copying = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    hand_all_back(arm);
    assert_string_equal(steps, "freeze copy resume complete");
    assert_true(holds_completed(arm->store));
    assert_int_equal(arm->incomplete.n, 0);
}

static void snap(struct arm *arm)
{
    assert_int_equal(arm_want(arm, ARM_SNAP, NULL, &error), 0);
    hand_all_back(arm);
}

/* The stall goes on when its snapshot is taken, and ends before or after that is written: its end is put into
 * the file once, when that is there. */
static void end_comes_into_the_file(void **state)
{
    struct arm *arm = *state;

    for (int late = 0; late < 2; late++) {
        steps[0] = '\0';
        fires_as = ST_STALL_FIRED | ST_STALL_ONGOING;
        has_fired = true;
        assert_int_equal(arm_on_stalls(arm, &error), 0);
        assert_int_equal(arm->open_stalls.n, 1);
        if (late)
            hand_all_back(arm);
        fires_as = ST_STALL_COMPLETION;
        has_fired = true;
        assert_int_equal(arm_on_stalls(arm, &error), 0);
        hand_all_back(arm);
        assert_string_equal(steps, "freeze copy resume complete write fill");
        assert_int_equal(arm->open_stalls.n, 0);
    }
}

/* What is read when the recording is over fires no more, and is counted all the same. */
static void counts_to_the_end(void **state)
{
    struct arm *arm = *state;

    for (int i = 0; i < 2; i++) {
        arm->state = i ? ARM_OFF : ARM_ENDING;
        has_fired = true;
        assert_int_equal(arm_drain_stalls(arm, &error), 0);
        assert_int_equal(arm->traps.without, 1);
        assert_int_equal(arm->traps.fired, 0);
    }
}

/* There is no file that the end could be put into. */
static void end_of_a_failed_writing(void **state)
{
    struct arm *arm = *state;

    fires_as = ST_STALL_FIRED | ST_STALL_ONGOING;
    fails_writing = has_fired = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    fires_as = ST_STALL_COMPLETION;
    has_fired = true;
    assert_int_equal(arm_on_stalls(arm, &error), 0);
    hand_all_back(arm);
    assert_string_equal(steps, "freeze copy resume complete write");
    assert_int_equal(arm->open_stalls.n, 0);
}

/* The recording goes on while it is written, and the next trap is taken. */
static void takes_another_while_it_is_written(void **state)
{
    struct arm *arm = *state;

    for (int i = 0; i < 2; i++) {
        has_fired = true;
        assert_int_equal(arm_on_stalls(arm, &error), 0);
    }
    assert_string_equal(steps, "freeze copy resume complete freeze copy resume complete");
    assert_int_equal(arm->taken, 2);
    assert_int_equal(arm->written, 0);
    hand_back(arm);
    assert_int_equal(arm->written, 1);
    assert_int_equal(ntold, 0);
    hand_back(arm);
    assert_int_equal(arm->written, 2);
    assert_int_equal(ntold, 1); /* the pause of the first one, though that was written later */
    assert_int_equal(told[0].stopped, 1002);
}

/* What is asked for while two are being written comes when one of them is there; Ctrl-C does not wait. */
static void snap_waits_for_the_clerk(void **state)
{
    struct arm *arm = *state;

    for (int i = 0; i < 4; i++)
        assert_int_equal(arm_want(arm, ARM_SNAP, NULL, &error), 0);
    assert_int_equal(arm->taken, 2);
    assert_int_equal(arm->cause.reason, ARM_SNAP);
    hand_back(arm);
    assert_int_equal(arm->taken, 3);
    assert_int_equal(arm->cause.reason, ARM_NONE);
    assert_int_equal(arm_want(arm, ARM_INTERRUPT, NULL, &error), 0);
    assert_int_equal(arm->state, ARM_ENDING);
    assert_int_equal(arm->taken, 4);
    hand_all_back(arm);
    assert_int_equal(arm->written, 4);
}

static void tells_of_failed_writing(void **state)
{
    struct arm *arm = *state;

    fails_writing = true;
    snap(arm);
    assert_int_equal(arm->taken, 1);
    assert_int_equal(arm->written, 0);
    assert_true(arm->failed);
    fails_writing = false;
    snap(arm);
    assert_int_equal(arm->written, 1);
    assert_int_equal(ntold, 1);
}

static void tells_of_pause(void **state)
{
    snap(*state);
    assert_int_equal(ntold, 0);
    snap(*state);
    assert_int_equal(ntold, 1);
    assert_int_equal(told[0].stopped, 1001);
    assert_int_equal(told[0].done, 1002);
    assert_int_equal(told[0].resumed, 1003);
}

static void tells_of_failed_copy(void **state)
{
    fails_copying = true;
    snap(*state);
    fails_copying = false;
    snap(*state);
    assert_int_equal(ntold, 1);
    assert_int_equal(told[0].stopped, 1001);
    assert_int_equal(told[0].resumed, 1003);
}

/* It lasts until the next freeze: before that nothing has made the rings go on. */
static void tells_of_failed_resume(void **state)
{
    fails_resuming = true;
    snap(*state);
    fails_resuming = false;
    snap(*state);
    assert_int_equal(ntold, 1);
    assert_int_equal(told[0].stopped, 1001);
    assert_int_equal(told[0].done, 1002);
    assert_int_equal(told[0].resumed, 1004); /* when the second freeze was done */
}

/* Some rings were stopped, and went on. */
static void tells_of_failed_freeze(void **state)
{
    fails_freezing = true;
    snap(*state);
    assert_string_equal(steps, "freeze");
    fails_freezing = false;
    snap(*state);
    assert_int_equal(ntold, 1);
    assert_int_equal(told[0].stopped, 1001);
    assert_int_equal(told[0].done, 1001);
    assert_int_equal(told[0].resumed, 1002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(completes_after_resume, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(stops_the_stalled_thread_first, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(completes_at_once_before_after, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(keeps_record_of_failed_copy, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(end_comes_into_the_file, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(end_of_a_failed_writing, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(counts_to_the_end, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(takes_another_while_it_is_written, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(snap_waits_for_the_clerk, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(tells_of_failed_writing, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(tells_of_pause, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(tells_of_failed_copy, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(tells_of_failed_resume, begin_arm, end_arm),
        cmocka_unit_test_setup_teardown(tells_of_failed_freeze, begin_arm, end_arm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
