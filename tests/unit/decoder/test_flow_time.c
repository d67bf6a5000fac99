/* Time in a trace: which packets give points, what lies between, how far each is to be trusted. */
#include "flow_script.h"

#include "decoder/event/event.h"

static void times_between_points_are_spread_and_points_are_marked(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x90, 0x90, 0xff, 0xe0); /* 1000 nop nop nop; 1003 jmp *rax */
    script_code(s, 0x2000, 0x90, 0xe8, 0x01, 0, 0, 0, 0x90, 0x90, 0xff,
                0xe0); /* 2001 call 2007; 2007 nop; 2008 jmp *rax */
    s->config.clock = (struct dec_clock){.mult = 1, .shift = 0, .zero = 100000, .known = true};
    put_psb(s, 0x1000, 1000);
    put_tsc(s, 2000);
    put_ip(s, ppt_tip, 0x2000);
    put_tsc(s, 2400);
    put_ip(s, ppt_tip, 0x1000);
    script_expect(s, "on 0 1000\n"
                     "jmp 1003 2000 ind\n"
                     "call 2001 2007\n"
                     "jmp 2008 1000 ind\n");
    assert_int_equal(s->events.at[0].time, 101000);
    assert_int_equal(s->events.at[1].time, 102000);
    assert_int_equal(s->events.at[2].time, 102200); /* 2 of 4 instructions */
    assert_int_equal(s->events.at[3].time, 102400);
    assert_true(s->events.at[1].flags & DEC_TIME_EXACT);
    assert_false(s->events.at[2].flags & DEC_TIME_EXACT);
    assert_true(s->events.at[3].flags & DEC_TIME_EXACT);
    assert_int_equal(s->counts.first_time, 101000);
    assert_int_equal(s->counts.last_time, 102400);
    assert_int_equal(s->events.at[2].cpu, 3);
}

static void put_counter(struct script *s, enum pt_packet_type type, uint16_t a, uint16_t b)
{
    struct pt_packet packet = {.type = type};
    if (type == ppt_tma) {
        packet.payload.tma.ctc = a;
        packet.payload.tma.fc = b;
    } else if (type == ppt_mtc) {
        packet.payload.mtc.ctc = (uint8_t)a;
    } else {
        packet.payload.cbr.ratio = (uint8_t)a;
    }
    put(s, packet);
}

/* 1 crystal tick = 100 TSC ticks; MTC every 8 crystal ticks. At TSC 10000 the counter is 12 ticks and 30 TSC
 * ticks past 0. */
static void mtc_packets_count_from_tma(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    s->config.mtc_freq = 3;
    put_psb(s, 0, 10000);
    put_tsc(s, 10000);
    put_counter(s, ppt_tma, 12, 30);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_counter(s, ppt_mtc, 2, 0); /* counter 16: 4 ticks on */
    put_ip(s, ppt_tip, 0x1000);
    put_counter(s, ppt_mtc, 3, 0);
    put_counter(s, ppt_mtc, 4, 0);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.n, 3);
    assert_int_equal(s->events.at[0].time, 10000);
    assert_int_equal(s->events.at[1].time, 10000 - 30 + 4 * 100);
    assert_int_equal(s->events.at[2].time, 10000 - 30 + 20 * 100);
}

static void mtc_counts_past_its_8_bits(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.cpuid15_eax = 1;
    s->config.cpuid15_ebx = 10;
    put_psb(s, 0, 5000);
    put_tsc(s, 5000);
    put_counter(s, ppt_tma, 0x12fe, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_counter(s, ppt_mtc, 0x03, 0);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 5000 + 5 * 10);
}

/* With a period of 2^10 ticks MTC shows bits 10 to 17 of the counter, of which TMA has only 10 to 15. */
static void mtc_of_a_long_period_has_bits_that_tma_lacks(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.cpuid15_eax = 1;
    s->config.cpuid15_ebx = 10;
    s->config.mtc_freq = 10;
    put_psb(s, 0, 500000);
    put_tsc(s, 500000);
    put_counter(s, ppt_tma, 0x3e << 10, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_counter(s, ppt_mtc, 0x80 | 0x01, 0); /* 3 periods later, by the lower 6 bits */
    put_ip(s, ppt_tip, 0x1000);
    put_counter(s, ppt_mtc, 0x80 | 0x41, 0); /* 64 more: now all 8 bits count */
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 500000 + 3 * 10240);
    assert_int_equal(s->events.at[2].time, 500000 + 67 * 10240);
}

static void cycles_count_at_the_bus_ratio(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.nom_freq = 24;
    put_plain(s, ppt_psb);
    put_tsc(s, 1000);
    put_counter(s, ppt_cbr, 12, 0); /* half the nominal clock: a cycle is 2 TSC ticks */
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_cyc(s, 100);
    put_ip(s, ppt_tip, 0x1000);
    put_counter(s, ppt_cbr, 24, 0);
    put_cyc(s, 50);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 1200);
    assert_int_equal(s->events.at[2].time, 1250);
    assert_true(s->events.at[2].flags & DEC_TIME_EXACT);
}

/* Whatever the cycles say, they cannot pass the next packet with an absolute time. */
static void cycles_never_pass_the_next_point(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.nom_freq = 10;
    put_plain(s, ppt_psb);
    put_tsc(s, 1000);
    put_counter(s, ppt_cbr, 10, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_cyc(s, 5000);
    put_ip(s, ppt_tip, 0x1000);
    put_tsc(s, 1600);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 1600);
    assert_int_equal(s->events.at[2].time, 1600);
}

static void cycles_are_measured_where_no_ratio_is_known(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    put_psb(s, 0x1000, 1000);
    put_cyc(s, 10);
    put_ip(s, ppt_tip, 0x1000);
    put_cyc(s, 30);
    put_ip(s, ppt_tip, 0x1000);
    put_tsc(s, 1400);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 1100);
    assert_int_equal(s->events.at[2].time, 1400);
}

static void time_that_passed_outside_is_not_spread_over_instructions(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x0f, 0x05, 0x90, 0xff, 0xe0); /* 1000 syscall; 1002 nop; 1003 jmp *rax */
    s->config.nom_freq = 10;                              /* an instruction is 1 ns until better is known */
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1002);
    put_tsc(s, 9001);
    put_ip(s, ppt_tip, 0x1000);
    script_expect(s, "on 0 1000\n"
                     "farcall 1000 0\n"
                     "off 1000 0\n"
                     "on 0 1002 resumed\n"
                     "jmp 1003 1000 ind\n");
    assert_int_equal(s->events.at[2].time, 1001);
    assert_in_range(s->events.at[3].time, 8998, 9000);
    assert_int_equal(s->events.at[4].time, 9001);
}

static void the_time_of_a_psb_counts_only_where_tracing_is_on(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x0f, 0x05, 0xff, 0xe0); /* 1000 syscall; 1002 jmp *rax */
    put_psb(s, 0x1000, 1000);
    for (uint64_t at = 2000; at < 20000; at += 2000) {
        put_ip(s, ppt_tip_pgd, 0);
        put_psb(s, 0, at);
        if (at % 4000) /* else it is told with what comes next */
            put_tsc(s, at + 500);
        put_ip(s, ppt_tip_pge, 0x1002);
        put_tsc(s, at + 1000);
        put_ip(s, ppt_tip, 0x1000);
        put_psb(s, 0x1000, at + 1500);
    }
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.time_points, 1 + 9 * 3);
    assert_int_equal(s->events.at[3].time, 2500);
    assert_int_equal(s->events.at[7].time, 4000);
    assert_int_equal(s->counts.last_time, 19500);
}

/* TSC packets hold 56 bits; after 347 days at 2.4 GHz that is not enough. */
static void the_upper_bits_of_tsc_come_from_the_reference(void **state)
{
    struct script *s = *state;
    uint64_t near = (uint64_t)0x12 << 56;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.reference = near + 50;
    put_psb(s, 0x1000, ((uint64_t)1 << 56) - 100);
    put_tsc(s, 70);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[0].time, near - 100);
    assert_int_equal(s->events.at[1].time, near + 70);
}

static void a_trace_without_time_has_time_0(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TTN");
    assert_int_equal(script_run(s), 0);
    for (size_t i = 0; i < s->events.n; i++)
        assert_int_equal(s->events.at[i].time, 0);
    assert_int_equal(s->counts.time_points, 0);
}

static struct dec_space *spaces[3];

static int three_in_turn(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    static const uint64_t until[] = {9000, 20000, UINT64_MAX};
    unsigned who = time < until[0] ? 0 : time < until[1] ? 1 : 2;
    (void)ctx;
    (void)ring;
    *where = (struct dec_where){.pid = 7, .tid = (int32_t)who, .space = spaces[who], .until = until[who]};
    return 0;
}

/* The first process runs on a little past its time; the second leaves no trace. */
static void who_runs_is_asked_at_the_time_where_tracing_goes_on(void **state)
{
    struct script *s = *state;
    struct dec_space *own = s->space;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dec_space_new(NULL, &spaces[i], NULL), 0);
        s->space = spaces[i];
        if (i < 2)
            script_code(s, 0x1000, 0x75, 0xfe);
        else
            script_code(s, 0x1000, 0x90, 0x90, 0x75, 0xfc);
    }
    s->space = own;
    s->where = three_in_turn;
    put_psb(s, 0x1000, 1000);
    put_tsc(s, 2000);
    put_tnt(s, "T");
    put_tsc(s, 10000);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_tsc(s, 30000);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "T");
    put_psb(s, 0x1000, 40000);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\njcc 1000 1000\njcc 1000 1000\noff 1000 0 async\non 0 1000 resumed\n"
                     "jcc 1002 1000\njcc 1002 1000\n");
    assert_int_equal(s->counts.errors, 0);
    for (unsigned i = 0; i < 3; i++)
        dec_space_free(spaces[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(times_between_points_are_spread_and_points_are_marked),
        SCRIPT_TEST(mtc_packets_count_from_tma),
        SCRIPT_TEST(mtc_counts_past_its_8_bits),
        SCRIPT_TEST(mtc_of_a_long_period_has_bits_that_tma_lacks),
        SCRIPT_TEST(cycles_count_at_the_bus_ratio),
        SCRIPT_TEST(cycles_never_pass_the_next_point),
        SCRIPT_TEST(cycles_are_measured_where_no_ratio_is_known),
        SCRIPT_TEST(time_that_passed_outside_is_not_spread_over_instructions),
        SCRIPT_TEST(the_time_of_a_psb_counts_only_where_tracing_is_on),
        SCRIPT_TEST(the_upper_bits_of_tsc_come_from_the_reference),
        SCRIPT_TEST(a_trace_without_time_has_time_0),
        SCRIPT_TEST(who_runs_is_asked_at_the_time_where_tracing_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
