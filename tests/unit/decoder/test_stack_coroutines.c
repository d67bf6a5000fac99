/* The stack builder: programs that have several stacks in one thread. */
#include "stack_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* main and a coroutine (b called by a, the coroutine's first function) hand over to each other three times.
 */
static void coroutine_goes_on_where_it_was(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 swap\n"
                                   "12 ret swap+40 a\n"
                                   "14 call a+16 b\n"
                                   "16 call b+16 swap\n"
                                   "20 ret swap+40 main+21\n"
                                   "30 call main+32 swap\n"
                                   "32 ret swap+40 b+21\n"
                                   "40 ret b+30 a+21\n"
                                   "42 call a+32 swap\n"
                                   "44 ret swap+40 main+37\n"
                                   "50 jmp main+40 main",
                                   NULL),
                        "main 0+50 self 26 no-call no-return\n"
                        "  swap 10+10 self 2\n"
                        "    a 12+8 self 2 no-return tail\n"
                        "      b 14+6 self 2 no-return\n"
                        "        swap 16+4 self 4 no-return again\n"
                        "  swap 30+14 self 2\n"
                        "    a 32+12 self 2 no-call no-return\n"
                        "      b 32+8 self 8 no-call\n"
                        "      swap 42+2 self 2 no-return again\n");
    assert_int_equal(script_counts().switches, 2);
}

/* Coroutines a and b wait in the same call of c, as goroutines do in gopark, and b goes on first though a has
 * waited longer: where c returns to tells which of them it is. */
static void coroutines_that_wait_in_one_place(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 swap\n"
                                   "12 ret swap+40 a\n"
                                   "14 call a+16 c\n"
                                   "16 call c+16 swap\n"
                                   "20 ret swap+40 main+21\n"
                                   "30 call main+32 swap\n"
                                   "32 ret swap+40 b\n"
                                   "34 call b+16 d\n"
                                   "35 call d+16 c\n"
                                   "36 call c+16 swap\n"
                                   "40 ret swap+40 main+37\n"
                                   "50 call main+48 swap\n"
                                   "52 ret swap+40 c+21\n"
                                   "60 ret c+30 d+21\n"
                                   "62 call d+32 f\n"
                                   "64 ret f+30 d+37\n"
                                   "65 ret d+40 b+21\n"
                                   "66 call b+48 swap\n"
                                   "70 ret swap+40 main+53\n"
                                   "80 call main+64 swap\n"
                                   "82 ret swap+40 c+21\n"
                                   "84 ret c+30 a+21\n"
                                   "86 call a+48 swap\n"
                                   "90 ret swap+40 main+69\n"
                                   "100 jmp main+80 main",
                                   NULL),
                        "main 0+100 self 50 no-call no-return\n"
                        "  swap 10+10 self 2\n"
                        "    a 12+8 self 2 no-return tail\n"
                        "      c 14+6 self 2 no-return\n"
                        "        swap 16+4 self 4 no-return again\n"
                        "  swap 30+10 self 2\n"
                        "    b 32+8 self 2 no-return tail\n"
                        "      d 34+6 self 1 no-return\n"
                        "        c 35+5 self 1 no-return\n"
                        "          swap 36+4 self 4 no-return again\n"
                        "  swap 50+20 self 2\n"
                        "    b 52+18 self 1 no-call no-return\n"
                        "      d 52+13 self 3 no-call\n"
                        "        c 52+8 self 8 no-call\n"
                        "        f 62+2 self 2\n"
                        "      swap 66+4 self 4 no-return again\n"
                        "  swap 80+10 self 2\n"
                        "    a 82+8 self 2 no-call no-return\n"
                        "      c 82+2 self 2 no-call\n"
                        "      swap 86+4 self 4 no-return again\n");
    assert_int_equal(script_counts().strays, 0);
}

/* A fiber whose stack is switched to by jumps: `b` begins on it by a tail call, calls `c` that jumps back. */
static void fiber_switched_by_jumps(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 jmp a+8 b indirect\n"
                                   "30 call b+16 c\n"
                                   "40 jmp c+8 main+21 indirect\n"
                                   "50 call main+40 d\n"
                                   "60 jmp d+8 b+21 indirect\n"
                                   "70 call b+24 c\n"
                                   "80 jmp c+8 main+45 indirect\n"
                                   "90 jmp main+60 main",
                                   NULL),
                        "main 0+90 self 30 no-call no-return\n"
                        "  a 10+10 self 10\n"
                        "  b 20+20 self 10 tail\n"
                        "    c 30+10 self 10 no-return\n"
                        "  d 50+30 self 10\n"
                        "    b 60+20 self 10 no-call no-return\n"
                        "      c 70+10 self 10 no-return\n");
    assert_int_equal(script_counts().strays, 0);
    assert_int_equal(script_counts().switches, 1);
}

/* A fiber goes on behind a call that it will never return from: a goroutine lost its turn in `c`, called to
 * grow its stack, and begins `a` anew. */
static void fiber_gives_up_a_call(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 swap\n"
                                   "20 jmp swap+8 b indirect\n"
                                   "30 call b+16 a\n"
                                   "40 call a+16 c\n"
                                   "50 call c+16 f\n"
                                   "60 jmp f+8 main+21 indirect\n"
                                   "70 call main+40 d\n"
                                   "80 jmp d+8 a+21 indirect\n"
                                   "84 jmp a+21 a\n"
                                   "90 ret a+30 b+21\n"
                                   "100 jmp b+40 main+45 indirect\n"
                                   "110 jmp main+60 main",
                                   NULL),
                        "main 0+110 self 30 no-call no-return\n"
                        "  swap 10+10 self 10\n"
                        "  b 20+40 self 10 tail\n"
                        "    a 30+30 self 10 no-return\n"
                        "      c 40+20 self 10 no-return\n"
                        "        f 50+10 self 10 no-return\n"
                        "  d 70+30 self 10\n"
                        "    b 80+20 self 10 no-call no-return\n"
                        "      a 80+10 self 10 no-call\n");
    assert_int_equal(script_counts().strays, 0);
    assert_int_equal(script_counts().switches, 1);
}

/* A fiber is gone back to in order to throw there: `c` is jumped to on its stack, and the landing pad is in
 * its frame `b`. */
static void exception_on_another_stack(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 jmp a+8 b indirect\n"
                                   "30 call b+16 c\n"
                                   "40 jmp c+8 main+21 indirect\n"
                                   "50 call main+40 d\n"
                                   "60 jmp d+8 c indirect\n"
                                   "70 call c+16 f\n"
                                   "80 call f+16 longjmp\n"
                                   "90 jmp longjmp+8 b+40 indirect\n"
                                   "100 jmp b+48 main+45 indirect\n"
                                   "110 jmp main+60 main",
                                   NULL),
                        "main 0+110 self 30 no-call no-return\n"
                        "  a 10+10 self 10\n"
                        "  b 20+20 self 10 tail\n"
                        "    c 30+10 self 10 no-return\n"
                        "  d 50+10 self 10\n"
                        "  c 60+40 self 10 tail\n"
                        "    f 70+20 self 10 no-return\n"
                        "      longjmp 80+10 self 10 no-return\n"
                        "    b 90+10 self 10 no-call no-return\n");
    assert_int_equal(script_counts().strays, 0);
}

/* Two coroutines that hand over to each other must not build a staircase. */
static void coroutines_among_themselves(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 swap\n"
                                   "12 ret swap+40 a\n"
                                   "14 call a+16 swap\n"
                                   "16 ret swap+40 b\n"
                                   "18 call b+16 swap\n"
                                   "20 ret swap+40 a+21\n"
                                   "22 call a+16 swap\n"
                                   "24 ret swap+40 b+21\n"
                                   "26 call b+16 swap\n"
                                   "28 ret swap+40 main+21\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 12 no-call no-return\n"
                        "  swap 10+18 self 2\n"
                        "    a 12+16 self 4 no-return tail\n"
                        "      swap 14+6 self 2 again\n"
                        "        b 16+4 self 2 no-return tail\n"
                        "          swap 18+2 self 2 no-return again\n"
                        "      swap 22+6 self 2 no-return again\n"
                        "        b 24+4 self 2 no-call no-return\n"
                        "          swap 26+2 self 2 no-return again\n");
}

/* A stack that was left before the recording began. */
static void unknown_stack_keeps_what_was_seen_of_it(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 swap\n"
                                   "12 ret swap+40 b+21\n"
                                   "20 ret b+30 a+21\n"
                                   "22 call a+32 swap\n"
                                   "24 ret swap+40 main+21\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 16 no-call no-return\n"
                        "  swap 10+14 self 2\n"
                        "    a 12+12 self 2 no-call no-return\n"
                        "      b 12+8 self 8 no-call\n"
                        "      swap 22+2 self 2 no-return again\n");
    assert_int_equal(script_counts().strays, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coroutine_goes_on_where_it_was),
        cmocka_unit_test(coroutines_that_wait_in_one_place),
        cmocka_unit_test(fiber_switched_by_jumps),
        cmocka_unit_test(fiber_gives_up_a_call),
        cmocka_unit_test(exception_on_another_stack),
        cmocka_unit_test(coroutines_among_themselves),
        cmocka_unit_test(unknown_stack_keeps_what_was_seen_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
