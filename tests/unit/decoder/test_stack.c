/* The stack builder: what plain code does. */
#include "stack_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void calls_nest(void **state)
{
    (void)state;
    assert_string_equal(script_run("100 enable - main\n"
                                   "110 call main+16 a\n"
                                   "120 call a+8 b\n"
                                   "150 ret b+9 a+13\n"
                                   "160 call a+20 b\n"
                                   "165 ret b+9 a+25\n"
                                   "180 ret a+30 main+21\n"
                                   "200 jmp main+21 main+16",
                                   NULL),
                        "main 100+100 self 30 no-call no-return\n"
                        "  a 110+70 self 35\n"
                        "    b 120+30 self 30\n"
                        "    b 160+5 self 5\n");
}

static void recursion_is_marked(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - a\n"
                                   "10 call a+16 a\n"
                                   "20 call a+16 a\n"
                                   "30 ret a+40 a+21\n"
                                   "40 ret a+40 a+21\n"
                                   "50 jmp a+21 a",
                                   NULL),
                        "a 0+50 self 20 no-call no-return\n"
                        "  a 10+30 self 20 again\n"
                        "    a 20+10 self 10 again\n");
}

/* Two call sites within one instruction's length of each other: only the exact length tells their returns
 * apart. */
static void neighbouring_call_sites(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - a\n"
                                   "10 call a+16 a\n"
                                   "20 call a+21 a\n"
                                   "30 ret a+40 a+26\n"
                                   "40 ret a+40 a+21\n"
                                   "50 jmp a+21 a",
                                   NULL),
                        "a 0+50 self 20 no-call no-return\n"
                        "  a 10+30 self 20 again\n"
                        "    a 20+10 self 10 again\n");
}

static void the_length_is_asked_for(void **state)
{
    struct script_options options = {.no_length = true};

    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 ret a+9 main+21\n"
                                   "30 jmp main+30 main",
                                   &options),
                        "main 0+30 self 20 no-call no-return\n"
                        "  a 10+10 self 10\n");
}

static void call_to_the_next_instruction_is_no_call(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 main+21 zero\n"
                                   "15 call main+30 main+35\n"
                                   "20 call main+40 a\n"
                                   "30 ret a+9 main+45\n"
                                   "40 jmp main+50 main",
                                   NULL),
                        "main 0+40 self 30 no-call no-return\n"
                        "  a 20+10 self 10\n");
}

/* b is entered by a jump: it is called by main in place of a, which has ended. */
static void tail_call_replaces_the_frame(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 jmp a+30 b\n"
                                   "30 call b+8 c\n"
                                   "40 ret c+8 b+13\n"
                                   "50 jcc b+20 d\n"
                                   "60 ret d+8 main+21\n"
                                   "70 jmp main+30 main",
                                   NULL),
                        "main 0+70 self 20 no-call no-return\n"
                        "  a 10+10 self 10\n"
                        "  b 20+30 self 20 tail\n"
                        "    c 30+10 self 10\n"
                        "  d 50+10 self 10 tail\n");
}

/* Two functions that call each other by jumps for ever must not build a staircase. */
static void tail_recursion_stays_flat(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 jmp a+30 b\n"
                                   "30 jmp b+30 a\n"
                                   "40 jmp a+30 b\n"
                                   "50 ret b+8 main+21",
                                   NULL),
                        "main 0+50 self 10 no-call no-return\n"
                        "  a 10+10 self 10\n"
                        "  b 20+10 self 10 tail\n"
                        "  a 30+10 self 10 tail\n"
                        "  b 40+10 self 10 tail\n");
}

/* Loops to the function's own entry, branches into its split-off part and back, into the middle of others: no
 * calls. */
static void jumps_that_are_no_calls(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 jmp a+30 a\n"
                                   "30 jcc a+10 a.cold\n"
                                   "40 jmp a.cold+9 a+20\n"
                                   "50 jmp a+22 b+8\n"
                                   "60 ret b+20 main+21",
                                   NULL),
                        "main 0+60 self 10 no-call no-return\n"
                        "  a 10+50 self 50\n");
}

static void plt_entry_and_lazy_binding(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 f@plt\n"
                                   "12 jmp f@plt resolve\n"
                                   "20 call resolve+8 b\n"
                                   "30 ret b+8 resolve+13\n"
                                   "40 jmp resolve+30 f indirect\n"
                                   "60 ret f+8 main+21\n"
                                   "70 call main+16 f@plt\n"
                                   "72 jmp f@plt f indirect\n"
                                   "80 ret f+8 main+21",
                                   NULL),
                        "main 0+80 self 20 no-call no-return\n"
                        "  f@plt 10+2 self 2\n"
                        "  resolve 12+28 self 18 tail\n"
                        "    b 20+10 self 10\n"
                        "  f 40+20 self 20 tail\n"
                        "  f@plt 70+2 self 2\n"
                        "  f 72+8 self 8 tail\n");
}

static void times_between_points_are_marked(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a guess\n"
                                   "20 call a+8 b\n"
                                   "30 ret b+8 a+13\n"
                                   "40 ret a+8 main+21\n"
                                   "50 call main+16 a\n"
                                   "60 ret a+8 main+21 guess\n"
                                   "70 jmp main+8 main",
                                   NULL),
                        "main 0+70 self 30 no-call no-return\n"
                        "  a 10+30 self 20 guess\n"
                        "    b 20+10 self 10\n"
                        "  a 50+10 self 10 guess\n");
}

static void deep_recursion(void **state)
{
    enum { DEPTH = 500 };
    char script[64 * DEPTH] = "0 enable - main\n1 call main+16 a\n", last[64];
    size_t n = strlen(script);
    const char *tree;

    (void)state;
    for (int i = 2; i < DEPTH; i++)
        n += (size_t)snprintf(script + n, sizeof(script) - n, "%d call a+16 a\n", i);
    for (int i = DEPTH; i < 2 * DEPTH - 2; i++)
        n += (size_t)snprintf(script + n, sizeof(script) - n, "%d ret a+40 a+21\n", i);
    snprintf(script + n, sizeof(script) - n, "%d ret a+40 main+21", 2 * DEPTH);
    tree = script_run(script, NULL);
    snprintf(last, sizeof(last), "  a %d+1 self 1 again\n", DEPTH - 1);
    assert_true(strlen(tree) > strlen(last));
    assert_string_equal(tree + strlen(tree) - strlen(last), last);
    assert_int_equal(script_counts().calls, DEPTH);
    assert_int_equal(script_counts().unwound, 0);
}

static void nothing_at_all(void **state)
{
    (void)state;
    assert_string_equal(script_run("", NULL), "");
    assert_string_equal(script_run("10 gap\n20 gap", NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_nest),
        cmocka_unit_test(recursion_is_marked),
        cmocka_unit_test(neighbouring_call_sites),
        cmocka_unit_test(the_length_is_asked_for),
        cmocka_unit_test(call_to_the_next_instruction_is_no_call),
        cmocka_unit_test(tail_call_replaces_the_frame),
        cmocka_unit_test(tail_recursion_stays_flat),
        cmocka_unit_test(jumps_that_are_no_calls),
        cmocka_unit_test(plt_entry_and_lazy_binding),
        cmocka_unit_test(times_between_points_are_marked),
        cmocka_unit_test(deep_recursion),
        cmocka_unit_test(nothing_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
