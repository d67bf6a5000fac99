/* Code that is missing, changes or does not fit the trace, and what the caller answers. */
#include "flow_script.h"

#include "decoder/event/event.h"

static void missing_code_is_one_gap_and_decoding_goes_on_behind_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0, 0x75, 0xfe); /* 1000 jmp *rax; 1002 jne */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x5000);
    put_tnt(s, "TNNT");
    put_ip(s, ppt_tip, 0x5100);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, 0x1002);
    put_tnt(s, "TN");
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 5000 ind\n"
                     "gap 2\n"
                     "on 0 1002\n"
                     "jcc 1002 1002\n"
                     "jcc 1002 1004 not\n");
    assert_int_equal(s->counts.gaps, 1);
    assert_int_equal(s->counts.errors, 1);
    assert_non_null(strstr(s->detail, "0x5000"));
}

/* A return whose call was in code that is missing: that is its cause, not a trace that fits no code. */
static void a_return_to_missing_code_is_no_mismatch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xd0, 0x75, 0xfe, 0xff, 0xe0); /* call *rax; 1002 jne; jmp *rax */
    script_code(s, 0x2000, 0x75, 0xfe, 0xc3);                   /* jne; 2002 ret */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x9000);
    put_tnt(s, "TT");
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "NT"); /* back to 9000 and something */
    put_ip(s, ppt_tip, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "call 1000 9000 ind\n"
                     "gap 2\n"
                     "on 0 2000\n"
                     "jcc 2000 2002 not\n"
                     "gap 2\n"
                     "on 0 1002\n"
                     "jcc 1002 1004 not\n");
    put_ip(s, ppt_tip, 0x2002);
    put_psb(s, 0x2002, 0); /* whatever was called before it */
    put_tnt(s, "T");
    assert_int_equal(script_run(s), 0);
    assert_string_equal(s->text.at + strlen(s->text.at) - 6, "gap 3\n");
}

/* Between two starts of tracing stands what ended the first. */
static void a_stretch_that_led_nowhere_is_no_start(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x90); /* jne; 1002 nop, and no more */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    for (int i = 0; i < 3; i++)
        put_ip(s, ppt_tip, 0x1002);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "TN");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 2\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n");
}

static void code_without_a_file_is_named(void **state)
{
    struct script *s = *state;
    struct dec_image_id id = {.path = "//anon", .pid = 7};
    struct dec_image *image;
    script_code(s, 0x1000, 0xff, 0xe0);
    assert_int_equal(dec_images_get(s->images, &id, &image, NULL), 0);
    assert_int_equal(dec_space_map(s->space, 0, 0x5000, 0x1000, 0, image, NULL), 0);
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x5010);
    put_ip(s, ppt_tip, 0x1000);
    put_ip(s, ppt_tip, 0x5020);
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 5010 ind\n"
                     "gap 11\n"
                     "on 0 1000\n"
                     "jmp 1000 5020 ind\n");
    assert_non_null(strstr(s->detail, "//anon"));
}

static void code_follows_the_mappings_over_time(void **state)
{
    struct script *s = *state;
    static const uint8_t old[] = {0xeb, 0x00, 0xff, 0xe0}; /* jmp 1002; jmp *rax */
    static const uint8_t new[] = {0x90, 0x90, 0xff, 0xe0}; /* nop nop; jmp *rax */
    script_code_at(s, 0, 0x1000, old, sizeof(old), "old");
    script_code_at(s, 2000, 0x1000, new, sizeof(new), "new");
    put_psb(s, 0x1000, 1000);
    put_tsc(s, 1500);
    put_ip(s, ppt_tip, 0x1000);
    put_tsc(s, 2500);
    put_ip(s, ppt_tip, 0x1000);
    put_tsc(s, 2600);
    put_ip(s, ppt_tip, 0x1000);
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 1002\n"
                     "jmp 1002 1000 ind\n"
                     "jmp 1000 1002\n"
                     "jmp 1002 1000 ind\n"
                     "jmp 1002 1000 ind\n");
}

static void an_instruction_may_cross_mappings(void **state)
{
    struct script *s = *state;
    static const uint8_t head[] = {0x90, 0xe8, 0x01}, tail[] = {0, 0, 0, 0x90, 0x75, 0xfe};
    script_code_at(s, 0, 0x1000, head, sizeof(head), "head"); /* 1001 call 1007 */
    script_code_at(s, 0, 0x1003, tail, sizeof(tail), "tail"); /* 1006 nop; 1007 jne */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "call 1001 1007\n"
                     "jcc 1007 1009 not\n");
}

static void bytes_that_are_no_instruction_are_a_mismatch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x06, 0x06, 0x06, 0x06); /* push es: not in 64-bit code */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "gap 3\n");
    assert_non_null(strstr(s->detail, "0x1001"));
}

static void an_address_where_a_bit_is_due_is_a_mismatch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    script_code(s, 0x2000, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x2000);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "gap 3\n"
                     "on 0 2000\n"
                     "jmp 2000 1000 ind\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->counts.errors, 1);
}

/* Code that goes round by direct branches needs no trace to be followed for ever. */
static void code_that_goes_round_without_trace_ends(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0xeb, 0x02, 0x90, 0x90, 0xe8, 0xf6, 0xff, 0xff,
                0xff); /* jmp 1005; 1005 call 1000 */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    put_tnt(s, "N");
    assert_int_equal(script_run(s), 0);
    assert_true(s->events.n < 10);
    assert_int_equal(s->counts.errors, 1);
    assert_non_null(strstr(s->detail, "without end"));
}

static void a_jump_to_itself_that_is_interrupted_is_no_mismatch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xeb, 0xfe, 0x75, 0xfe); /* 1000 jmp 1000; 1002 jne */
    put_psb(s, 0x1002, 0);
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip, 0x1000);
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_tip, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1002\n"
                     "async 1002 1000\n"
                     "async 1000 1002\n"
                     "jcc 1002 1004 not\n");
}

static void an_interrupt_ends_a_round(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xe8, 0x01, 0, 0, 0, /* 1000 call 1006 */
                0x90, 0x90, 0xff, 0xe0);        /* 1006 nop; 1007 jmp *rax */
    put_psb(s, 0x1000, 0);
    for (int i = 0; i < 2; i++) {
        put_ip(s, ppt_fup, 0x1007);
        put_ip(s, ppt_tip, 0x1000);
    }
    put_ip(s, ppt_tip, 0x1006);
    script_expect(s, "on 0 1000\n"
                     "call 1000 1006\n"
                     "async 1007 1000\n"
                     "call 1000 1006\n"
                     "async 1007 1000\n"
                     "call 1000 1006\n"
                     "jmp 1007 1006 ind\n");
}

static void what_emit_returns_ends_it(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    for (int i = 0; i < 100; i++)
        put_tnt(s, "TTTTTT");
    s->stop_after = 5;
    assert_int_equal(script_run(s), 1234);
    assert_int_equal(s->events.n, 5);
}

static int refuse(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    (void)ctx;
    (void)ring;
    (void)time;
    (void)where;
    return 2;
}

static void what_where_returns_ends_it(void **state)
{
    struct script *s = *state;
    struct dec_piece piece = {.bytes = s->trace};
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    piece.size = script_size(s);
    struct dec_flow_options options = script_options(s);
    options.where = refuse;
    assert_int_equal(dec_flow_run(&options, &piece, 1, NULL, NULL), 2);
    assert_int_equal(s->events.n, 0);
}

/* Two threads take turns on a ring of a CPU: the answer changes with the time. */
static int by_turns(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    struct script *s = ctx;
    assert_int_equal(ring, 5);
    *where = (struct dec_where){.pid = 7, .tid = time < 2000 ? 20 : 21, .cpu = 1, .space = s->space};
    where->until = time < 2000 ? 2000 : UINT64_MAX;
    return 0;
}

struct turns {
    int32_t tid[8];

    size_t n;
};

static int note_turns(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                      const char *detail)
{
    struct turns *turns = ctx;
    (void)detail;
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind == DEC_ENABLE && turns->n < 8)
            turns->tid[turns->n++] = info->tid;
    }
    return 0;
}

static void threads_change_while_tracing_is_off(void **state)
{
    struct script *s = *state;
    struct turns turns = {0};
    script_code(s, 0x1000, 0x0f, 0x05, 0x0f, 0x05);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_tsc(s, 1999);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tsc(s, 2100); /* in the middle of a stretch nothing changes */
    put_ip(s, ppt_tip_pgd, 0);
    put_tsc(s, 2200);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    struct dec_flow_options options = script_options(s);
    struct dec_piece piece = {.bytes = s->trace, .size = script_size(s)};
    options.where = by_turns;
    options.emit = note_turns;
    options.emit_ctx = &turns;
    assert_int_equal(dec_flow_run(&options, &piece, 1, NULL, NULL), 0);
    assert_int_equal(turns.n, 3);
    assert_int_equal(turns.tid[0], 20);
    assert_int_equal(turns.tid[1], 20);
    assert_int_equal(turns.tid[2], 21);
}

static void the_cpu_feature_names_the_errata(void **state)
{
    struct dec_pt_config config = {0};
    (void)state;
    dec_pt_config_from_cpuid(&config, "GenuineIntel,6,94,3");
    assert_int_equal(config.family, 6);
    assert_int_equal(config.model, 94);
    assert_int_equal(config.stepping, 3);
    memset(&config, 0, sizeof(config));
    dec_pt_config_from_cpuid(&config, "AuthenticAMD,25,1,1");
    dec_pt_config_from_cpuid(&config, "GenuineIntel,6");
    dec_pt_config_from_cpuid(&config, NULL);
    assert_int_equal(config.family, 0);
}

static void the_words_of_perf_become_the_configuration(void **state)
{
    static const uint64_t priv[] = {8, 5,      0x7d0,   77,  1, 1 << 10, 1 << 11, 1, 0,
                                    1, 1 << 9, 0x3c000, 200, 2, 1 << 1,  24,      0};
    struct perf_event_attr attr = {.config = 1 << 10 | 3 << 14 | 1 << 9};
    struct dec_pt_config config;
    (void)state;
    dec_pt_config_from_perf(&config, priv, sizeof(priv) / sizeof(priv[0]), &attr, "GenuineIntel,6,94,3");
    assert_int_equal(config.clock.shift, 5);
    assert_int_equal(config.clock.mult, 0x7d0);
    assert_int_equal(config.clock.zero, 77);
    assert_true(config.clock.known && config.has_time);
    assert_int_equal(config.mtc_freq, 3);
    assert_int_equal(config.nom_freq, 24);
    assert_int_equal(config.cpuid15_ebx, 200);
    assert_int_equal(config.cpuid15_eax, 2);
    dec_pt_config_from_perf(&config, priv, 1, NULL, NULL); /* an older file has fewer words */
    assert_false(config.clock.known || config.has_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(missing_code_is_one_gap_and_decoding_goes_on_behind_it),
        SCRIPT_TEST(a_return_to_missing_code_is_no_mismatch),
        SCRIPT_TEST(a_stretch_that_led_nowhere_is_no_start),
        SCRIPT_TEST(code_without_a_file_is_named),
        SCRIPT_TEST(code_follows_the_mappings_over_time),
        SCRIPT_TEST(an_instruction_may_cross_mappings),
        SCRIPT_TEST(bytes_that_are_no_instruction_are_a_mismatch),
        SCRIPT_TEST(an_address_where_a_bit_is_due_is_a_mismatch),
        SCRIPT_TEST(code_that_goes_round_without_trace_ends),
        SCRIPT_TEST(a_jump_to_itself_that_is_interrupted_is_no_mismatch),
        SCRIPT_TEST(an_interrupt_ends_a_round),
        SCRIPT_TEST(what_emit_returns_ends_it),
        SCRIPT_TEST(what_where_returns_ends_it),
        SCRIPT_TEST(threads_change_while_tracing_is_off),
        SCRIPT_TEST(the_cpu_feature_names_the_errata),
        SCRIPT_TEST(the_words_of_perf_become_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
