/* The stack builder: where calls and returns do not pair. */
#include "stack_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void begins_deep(void **state)
{
    (void)state;
    assert_string_equal(script_run("100 enable - c+40\n"
                                   "110 call c+48 d\n"
                                   "120 ret d+8 c+53\n"
                                   "130 ret c+60 b+21\n"
                                   "140 call b+32 d\n"
                                   "150 ret d+8 b+37\n"
                                   "160 ret b+60 a+21\n"
                                   "170 ret a+60 main+21\n"
                                   "180 call main+40 d\n"
                                   "190 ret d+8 main+45",
                                   NULL),
                        "main 100+90 self 10 no-call no-return\n"
                        "  a 100+70 self 10 no-call\n"
                        "    b 100+60 self 20 no-call\n"
                        "      c 100+30 self 20 no-call\n"
                        "        d 110+10 self 10\n"
                        "      d 140+10 self 10\n"
                        "  d 180+10 self 10\n");
    assert_int_equal(script_counts().reconstructed, 4);
}

/* `c` ends in a call, so that what it called returns to the first byte of `d`: by c, unless no call stands
 * there. */
static void caller_is_where_the_call_is(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - b+40\n"
                                   "10 ret b+48 d\n"
                                   "20 call d+16 a\n"
                                   "30 ret a+8 d+21\n"
                                   "40 ret d+40 main+21\n"
                                   "50 jmp main+40 main",
                                   NULL),
                        "main 0+50 self 10 no-call no-return\n"
                        "  c 0+40 self 20 no-call\n"
                        "    b 0+10 self 10 no-call\n"
                        "    a 20+10 self 10\n");
    assert_string_equal(script_run("0 enable - handler+40\n"
                                   "10 ret handler+48 restorer\n"
                                   "20 jmp restorer+8 restorer",
                                   NULL),
                        "restorer 0+20 self 10 no-call no-return\n"
                        "  handler 0+10 self 10 no-call\n");
}

static void begins_before_a_tail_call(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - a+40\n"
                                   "10 jmp a+48 b\n"
                                   "20 ret b+8 main+21\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 10 no-call no-return\n"
                        "  a 0+10 self 10 no-call\n"
                        "  b 10+10 self 10 tail\n");
}

/* Nothing is matched across a loss: the return of `a` finds no call in the second segment. */
static void gap_ends_a_segment(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 gap\n"
                                   "50 enable - a+30\n"
                                   "60 ret a+40 main+21\n"
                                   "70 jmp main+30 main",
                                   NULL),
                        "main 0+20 self 10 no-call no-return\n"
                        "  a 10+10 self 10 no-return\n"
                        "--\n"
                        "main 50+20 self 10 no-call no-return\n"
                        "  a 50+10 self 10 no-call\n");
}

static void off_cpu_across_a_gap(void **state)
{
    struct dec_offcpu off[] = {{12, 14, 0, 0}, {25, 30, 0, 9}, {55, 65, 0, 0}};
    struct script_options options = {.offcpu = off, .noffcpu = 3};

    (void)state;
    script_run("0 enable - main\n"
               "10 call main+16 a\n"
               "20 gap\n"
               "50 enable - b+30\n"
               "70 ret b+40 main+21\n"
               "80 jmp main+30 main",
               &options);
    assert_int_equal(off[0].call, 2); /* a */
    assert_int_equal(off[1].call, 0); /* nobody knows */
    assert_int_equal(off[2].call, 4); /* b; main, its caller, stands before it */
}

static void longjmp_past_three_frames(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 b\n"
                                   "30 call b+16 longjmp\n"
                                   "40 jmp longjmp+20 main+40 indirect\n"
                                   "50 call main+48 c\n"
                                   "60 ret c+8 main+53",
                                   NULL),
                        "main 0+60 self 20 no-call no-return\n"
                        "  a 10+30 self 10 no-return\n"
                        "    b 20+20 self 10 no-return\n"
                        "      longjmp 30+10 self 10 no-return\n"
                        "  c 50+10 self 10\n");
}

/* The unwinder "returns" to a landing pad, which the compiler may have put into the function's cold part. */
static void exception_lands_in_a_caller(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 b\n"
                                   "30 call b+16 c\n"
                                   "40 call c+16 longjmp\n"
                                   "50 ret longjmp+20 a.cold+4\n"
                                   "60 jmp a.cold+8 a+40\n"
                                   "70 ret a+48 main+21",
                                   NULL),
                        "main 0+70 self 10 no-call no-return\n"
                        "  a 10+60 self 30\n"
                        "    b 20+30 self 10 no-return\n"
                        "      c 30+20 self 10 no-return\n"
                        "        longjmp 40+10 self 10 no-return\n");
}

static void landing_pad_right_behind_the_call_that_threw(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 b\n"
                                   "30 call b+16 longjmp\n"
                                   "40 ret longjmp+20 a+21\n"
                                   "50 ret a+48 main+21",
                                   NULL),
                        "main 0+50 self 10 no-call no-return\n"
                        "  a 10+40 self 20\n"
                        "    b 20+20 self 10 no-return\n"
                        "      longjmp 30+10 self 10 no-return\n");
}

/* libgcc jumps to the landing pad; __cxa_rethrow is entered through the PLT. */
static void landing_pad_right_behind_the_call_that_rethrew(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 f@plt\n"
                                   "30 jmp f@plt+4 f indirect\n"
                                   "40 call f+16 longjmp\n"
                                   "50 jmp longjmp+20 a+21 indirect\n"
                                   "60 ret a+48 main+21",
                                   NULL),
                        "main 0+60 self 10 no-call no-return\n"
                        "  a 10+50 self 20\n"
                        "    f@plt 20+10 self 10\n"
                        "    f 30+20 self 10 no-return tail\n"
                        "      longjmp 40+10 self 10 no-return\n");
}

/* Each of the recursive calls has something to clean up, at the same place; the landing pad may stand right
 * behind the call that resumes, or begin the cold part. */
static void exception_resumes_in_the_next_of_recursive_calls(void **state)
{
    static const char *const pads[] = {"a+40", "a+85", "a.cold", "a.cold+4"};
    static const char *const ways[] = {"jmp", "ret"};
    char script[1024];

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        const char *pad = pads[i / 2], *way = ways[i % 2];

        snprintf(script, sizeof(script),
                 "0 enable - main\n"
                 "10 call main+16 a\n"
                 "20 call a+16 a\n"
                 "30 call a+24 longjmp\n"
                 "40 %s longjmp+20 %s indirect\n"
                 "50 call a+80 resume\n"
                 "60 %s resume+20 %s indirect\n"
                 "70 call a+80 resume\n"
                 "80 %s resume+20 main+40 indirect\n"
                 "90 call main+48 c\n"
                 "95 ret c+8 main+53",
                 way, pad, way, pad, way);
        assert_string_equal(script_run(script, NULL), "main 0+95 self 20 no-call no-return\n"
                                                      "  a 10+70 self 20 no-return\n"
                                                      "    a 20+40 self 20 no-return again\n"
                                                      "      longjmp 30+10 self 10 no-return\n"
                                                      "      resume 50+10 self 10 no-return\n"
                                                      "    resume 70+10 self 10 no-return\n"
                                                      "  c 90+5 self 5\n");
    }
}

static void exception_lands_in_a_caller_that_was_not_seen(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - b+8\n"
                                   "10 call b+16 longjmp\n"
                                   "20 ret longjmp+20 a+40\n"
                                   "30 ret a+48 main+21\n"
                                   "40 jmp main+30 main",
                                   NULL),
                        "main 0+40 self 10 no-call no-return\n"
                        "  a 0+30 self 10 no-call\n"
                        "    b 0+20 self 10 no-call no-return\n"
                        "      longjmp 10+10 self 10 no-return\n");
}

/* A return that skips frames which never returned themselves. */
static void return_past_frames(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 b\n"
                                   "30 call b+16 c\n"
                                   "40 ret c+8 main+21",
                                   NULL),
                        "main 0+40 self 10 no-call no-return\n"
                        "  a 10+30 self 10\n"
                        "    b 20+20 self 10 no-return\n"
                        "      c 30+10 self 10 no-return\n");
    assert_int_equal(script_counts().unwound, 2);
}

static void retpoline_is_a_call(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 thunk\n"
                                   "11 call thunk+0 thunk+12\n"
                                   "12 ret thunk+16 a\n"
                                   "20 jmp a+16 return_thunk\n"
                                   "22 ret return_thunk main+21\n"
                                   "30 call main+32 thunk\n"
                                   "31 jmp thunk b indirect\n"
                                   "40 ret b+8 main+37",
                                   NULL),
                        "main 0+40 self 18 no-call no-return\n"
                        "  a 10+12 self 12\n"
                        "  b 30+10 self 10\n");
}

/* Inlined: a call over the capture loop, which returns into the function; the call around it says
 * where that returns to. */
static void retpoline_in_line(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 jmp main+16 main+40\n"
                                   "11 call main+40 main+20\n"
                                   "12 call main+20 main+33\n"
                                   "13 ret main+37 a\n"
                                   "20 ret a+8 main+45\n"
                                   "30 call main+60 b\n"
                                   "31 call b+20 b+33\n"
                                   "32 ret b+37 c\n"
                                   "40 ret c+8 main+65",
                                   NULL),
                        "main 0+40 self 23 no-call no-return\n"
                        "  a 13+7 self 7\n"
                        "  b 30+2 self 2\n"
                        "  c 32+8 self 8 tail\n");
    assert_int_equal(script_counts().switches, 0);
}

/* A subroutine within a function is no function; what it calls is called by the function. */
static void calls_within_a_function(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "12 call a+16 a+80\n"
                                   "14 call a+84 b\n"
                                   "16 ret b+8 a+89\n"
                                   "18 ret a+90 a+21\n"
                                   "20 ret a+30 main+21",
                                   NULL),
                        "main 0+20 self 10 no-call no-return\n"
                        "  a 10+10 self 8\n"
                        "    b 14+2 self 2\n");
}

/* The kernel fills the return stack buffer with calls that never return. */
static void return_stack_filling_is_no_recursion(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "12 call a+16 a+22\n"
                                   "13 call a+22 a+28\n"
                                   "14 jcc a+30 a+16\n"
                                   "15 call a+16 a+22\n"
                                   "16 call a+22 a+28\n"
                                   "18 jmp a+40 b\n"
                                   "20 ret b+30 main+21",
                                   NULL),
                        "main 0+20 self 10 no-call no-return\n"
                        "  a 10+8 self 8\n"
                        "  b 18+2 self 2 tail\n");
    assert_int_equal(script_counts().unwound, 0);
}

/* The first thing that is seen of a function is that it leaves through a thunk. */
static void begins_before_a_retpoline(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - a+40\n"
                                   "10 jmp a+48 thunk\n"
                                   "11 call thunk+0 thunk+12\n"
                                   "12 ret thunk+16 b\n"
                                   "20 ret b+8 main+21\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 10 no-call no-return\n"
                        "  a 0+10 self 10 no-call\n"
                        "  b 10+10 self 10 tail\n");
}

static void transaction_abort_is_a_jump(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 call a+16 b\n"
                                   "30 async b+8 a+40 abort indirect\n"
                                   "40 ret a+48 main+21",
                                   NULL),
                        "main 0+40 self 10 no-call no-return\n"
                        "  a 10+30 self 20\n"
                        "    b 20+10 self 10 no-return\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_deep),
        cmocka_unit_test(caller_is_where_the_call_is),
        cmocka_unit_test(begins_before_a_tail_call),
        cmocka_unit_test(gap_ends_a_segment),
        cmocka_unit_test(off_cpu_across_a_gap),
        cmocka_unit_test(longjmp_past_three_frames),
        cmocka_unit_test(exception_lands_in_a_caller),
        cmocka_unit_test(landing_pad_right_behind_the_call_that_threw),
        cmocka_unit_test(landing_pad_right_behind_the_call_that_rethrew),
        cmocka_unit_test(exception_resumes_in_the_next_of_recursive_calls),
        cmocka_unit_test(exception_lands_in_a_caller_that_was_not_seen),
        cmocka_unit_test(return_past_frames),
        cmocka_unit_test(retpoline_is_a_call),
        cmocka_unit_test(retpoline_in_line),
        cmocka_unit_test(calls_within_a_function),
        cmocka_unit_test(return_stack_filling_is_no_recursion),
        cmocka_unit_test(begins_before_a_retpoline),
        cmocka_unit_test(transaction_abort_is_a_jump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
