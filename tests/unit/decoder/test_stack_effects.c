/* The stack builder: fibers of OCaml 5, which effects leave and continuations go on with. */
#include "stack_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* main runs `a` on a fiber, which calls `b`, which performs an effect. `handler` goes on with the fiber by
 * `f`. */
static void an_effect_is_handled_on_the_stack_around(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 runstack\n"
                                   "12 call runstack+40 a\n"
                                   "14 call a+16 b\n"
                                   "16 call b+16 perform\n"
                                   "18 jmp perform+16 handler\n"
                                   "20 call handler+8 d\n"
                                   "22 ret d+8 handler+13\n"
                                   "24 jmp handler+20 continue\n"
                                   "26 jmp continue+20 f indirect\n"
                                   "28 ret f+8 b+21\n"
                                   "30 ret b+30 a+21\n"
                                   "32 ret a+30 runstack+45\n"
                                   "34 jmp runstack+60 c indirect\n"
                                   "36 ret c+8 main+21\n"
                                   "40 jmp main+40 main",
                                   NULL),
                        "main 0+40 self 14 no-call no-return\n"
                        "  runstack 10+8 self 2\n"
                        "    a 12+6 self 2 no-return\n"
                        "      b 14+4 self 2 no-return\n"
                        "        perform 16+2 self 2 no-return\n"
                        "  handler 18+6 self 4 tail\n"
                        "    d 20+2 self 2\n"
                        "  continue 24+2 self 2 tail\n"
                        "  f 26+8 self 4 tail\n"
                        "    a 28+4 self 2 no-call\n"
                        "      b 28+2 self 2 no-call\n"
                        "  c 34+2 self 2 tail\n");
    assert_int_equal(script_counts().strays, 0);
    assert_int_equal(script_counts().switches, 2);
}

/* The handler does not go on with the fiber. */
static void a_fiber_that_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 runstack\n"
                                   "12 call runstack+40 a\n"
                                   "14 call a+16 perform\n"
                                   "16 jmp perform+16 handler\n"
                                   "18 ret handler+8 main+21\n"
                                   "20 call main+32 b\n"
                                   "22 ret b+8 main+37\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 20 no-call no-return\n"
                        "  runstack 10+6 self 2\n"
                        "    a 12+4 self 2 no-return\n"
                        "      perform 14+2 self 2 no-return\n"
                        "  handler 16+2 self 2 tail\n"
                        "  b 20+2 self 2\n");
}

/* Two fibers that run the same code and yield to a scheduler, one call apart in depth. */
static void fibers_in_turns_build_no_staircase(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 runstack\n"
                                   "12 call runstack+40 a\n"
                                   "14 call a+16 perform\n"
                                   "16 jmp perform+16 handler\n"
                                   "18 ret handler+8 main+21\n"
                                   "20 call main+32 runstack\n"
                                   "22 call runstack+40 b\n"
                                   "24 call b+16 perform\n"
                                   "26 jmp perform+16 handler\n"
                                   "28 ret handler+8 main+37\n"
                                   "30 call main+48 continue\n"
                                   "32 jmp continue+20 f indirect\n"
                                   "34 ret f+8 a+21\n"
                                   "36 call a+16 perform\n"
                                   "38 jmp perform+16 handler\n"
                                   "40 ret handler+8 main+53\n"
                                   "42 call main+48 continue\n"
                                   "44 jmp continue+20 f indirect\n"
                                   "46 ret f+8 b+21\n"
                                   "48 ret b+30 runstack+45\n"
                                   "50 jmp runstack+60 c indirect\n"
                                   "52 ret c+8 main+53\n"
                                   "60 jmp main+60 main",
                                   NULL),
                        "main 0+60 self 24 no-call no-return\n"
                        "  runstack 10+6 self 2\n"
                        "    a 12+4 self 2 no-return\n"
                        "      perform 14+2 self 2 no-return\n"
                        "  handler 16+2 self 2 tail\n"
                        "  runstack 20+6 self 2\n"
                        "    b 22+4 self 2 no-return\n"
                        "      perform 24+2 self 2 no-return\n"
                        "  handler 26+2 self 2 tail\n"
                        "  continue 30+2 self 2\n"
                        "  f 32+6 self 2 tail\n"
                        "    a 34+4 self 2 no-call no-return\n"
                        "      perform 36+2 self 2 no-return\n"
                        "  handler 38+2 self 2 tail\n"
                        "  continue 42+2 self 2\n"
                        "  f 44+6 self 4 tail\n"
                        "    b 46+2 self 2 no-call\n"
                        "  c 50+2 self 2 tail\n");
    assert_int_equal(script_counts().strays, 0);
}

/* What goes on with the fiber throws there; the landing pad is in `a`, not behind its call. */
static void a_fiber_is_continued_with_an_exception(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 runstack\n"
                                   "12 call runstack+40 a\n"
                                   "14 call a+16 b\n"
                                   "16 call b+16 perform\n"
                                   "18 jmp perform+16 handler\n"
                                   "20 jmp handler+20 continue\n"
                                   "22 jmp continue+20 f indirect\n"
                                   "24 call f+8 longjmp\n"
                                   "26 ret longjmp+8 a+60\n"
                                   "28 ret a+80 runstack+45\n"
                                   "30 jmp runstack+60 c indirect\n"
                                   "32 ret c+8 main+21\n"
                                   "40 jmp main+40 main",
                                   NULL),
                        "main 0+40 self 18 no-call no-return\n"
                        "  runstack 10+8 self 2\n"
                        "    a 12+6 self 2 no-return\n"
                        "      b 14+4 self 2 no-return\n"
                        "        perform 16+2 self 2 no-return\n"
                        "  handler 18+2 self 2 tail\n"
                        "  continue 20+2 self 2 tail\n"
                        "  f 22+8 self 4 tail\n"
                        "    longjmp 24+2 self 2 no-return\n"
                        "    a 26+2 self 2 no-call\n"
                        "  c 30+2 self 2 tail\n");
    assert_int_equal(script_counts().strays, 0);
}

/* An exception leaves the fiber, after it was continued: its frames end, and what is around goes on. */
static void an_exception_ends_a_fiber(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 runstack\n"
                                   "12 call runstack+40 a\n"
                                   "14 call a+16 perform\n"
                                   "16 jmp perform+16 handler\n"
                                   "18 jmp handler+20 continue\n"
                                   "20 jmp continue+20 f indirect\n"
                                   "22 ret f+8 a+21\n"
                                   "24 call a+24 b\n"
                                   "26 ret b+8 runstack+100\n"
                                   "28 jmp runstack+110 c indirect\n"
                                   "30 ret c+8 main+21\n"
                                   "40 jmp main+40 main",
                                   NULL),
                        "main 0+40 self 20 no-call no-return\n"
                        "  runstack 10+6 self 2\n"
                        "    a 12+4 self 2 no-return\n"
                        "      perform 14+2 self 2 no-return\n"
                        "  handler 16+2 self 2 tail\n"
                        "  continue 18+2 self 2 tail\n"
                        "  f 20+8 self 4 tail\n"
                        "    a 22+4 self 2 no-call no-return\n"
                        "      b 24+2 self 2 no-return\n"
                        "  c 28+2 self 2 tail\n");
    assert_int_equal(script_counts().strays, 0);
}

/* Nothing is known of what is around the fiber; the stack of the handler is another one. */
static void begins_within_a_fiber(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - b\n"
                                   "10 call b+16 perform\n"
                                   "12 jmp perform+16 handler\n"
                                   "14 ret handler+8 main+21\n"
                                   "16 call main+24 continue\n"
                                   "18 jmp continue+20 f indirect\n"
                                   "20 ret f+8 b+21\n"
                                   "22 ret b+30 runstack+45\n"
                                   "24 jmp runstack+60 c indirect\n"
                                   "26 ret c+8 main+29\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "b 0+12 self 10 no-call no-return\n"
                        "  perform 10+2 self 2 no-return\n"
                        "main 12+18 self 6 no-call no-return\n"
                        "  handler 12+2 self 2 no-call\n"
                        "  continue 16+2 self 2\n"
                        "  f 18+6 self 4 tail\n"
                        "    b 20+2 self 2 no-call\n"
                        "  c 24+2 self 2 tail\n");
    assert_int_equal(script_counts().strays, 0);
}

/* What nothing handles is raised as an exception where it was performed. */
static void an_effect_that_nothing_handles(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "12 call a+16 perform\n"
                                   "14 jmp perform+16 refuse\n"
                                   "16 call refuse+8 longjmp\n"
                                   "18 ret longjmp+8 a+60\n"
                                   "20 ret a+80 main+21\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 20 no-call no-return\n"
                        "  a 10+10 self 4\n"
                        "    perform 12+2 self 2\n"
                        "    refuse 14+4 self 2 no-return tail\n"
                        "      longjmp 16+2 self 2 no-return\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_is_handled_on_the_stack_around),
        cmocka_unit_test(a_fiber_that_is_given_up_leaves_nothing),
        cmocka_unit_test(fibers_in_turns_build_no_staircase),
        cmocka_unit_test(a_fiber_is_continued_with_an_exception),
        cmocka_unit_test(an_exception_ends_a_fiber),
        cmocka_unit_test(begins_within_a_fiber),
        cmocka_unit_test(an_effect_that_nothing_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
