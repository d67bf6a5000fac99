/* Every state of a recording, at every event. */
#include "recorder/arm/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A letter a state, and "." where an event means nothing. */
static const char letters[] = "OADFCE";

static const struct {
    enum arm_event event;

    const char *to; /* of each state, in their order */
} rows[] = {
    /*           OADFCE */
    {ARM_LIVE, "A....A"}, {ARM_WANT, ".D...."}, {ARM_STOP, "..F..."},
    {ARM_COPY, "...C.."}, {ARM_DONE, "..AAA."}, {ARM_QUIT, "EEEEE."},
};

static void each_transition(void **state)
{
    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), ARM_EVENTS);
    for (int e = 0; e < ARM_EVENTS; e++)
        for (int s = 0; s < ARM_STATES; s++) {
            enum arm_state next = arm_state_next((enum arm_state)s, rows[e].event);
            char want = rows[e].to[s];

            assert_int_equal(letters[next], want == '.' ? letters[s] : want);
        }
}

static void what_the_states_are(void **state)
{
    static const char pending[] = "..DFC.", live[] = ".ADFC.";

    (void)state;
    for (int s = 0; s < ARM_STATES; s++) {
        assert_int_equal(arm_state_pending((enum arm_state)s), pending[s] != '.');
        assert_int_equal(arm_state_live((enum arm_state)s), live[s] != '.');
    }
}

/* From wherever it is, it can be over. */
static void it_ends_from_everywhere(void **state)
{
    (void)state;
    for (int s = 0; s < ARM_STATES; s++)
        assert_int_equal(arm_state_next((enum arm_state)s, ARM_QUIT), ARM_ENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_transition),
        cmocka_unit_test(what_the_states_are),
        cmocka_unit_test(it_ends_from_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
