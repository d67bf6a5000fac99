/* Functions that were inlined: trees out of what the child tells, runs of instructions through them, and
 * the calls that the stack builder makes of these. */
#include "decoder/dwarf/inline_runs.h"
#include "stack_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE DEC_NO_INLINE

static struct dec_inline_tree *tree_of(const struct dec_inline_told *nodes, size_t nnodes,
                                       const struct dec_inline_span *spans, size_t nspans)
{
    static const char names[] = "x\0y\0z\0w\0";
    char *strings = malloc(sizeof(names));

    memcpy(strings, names, sizeof(names));
    return dec_inline_tree_new(nodes, nnodes, spans, nspans, strings, sizeof(names));
}

/* In "a" (0x2000): x, y inlined in x, z; x has a part in a.cold (0x6000). Names stand at 0, 2, 4, 6. */
static const struct dec_inline_told nodes[] = {{NONE, 0, 1, 11}, {0, 2, 1, 12}, {NONE, 4, 1, 13}};
static const struct dec_inline_span spans[] = {
    {0x200a, 0x2032, 0}, {0x6000, 0x6040, 0}, {0x2014, 0x201e, 1}, {0x203c, 0x2050, 2}};

static struct dec_inline_tree *tree;

static int set_up(void **state)
{
    (void)state;
    tree = tree_of(nodes, 3, spans, 4);
    return tree ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    dec_inline_tree_free(tree);
    return 0;
}

static void the_innermost_one_has_an_address(void **state)
{
    static const struct {
        uint64_t address;

        uint32_t node;
    } places[] = {{0x2009, NONE}, {0x200a, 0},    {0x2013, 0}, {0x2014, 1},    {0x201d, 1}, {0x201e, 0},
                  {0x2031, 0},    {0x2032, NONE}, {0x203c, 2}, {0x2050, NONE}, {0x6000, 0}, {0x6040, NONE}};

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        assert_int_equal(dec_inline_at(tree, places[i].address), places[i].node);
    assert_string_equal(tree->nodes[1].name, "y");
    assert_int_equal(tree->nodes[1].depth, 1);
    assert_int_equal(tree->nodes[2].line, 13);
    assert_int_equal(tree->nspans, 5);
}

static void what_makes_no_sense_is_no_tree(void **state)
{
    const struct dec_inline_told late = {0, 0, 0, 0}, ahead[] = {{1, 0, 0, 0}, {NONE, 0, 0, 0}},
                                 nameless = {NONE, 100, 0, 0}, fine = {NONE, 0, 0, 0};
    const struct dec_inline_span empty = {5, 5, 0}, of_none = {5, 6, 1};
    struct dec_inline_told deep[300];

    (void)state;
    for (uint32_t i = 0; i < 300; i++)
        deep[i] = (struct dec_inline_told){i ? i - 1 : NONE, 0, 0, 0};
    assert_null(tree_of(&late, 1, NULL, 0)); /* its own parent */
    assert_null(tree_of(ahead, 2, NULL, 0));
    assert_null(tree_of(&nameless, 1, NULL, 0));
    assert_null(tree_of(&fine, 1, &empty, 1));
    assert_null(tree_of(&fine, 1, &of_none, 1));
    assert_null(tree_of(deep, 300, NULL, 0));
    assert_null(dec_inline_tree_new(&fine, 1, NULL, 0, strdup("ab"), 2)); /* does not end */
}

/* Labels as letters, "." for none; y is inlined in x, w in z. */
static const char *smoothed(const char *labels, bool goes_on)
{
    static const struct dec_inline_told four[] = {
        {NONE, 0, 1, 1}, {0, 2, 1, 1}, {NONE, 4, 1, 1}, {2, 6, 1, 1}};
    static char text[64];
    struct dec_inline_tree *t = tree_of(four, 4, NULL, 0);
    uint32_t nodes_of[64];
    size_t n = strlen(labels);

    for (size_t i = 0; i < n; i++)
        nodes_of[i] = labels[i] == '.' ? NONE : (uint32_t)(strchr("xyzw", labels[i]) - "xyzw");
    assert_int_equal(dec_inline_smooth(t, nodes_of, n, goes_on), 0);
    for (size_t i = 0; i < n; i++)
        text[i] = nodes_of[i] == NONE ? '.' : "xyzw"[nodes_of[i]];
    text[n] = '\0';
    dec_inline_tree_free(t);
    return text;
}

static void mixed_instructions_are_sorted(void **state)
{
    (void)state;
    assert_string_equal(smoothed("..xx..", false), "..xx..");
    assert_string_equal(smoothed(".x.x.x.", false), ".xxxxx."); /* what stands between is its own */
    assert_string_equal(smoothed("xxyyxxzz", false), "xxyyxxzz");
    assert_string_equal(smoothed("xyxyx", false), "xyyyx"); /* at each level */
    assert_string_equal(smoothed("xx.zz", false), "xx.zz");
    assert_string_equal(smoothed("xzxxx.zzzz", false), "xxxxx.zzzz"); /* one of z came early */
    assert_string_equal(smoothed("zxxxx", false), "zxxxx");
    assert_string_equal(smoothed("xxxxzzx.", false), "xxxxzz.."); /* one of x came late */
    assert_string_equal(smoothed("xxxxzzx", false), "....zzx");   /* a call of x ends the run */
    assert_string_equal(smoothed("x.zzxx.", true), "x.zz...");    /* x goes on behind a call */
    assert_string_equal(smoothed("y.y.", true), "yyy.");
    assert_string_equal(smoothed("", false), "");
}

static unsigned length(void *ctx, uint64_t address)
{
    ++*(int *)ctx;
    return address == 0x2028 ? 0 : 5;
}

static void runs_are_remembered(void **state)
{
    struct dec_inline_pieces pieces;
    int asked = 0;

    (void)state;
    assert_int_equal(dec_inline_pieces_of(tree, 0x2000, 0x2024, NONE, length, &asked, &pieces), 0);
    assert_int_equal(asked, 8);
    assert_int_equal(dec_inline_pieces_of(tree, 0x2000, 0x2024, NONE, length, &asked, &pieces), 0);
    assert_int_equal(asked, 8);
    assert_int_equal(pieces.instructions, 8);
    assert_int_equal(pieces.n, 4);
    assert_int_equal(pieces.at[1].at, 2);
    assert_int_equal(pieces.at[1].node, 0);
    assert_int_equal(pieces.at[2].node, 1);
    assert_int_equal(pieces.at[3].at, 6);
    /* Of one node only: nothing to count. */
    assert_int_equal(dec_inline_pieces_of(tree, 0x2014, 0x201e, NONE, length, &asked, &pieces), 0);
    assert_int_equal(asked, 8);
    assert_int_equal(pieces.n, 1);
    assert_int_equal(pieces.at[0].node, 1);
    assert_int_equal(dec_inline_pieces_of(tree, 0x2051, 0x20ff, 0, length, &asked, &pieces), 0);
    assert_int_equal(pieces.at[0].node, NONE);
    /* An instruction of no length ends it. */
    assert_int_equal(dec_inline_pieces_of(tree, 0x201e, 0x2041, NONE, length, &asked, &pieces), 0);
    assert_int_equal(pieces.n, 1);
}

/* ---- the calls ---- */

static const char *run(const char *script)
{
    const struct script_options options = {.inlined = tree, .end = 1000};

    return script_run(script, &options);
}

static void a_run_through_all(void **state)
{
    (void)state;
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a\n"
                            "300 ret a+95 main+21\n"
                            "400 jmp main+21 main"),
                        "main 0+400 self 200 no-call no-return\n"
                        "  a 100+200 self 80\n"
                        "    x 120+80 self 60 inlined guess\n"
                        "      y 140+20 self 20 inlined guess\n"
                        "    z 220+40 self 40 inlined guess\n");
}

static void a_call_out_of_it_is_its_child(void **state)
{
    (void)state;
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a\n"
                            "170 call a+30 b\n"
                            "200 ret b+9 a+35\n"
                            "270 ret a+95 main+21\n"
                            "400 jmp main+21 main"),
                        "main 0+400 self 230 no-call no-return\n"
                        "  a 100+170 self 52\n"
                        "    x 120+96 self 46 inlined guess\n"
                        "      y 140+20 self 20 inlined guess\n"
                        "      b 170+30 self 30\n"
                        "    z 226+22 self 22 inlined guess\n");
}

static void each_turn_of_a_loop_is_a_call(void **state)
{
    (void)state;
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a+55\n"
                            "100 jmp a+55 a+55\n"
                            "160 jcc a+80 a+55\n"
                            "220 jcc a+80 a+55\n"
                            "280 ret a+80 main+21"),
                        "main 0+280 self 100 no-call no-return\n"
                        "  a 100+180 self 60\n"
                        "    z 110+40 self 40 inlined guess\n"
                        "    z 170+40 self 40 inlined guess\n"
                        "    z 230+40 self 40 inlined guess\n");
}

static void it_ends_with_its_frame(void **state)
{
    (void)state;
    /* a tail call, longjmp, an exception's landing pad, the end of the segment */
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a\n"
                            "130 jmp a+10 c\n"
                            "150 ret c+9 main+21\n"
                            "160 call main+21 a\n"
                            "190 call a+20 b\n"
                            "200 call b+8 longjmp\n"
                            "210 jmp longjmp+8 main+40 indirect\n"
                            "220 call main+45 a\n"
                            "250 call a+20 b\n"
                            "260 gap - -"),
                        "main 0+260 self 120 no-call no-return\n"
                        "  a 100+30 self 20\n"
                        "    x 120+10 self 10 inlined guess\n"
                        "  c 130+20 self 20 tail\n"
                        "  a 160+50 self 12 no-return\n"
                        "    x 172+38 self 12 no-return inlined guess\n"
                        "      y 184+26 self 6 no-return inlined guess\n"
                        "        b 190+20 self 10 no-return\n"
                        "          longjmp 200+10 self 10 no-return\n"
                        "  a 220+40 self 12 no-return\n"
                        "    x 232+28 self 12 no-return inlined guess\n"
                        "      y 244+16 self 6 no-return inlined guess\n"
                        "        b 250+10 self 10 no-return\n");
}

static void a_segment_may_begin_in_it(void **state)
{
    (void)state;
    assert_string_equal(run("100 enable - a+25\n"
                            "150 call a+30 b\n"
                            "160 ret b+9 a+35\n"
                            "190 ret a+95 main+21\n"
                            "200 jmp main+21 main"),
                        "main 100+100 self 10 no-call no-return\n"
                        "  a 100+90 self 15 no-call\n"
                        "    x 100+66 self 31 no-call inlined guess\n"
                        "      y 100+25 self 25 no-call inlined guess\n"
                        "      b 150+10 self 10\n"
                        "    z 171+9 self 9 inlined guess\n");
    /* Its caller turns up later, and had called out of what is inlined in it. */
    assert_string_equal(run("100 enable - b\n"
                            "150 ret b+9 a+30\n"
                            "180 jmp a+40 a+90\n"
                            "190 ret a+95 main+21\n"
                            "200 jmp main+21 main"),
                        "main 100+100 self 10 no-call no-return\n"
                        "  a 100+90 self 10 no-call\n"
                        "    x 100+80 self 30 no-call inlined\n"
                        "      y 100+50 self 0 no-call inlined\n"
                        "        b 100+50 self 50 no-call\n");
}

static void the_cold_part_is_the_same_function(void **state)
{
    (void)state;
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a\n"
                            "130 jcc a+15 a.cold\n"
                            "160 jmp a.cold+25 a+45\n"
                            "170 ret a+95 main+21"),
                        "main 0+170 self 100 no-call no-return\n"
                        "  a 100+70 self 21\n"
                        "    x 115+45 self 45 inlined guess\n"
                        "    z 162+4 self 4 inlined guess\n");
}

static void interrupts_and_system_calls_are_within(void **state)
{
    (void)state;
    assert_string_equal(run("0 enable - main\n"
                            "100 call main+16 a\n"
                            "120 disable a+15 - async\n"
                            "150 enable - a+15 resumed\n"
                            "160 syscall a+25 -\n"
                            "160 disable a+25 -\n"
                            "180 enable - a+27 resumed\n"
                            "190 ret a+95 main+21"),
                        "main 0+190 self 100 no-call no-return\n"
                        "  a 100+90 self 18\n"
                        "    x 113+70 self 13 inlined guess\n"
                        "      [interrupt] 120+30 self 30\n"
                        "      y 153+27 self 7 inlined guess\n"
                        "        [syscall] 160+20 self 20\n"
                        "    z 185+2 self 2 inlined guess\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_innermost_one_has_an_address, set_up, tear_down),
        cmocka_unit_test(what_makes_no_sense_is_no_tree),
        cmocka_unit_test(mixed_instructions_are_sorted),
        cmocka_unit_test_setup_teardown(runs_are_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_through_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_out_of_it_is_its_child, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_turn_of_a_loop_is_a_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_ends_with_its_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_segment_may_begin_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_cold_part_is_the_same_function, set_up, tear_down),
        cmocka_unit_test_setup_teardown(interrupts_and_system_calls_are_within, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
