/* Code that is missing and traces that are cut: where decoding goes on, and that the fast walk does so
 * itself. script_run() compares it with libipt's. */
#include "flow_script.h"

enum { CODE = 0x1000, NOWHERE = 0x9000 };

/* 1000 jne 1000; 1002 jmp *rax; 1004 call *rax; 1006 jne 1000; 1008 jmp 9000; 100d call 9000; 1012 ret */
static void lay_out(struct script *s)
{
    script_code(s, CODE, 0x75, 0xfe, 0xff, 0xe0, 0xff, 0xd0, 0x75, 0xf8, 0xe9, 0xf3, 0x7f, 0, 0, 0xe8, 0xee,
                0x7f, 0, 0, 0xc3);
}

static void put_pip(struct script *s)
{
    put(s, (struct pt_packet){.type = ppt_pip, .payload.pip.cr3 = 0x12000});
}

/* A PSB+ while tracing is off, as a CPU sends it. */
static void put_psb_off(struct script *s, uint64_t tsc)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put(s, (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = 20});
    put_plain(s, ppt_psbend);
}

/* Runs it, and the fast walk is not left. */
static void expect(struct script *s, const char *text)
{
    script_expect(s, text);
    assert_int_equal(s->slow, 0);
}

static void a_jump_finds_the_place_again(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, CODE, 500);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, NOWHERE);
    put_tsc(s, 600);
    put_tnt(s, "TTTTTNNN");
    put_pip(s);
    put_ip(s, ppt_tip, NOWHERE + 8); /* the same gap */
    put_tnt(s, "N");
    put_tsc(s, 700);
    put_ip(s, ppt_tip, 0x1006);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, CODE);
    expect(s, "on 0 1000\n"
              "jcc 1000 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "gap 2\n"
              "on 0 1006\n"
              "jcc 1006 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 1000 ind\n");
    assert_int_equal(s->counts.errors, 1);
    assert_non_null(strstr(s->detail, "nothing known to be mapped at 0x9000"));
    assert_true(s->events.at[4].time <= 600);
    assert_int_equal(s->events.at[5].time, 700);
}

static void an_interrupt_finds_the_place_again(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, 0x1008, 500);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, NOWHERE + 4);
    put_tsc(s, 600);
    put_pip(s);
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, NOWHERE);
    put_ip(s, ppt_fup, NOWHERE); /* there at once: nothing ran that is missing */
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "T");
    expect(s, "on 0 1008\n"
              "jmp 1008 9000\n"
              "gap 2\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "async 9000 1000\n"
              "jcc 1000 1000\n");
}

static void tracing_ends_and_begins_in_missing_code(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, 0x1002, 500);
    put_ip(s, ppt_tip, NOWHERE);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, NOWHERE + 2);
    put_ip(s, ppt_tip_pgd, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, NOWHERE);
    put_tnt(s, "T");
    put_ip(s, ppt_tip_pgd, 0);
    put_psb_off(s, 600);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, NOWHERE);
    put_tnt(s, "TT");
    put_psb(s, NOWHERE + 2, 700);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    expect(s, "on 0 1002\n"
              "jmp 1002 9000 ind\n"
              "gap 2\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "gap 2\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 0 ind\n"
              "off 1002 0\n");
}

/* Compressed, to a call that was not seen: until the next PSB it may have been there. */
static void returns_to_missing_code(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, 0x1004, 500);
    put_ip(s, ppt_tip, NOWHERE);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x1012);
    put_tnt(s, "TNT");
    put_ip(s, ppt_tip, 0x100d);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x1012);
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "T");
    expect(s, "on 0 1004\n"
              "call 1004 9000 ind\n"
              "gap 2\n"
              "on 0 100d\n"
              "call 100d 9000\n"
              "gap 2\n"
              "on 0 1012\n"
              "ret 1012 1000 ind\n"
              "jcc 1000 1000\n");
    put_psb(s, CODE, 600);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, 0x1012);
    put_tnt(s, "T");
    assert_int_equal(script_run(s), 0);
    assert_non_null(strstr(s->detail, "disagree at 0x1012"));
}

/* The call was made behind a PSB that stands in the missing code. */
static void returns_to_missing_code_behind_a_psb(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, 0x1008, 500);
    put_tnt(s, "T");
    put_psb(s, NOWHERE + 4, 600);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x1012);
    put_tnt(s, "T");
    put_psb(s, NOWHERE + 8, 700);
    put_ip(s, ppt_tip, 0x1012);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "T");
    expect(s, "on 0 1008\n"
              "jmp 1008 9000\n"
              "gap 2\n"
              "on 0 1000\n"
              "jcc 1000 1000\n");
    assert_non_null(strstr(s->detail, "nothing known to be mapped at 0x9000"));
}

/* The bytes end within an instruction, and bytes that are none. */
static void code_ends_before_a_branch(void **state)
{
    struct script *s = *state;
    script_code(s, CODE, 0xff, 0xe0, 0x90, 0x90, 0x75, 0xfe, 0xe9);
    script_code(s, 0x2000, 0x90, 0x06);
    put_psb(s, CODE, 500);
    put_ip(s, ppt_tip, 0x1002);
    put_tnt(s, "NTN");
    put_ip(s, ppt_tip, CODE);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, 0x1004);
    put_tnt(s, "T");
    expect(s, "on 0 1000\n"
              "jmp 1000 1002 ind\n"
              "jcc 1004 1006 not\n"
              "gap 2\n"
              "on 0 1000\n"
              "jmp 1000 2000 ind\n"
              "gap 3\n"
              "on 0 1004\n"
              "jcc 1004 1004\n");
    assert_int_equal(s->counts.instructions, 1 + 3 + 1 + 1 + 1);
}

static int nobody_at_times(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    struct script *s = ctx;
    script_where(ctx, ring, time, where);
    where->space = time < 600 || time >= 700 ? s->space : NULL;
    where->until = time < 600 ? 600 : time < 700 ? 700 : UINT64_MAX;
    return 0;
}

/* In the kernel nobody is known to run for a while: what the edges of the code before lead to counts for
 * nothing. */
static void nobody_is_known_to_run(void **state)
{
    struct script *s = *state;
    struct dec_space *kernel;
    uint64_t at = 0xffffffff81000000;
    assert_int_equal(dec_space_new(NULL, &kernel, NULL), 0);
    dec_space_free(s->space);
    assert_int_equal(dec_space_new(kernel, &s->space, NULL), 0);
    struct dec_image *image;
    uint8_t *code = malloc(4);
    memcpy(code, (const uint8_t[]){0x75, 0xfe, 0xff, 0xe0}, 4);
    assert_int_equal(dec_images_add_bytes(s->images, "kernel", code, 4, &image, NULL), 0);
    assert_int_equal(dec_space_map(kernel, 0, at, 4, 0, image, NULL), 0);
    s->where = nobody_at_times;
    put_psb(s, at, 500);
    put_tnt(s, "TTTTT");
    put_tsc(s, 610);
    put_tnt(s, "TTTT");
    put_tnt(s, "TTTTTTTT");
    put_tsc(s, 710);
    put_ip(s, ppt_tip, at);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, at);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->slow, 0);
    assert_int_equal(s->counts.gaps, 1);
    assert_non_null(strstr(s->detail, "no process known to run"));
    dec_space_free(s->space);
    s->space = NULL;
    dec_space_free(kernel);
}

static void an_overflow_begins_anew(void **state)
{
    struct script *s = *state;
    struct pt_packet cbr = {.type = ppt_cbr, .payload.cbr.ratio = 20};
    lay_out(s);
    put_psb(s, CODE, 500);
    put_tnt(s, "TN");
    put_plain(s, ppt_ovf);
    put_tsc(s, 600);
    put_ip(s, ppt_fup, 0x1006);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, NOWHERE);
    put_tsc(s, 700);
    put_plain(s, ppt_ovf);
    put(s, cbr);
    put_tsc(s, 800);
    put_ip(s, ppt_fup, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, NOWHERE);
    put_plain(s, ppt_ovf);
    put_psb_off(s, 900);
    put_plain(s, ppt_ovf);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, CODE);
    put_tnt(s, "T");
    expect(s, "on 0 1000\n"
              "jcc 1000 1000\n"
              "jcc 1000 1002 not\n"
              "gap 1\n"
              "on 0 1006\n"
              "jcc 1006 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "gap 1\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "gap 1\n"
              "on 0 1000\n"
              "jcc 1000 1000\n");
    assert_int_equal(s->counts.overflows, 4);
    assert_int_equal(s->counts.errors, 0);
}

/* A PSB+ of a host that has guests, or of one of those. */
static void put_psb_of(struct script *s, uint64_t ip, uint64_t tsc, bool guest)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put_mode(s, ptem_64bit);
    put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = 0x12000, .nr = guest}});
    put_ip(s, ppt_fup, ip);
    put_plain(s, ppt_psbend);
}

/* The place is told behind the overflow, and not who is there: the other walk is asked for those stretches
 * alone. */
static void an_overflow_may_hide_a_guest(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb_of(s, CODE, 500, true);
    put_tnt(s, "TN");
    put_ip(s, ppt_fup, CODE);
    put_pip(s);
    put_ip(s, ppt_tip, 0x1006);
    put_tnt(s, "T");
    put_psb_of(s, CODE, 600, false);
    put_tnt(s, "T");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, CODE);
    put_tnt(s, "TTTT");
    put_psb_of(s, CODE, 700, false);
    put_tnt(s, "T");
    put_psb_of(s, CODE, 750, false);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, NOWHERE);
    put_tnt(s, "N");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, CODE);
    put_tnt(s, "TTTT");
    put_psb_of(s, CODE, 800, false);
    put_tnt(s, "T");
    script_expect(s, "gap 2\n"
                     "on 0 1006\n"
                     "jcc 1006 1000\n"
                     "jcc 1000 1000\n"
                     "gap 1\n"
                     "gap 2\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 9000 ind\n"
                     "gap 2\n"
                     "gap 1\n"
                     "gap 2\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n");
    assert_int_equal(s->counts.overflows, 2);
    assert_int_equal(s->slow, 3);
}

/* What ran in a mode is there and gone before the first PSB at which the fast walk can begin. */
static void put_two_modes(struct script *s)
{
    put_plain(s, ppt_psb);
    put_tsc(s, 500);
    put_mode(s, ptem_64bit);
    put(s, (struct pt_packet){.type = ppt_mnt, .payload.mnt = {.payload = 0x1234}});
    put_ip(s, ppt_fup, CODE);
    put_plain(s, ppt_psbend);
    put_tnt(s, "N");
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "N");
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip, CODE);
    for (uint64_t tsc = 600; tsc < 900; tsc += 100) {
        put_psb(s, CODE, tsc);
        put_tnt(s, "T");
    }
}

static const char two_modes[] = "on 0 1000\n"
                                "jcc 1000 1002 not\n"
                                "jmp 1002 1000 ind\n"
                                "jcc 1000 1002 not\n"
                                "jmp 1002 1000 ind\n"
                                "jcc 1000 1000\n"
                                "jcc 1000 1000\n"
                                "jcc 1000 1000\n";

static void expect_behind_two_modes(struct script *s, const char *text)
{
    char all[1024];
    snprintf(all, sizeof(all), "%s%s", two_modes, text);
    script_expect(s, all);
}

static void an_overflow_may_hide_a_mode(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_two_modes(s);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, CODE);
    put_tnt(s, "TTTT");
    put_psb(s, CODE, 900);
    put_tnt(s, "N");
    expect_behind_two_modes(s, "gap 1\n"
                               "on 0 1000\n"
                               "jcc 1000 1002 not\n");
    assert_int_equal(s->slow, 2);
}

/* It goes on where Linux has no other code. */
static void an_overflow_hides_no_mode_of_high_code(void **state)
{
    struct script *s = *state;
    lay_out(s);
    script_code(s, 0x7f0000001000, 0x75, 0xfe, 0xff, 0xe0);
    put_two_modes(s);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x7f0000001000);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, CODE);
    put_psb(s, CODE, 900);
    put_tnt(s, "N");
    expect_behind_two_modes(s, "gap 1\n"
                               "on 0 7f0000001000\n"
                               "jcc 7f0000001000 7f0000001000\n"
                               "jcc 7f0000001000 7f0000001002 not\n"
                               "jmp 7f0000001002 1000 ind\n"
                               "jcc 1000 1002 not\n");
    assert_int_equal(s->slow, 1);
}

static void put_psb_off_mode(struct script *s, uint64_t tsc, enum pt_exec_mode mode)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put_mode(s, mode);
    put_plain(s, ppt_psbend);
}

/* The other mode came and went by cuts, which do not leave the fast walk: threads that count behind them know
 * of one mode alone. */
static void an_overflow_may_hide_a_mode_from_before_a_cut(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, CODE, 500);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_tnt(s, "T");
    put_psb_off_mode(s, 600, ptem_32bit);
    put_tnt(s, "T");
    put_psb_off_mode(s, 700, ptem_64bit);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, CODE);
    put_tnt(s, "T");
    put_psb(s, CODE, 800);
    put_tnt(s, "T");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, CODE);
    put_tnt(s, "TTTT");
    put_psb(s, CODE, 900);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 0 ind\n"
                     "off 1002 0\n"
                     "gap 3\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1000\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->slow, 1);
}

/* The ring was overwritten while tracing was off: what is behind is of another time. */
static void a_branch_while_tracing_is_off_is_a_cut(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, CODE, 500);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_tnt(s, "TTTTTT");
    put_ip(s, ppt_tip, 0x1006);
    put_tsc(s, 550);
    put_psb(s, CODE, 600);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, NOWHERE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip, CODE);
    put_psb_off(s, 700);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_tnt(s, "N");
    expect(s, "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 0 ind\n"
              "off 1002 0\n"
              "gap 3\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 9000 ind\n"
              "gap 2\n"
              "gap 3\n"
              "on 0 1000\n"
              "jcc 1000 1002 not\n"
              "jmp 1002 0 ind\n"
              "off 1002 0\n"
              "gap 3\n");
    assert_int_equal(s->events.at[5].time, 600);
}

/* Wherever a trace ends, its last stretch is not decoded twice. */
static void a_trace_may_end_within_any_packet(void **state)
{
    struct script *s = *state;
    lay_out(s);
    put_psb(s, CODE, 500);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, 0x1004);
    put_cyc(s, 10000);
    put_tsc(s, 600);
    put_ip(s, ppt_tip, 0x1006);
    put_tnt(s, "TTTTTTTTTTTN");
    put_ip(s, ppt_tip, 0x100d);
    put_tnt(s, "TNNNNNNNNNNN");
    put_ip(s, ppt_tip, CODE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0x1006);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1008);
    put_tnt(s, "TTTTTTTTTTTN");
    unsigned slow = 0;
    for (s->cut = 34; s->cut < script_size(s); s->cut++) {
        assert_int_equal(script_run(s), 0);
        slow += s->slow != 0;
    }
    assert_int_equal(slow, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_jump_finds_the_place_again),
        SCRIPT_TEST(an_interrupt_finds_the_place_again),
        SCRIPT_TEST(tracing_ends_and_begins_in_missing_code),
        SCRIPT_TEST(returns_to_missing_code),
        SCRIPT_TEST(returns_to_missing_code_behind_a_psb),
        SCRIPT_TEST(code_ends_before_a_branch),
        SCRIPT_TEST(nobody_is_known_to_run),
        SCRIPT_TEST(an_overflow_begins_anew),
        SCRIPT_TEST(an_overflow_may_hide_a_guest),
        SCRIPT_TEST(an_overflow_may_hide_a_mode),
        SCRIPT_TEST(an_overflow_hides_no_mode_of_high_code),
        SCRIPT_TEST(an_overflow_may_hide_a_mode_from_before_a_cut),
        SCRIPT_TEST(a_branch_while_tracing_is_off_is_a_cut),
        SCRIPT_TEST(a_trace_may_end_within_any_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
