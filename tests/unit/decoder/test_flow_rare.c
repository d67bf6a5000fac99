/* Packets that few traces hold: long TNT, deferred TIP, power states, buses and virtual machines; a walk on
 * the code between them. */
#include "flow_script.h"

/* 1000 jne 1010; 1002 jmp *rax; 1010 jne 1000 */
static void code_that_goes_round(struct script *s)
{
    script_code(s, 0x1000, 0x75, 0x0e, 0xff, 0xe0);
    script_code(s, 0x1010, 0x75, 0xee, 0x75, 0xfe);
}

/* SDM, Intel PT, "Deferred TIPs": a TNT packet may hold what came behind indirect branches, whose TIPs
 * follow. */
static void a_tip_may_come_behind_later_bits(void **state)
{
    struct script *s = *state;
    code_that_goes_round(s);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "NTN");
    put_ip(s, ppt_tip, 0x1010);
    put_ip(s, ppt_tip, 0x1012);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 1010 ind\n"
                     "jcc 1010 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 1012 ind\n"
                     "jcc 1012 1014 not\n");
}

/* Several are deferred, as they are pushed out by an event. */
static void deferred_tips_before_an_interrupt(void **state)
{
    struct script *s = *state;
    code_that_goes_round(s);
    put_psb(s, 0x1002, 0);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, 0x1010);
    put_ip(s, ppt_tip, 0x1012);
    put_ip(s, ppt_fup, 0x1012);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1002\n"
                     "jmp 1002 1010 ind\n"
                     "jcc 1010 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 1012 ind\n"
                     "off 1012 0 async\n");
}

/* A packet of 47 bits. */
static void many_bits_in_one_packet(void **state)
{
    struct script *s = *state;
    char bits[48] = {0}, expected[47 * 24 + 32], *at = expected;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    memset(bits, 'T', 45);
    memcpy(bits + 45, "NN", 2);
    put_tnt(s, bits);
    put_tnt(s, "N");
    at += sprintf(at, "on 0 1000\n");
    for (int i = 0; i < 45; i++)
        at += sprintf(at, "jcc 1000 1000\n");
    sprintf(at, "jcc 1000 1002 not\njcc 1002 1004 not\njcc 1004 1006 not\n");
    script_expect(s, expected);
}

/* A CPU that slept: the branches around it stay, and they are told. */
static void power_events_are_told(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x0f, 0x01, 0xc9, 0x75, 0xfe); /* 1002 mwait; 1005 jne */
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put(s, (struct pt_packet){.type = ppt_pwre, .payload.pwre = {.state = 2, .sub_state = 1}});
    put_tsc(s, 2000);
    put(s, (struct pt_packet){.type = ppt_exstop, .payload.exstop = {.ip = 0}});
    put_tsc(s, 9000);
    put(s, (struct pt_packet){.type = ppt_cbr, .payload.cbr = {.ratio = 8}});
    put(s, (struct pt_packet){.type = ppt_pwrx, .payload.pwrx = {.last = 2, .deepest = 3, .interrupt = 1}});
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "asleep 0 MWAIT 0x21\n"
                     "stopped 0 \n"
                     "awake 0 deepest MWAIT 0x30, last 0x20, by an interrupt\n"
                     "jcc 1005 1007 not\n");
    assert_int_equal(s->events.at[3].time, 2000);
    assert_int_equal(s->events.at[4].time, 9000);
}

/* MWAIT and EXSTOP with the address of their instruction. */
static void power_events_with_an_address(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x0f, 0x01, 0xc9, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    put(s, (struct pt_packet){.type = ppt_mwait, .payload.mwait = {.hints = 0x60, .ext = 1}});
    put(s, (struct pt_packet){.type = ppt_exstop, .payload.exstop = {.ip = 1}});
    put_ip(s, ppt_fup, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "mwait 1002 MWAIT 0x60\n"
                     "stopped 1002 \n"
                     "jcc 1005 1007 not\n");
}

/* Where no branches are recorded (perf's branch=0), or the kernel is not. */
static void power_events_while_tracing_is_off(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0, 1000);
    put(s, (struct pt_packet){.type = ppt_pwre, .payload.pwre = {.state = 0, .hw = 1}});
    put_tsc(s, 5000);
    put(s, (struct pt_packet){.type = ppt_pwrx, .payload.pwrx = {.store = 1, .autonomous = 1}});
    put_psb(s, 0, 6000);
    put(s, (struct pt_packet){.type = ppt_pwre, .payload.pwre = {.state = 5}});
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "asleep 0 MWAIT 0x00, by the hardware\n"
                     "awake 0 deepest MWAIT 0x00, last 0x00, by a store to what it watched and the hardware\n"
                     "asleep 0 MWAIT 0x50\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->events.at[1].time, 5000);
}

/* Page tables and virtual machines change, and a model's own packet: on the way, and in a PSB+. */
static void what_is_only_told_changes_nothing(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_plain(s, ppt_psb);
    put_mode(s, ptem_64bit);
    put(s, (struct pt_packet){.type = ppt_vmcs, .payload.vmcs = {.base = 0x12345000}});
    put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = 0x7654000}});
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_tnt(s, "N");
    put(s, (struct pt_packet){.type = ppt_mnt, .payload.mnt = {.payload = 0x1234}});
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1002 1004 not\n");
}

static void put_vmcs(struct script *s)
{
    put(s, (struct pt_packet){.type = ppt_vmcs, .payload.vmcs = {.base = 0x12345000}});
}

/* A host that runs virtual machines: every PSB+ names one, and so does an instruction that loads one. None of
 * it leaves the fast walk. */
static void virtual_machines_are_passed_over(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x0f, 0xc7, 0x30, 0x75, 0xf9); /* 1002 vmptrld [rax]; 1005 jne 1000 */
    for (uint64_t i = 1; i < 4; i++) {
        put_plain(s, ppt_psb);
        put_tsc(s, i * 10000);
        put_mode(s, ptem_64bit);
        put(s, (struct pt_packet){.type = ppt_mode, .payload.mode = {.leaf = pt_mol_tsx}});
        put_vmcs(s);
        put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = 0x7654000, .nr = 1}});
        put_ip(s, ppt_fup, 0x1000);
        put_plain(s, ppt_psbend);
        put_tnt(s, "TTN");
        put_tsc(s, i * 10000 + 1000);
        put_vmcs(s);
        put_tnt(s, "TN");
        put_tsc(s, i * 10000 + 2000);
        put_vmcs(s);
        put_tsc(s, i * 10000 + 3000);
        put_tnt(s, "TN");
        put_ip(s, ppt_fup, 0x1002);
        put_ip(s, ppt_tip_pgd, 0);
        put_vmcs(s);
        put_tsc(s, i * 10000 + 4000);
        put_ip(s, ppt_tip_pge, 0x1005);
        put_tnt(s, "T");
    }
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.gaps, 0);
    assert_int_equal(s->counts.cond_jump, 3 * 8);
    assert_int_equal(s->slow, 0);
}

/* PSB+ for a while, with tracing off, or damage behind it: what the other walk makes of it. */
static void many_psbs_while_tracing_is_off(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    s->config.mtc_freq = 3;
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    put_psb(s, 0x1000, 500);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    for (uint64_t i = 1; i < 40; i++) {
        put_plain(s, ppt_psb);
        if (i % 3)
            put_tsc(s, i * 1000);
        if (i % 3 == 1)
            put(s, (struct pt_packet){.type = ppt_tma, .payload.tma = {.ctc = (uint16_t)i, .fc = 3}});
        put_vmcs(s);
        if (i % 2)
            put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = 0x7654000}});
        put_plain(s, ppt_psbend);
        for (unsigned k = 0; k < i % 4; k++)
            put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc = {.ctc = (uint8_t)(i + k)}});
    }
    size_t good = script_size(s);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->slow, 0);
    assert_int_equal(s->counts.cond_jump, 2);
    memcpy(s->trace + good, (const uint8_t[]){0x02, 0x73, 0, 0, 0xff}, 5); /* TMA with reserved bits */
    assert_int_equal(script_run(s), 0);
}

/* TraceStop: a filter ended the trace; it goes on elsewhere. */
static void a_trace_that_is_stopped_by_a_filter(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0x9000);
    put_plain(s, ppt_stop);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 9000 ind\n"
                     "off 1002 0\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jmp 1002 0 ind\n"
                     "off 1002 0\n");
}

/* Errata BDM70, SKD007, SKD010: a PSB+ may already tell of the address at which tracing starts behind it.
 * That is no damage on a CPU that has them; on any other one gap. */
static void a_start_that_is_told_twice(void **state)
{
    static const uint8_t models[] = {0x4f, 0x5e};
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0, 0);
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    s->config.family = 6;
    s->config.stepping = 1;
    for (size_t i = 0; i < sizeof(models); i++) {
        s->config.model = models[i];
        script_expect(s, "on 0 1000\n"
                         "jcc 1000 1002 not\n");
        assert_int_equal(s->counts.errors, 0);
        assert_int_equal(s->slow, 0);
    }
    s->config.model = 0xff;
    script_expect(s, "gap 3\n");
    assert_int_equal(s->counts.errors, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_tip_may_come_behind_later_bits),  SCRIPT_TEST(deferred_tips_before_an_interrupt),
        SCRIPT_TEST(many_bits_in_one_packet),           SCRIPT_TEST(power_events_are_told),
        SCRIPT_TEST(power_events_with_an_address),      SCRIPT_TEST(power_events_while_tracing_is_off),
        SCRIPT_TEST(what_is_only_told_changes_nothing), SCRIPT_TEST(virtual_machines_are_passed_over),
        SCRIPT_TEST(many_psbs_while_tracing_is_off),    SCRIPT_TEST(a_trace_that_is_stopped_by_a_filter),
        SCRIPT_TEST(a_start_that_is_told_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
