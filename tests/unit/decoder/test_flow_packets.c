/* Packets that need more than their size: guests of virtual machines, Event Trace, traces without TNT
 * packets. */
#include "flow_script.h"

static void put_pip(struct script *s, bool guest)
{
    put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = guest ? 0x5000 : 0x7000, .nr = guest}});
}

static void put_vmcs(struct script *s)
{
    put(s, (struct pt_packet){.type = ppt_vmcs, .payload.vmcs = {.base = 0x12345000}});
}

/* A PSB+ in the kernel or in a guest. */
static void put_psb_of(struct script *s, uint64_t ip, uint64_t tsc, bool guest)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put_mode(s, ptem_64bit);
    put_vmcs(s);
    put_pip(s, guest);
    put_ip(s, ppt_fup, ip);
    put_plain(s, ppt_psbend);
}

/* As a guest ends. */
static void put_exit(struct script *s, uint64_t from, uint64_t to)
{
    put_ip(s, ppt_fup, from);
    put_pip(s, false);
    put_vmcs(s);
    put_ip(s, ppt_tip, to);
}

/* 1000 jne 1005; 1002 vmresume; 1005 jne 1000. A guest may run at any address: at those of its host too. */
static void host(struct script *s)
{
    script_code(s, 0x1000, 0x75, 0x03, 0x0f, 0x01, 0xc3, 0x75, 0xf9);
}

/* SDM, Intel PT, "VMX Non-root Operation": what a guest did is not told as the host's. */
static void a_guest_is_a_gap(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb_of(s, 0x1000, 1000, false);
    put_tnt(s, "N");
    put_vmcs(s);
    put_pip(s, true);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "TTT");
    put_ip(s, ppt_tip, 0x1005);
    put_pip(s, true); /* the guest's kernel changes page tables */
    put_tnt(s, "T");
    put_exit(s, 0x1002, 0x1005);
    put_tnt(s, "TT");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n"
                     "jcc 1000 1005\n");
    assert_non_null(strstr(s->detail, "guest"));
}

/* In the other order, into a guest of 32-bit code, in which there are PSB+; and once more. */
static void a_guest_of_another_mode(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb_of(s, 0x1000, 1000, false);
    for (uint64_t i = 0; i < 2; i++) {
        put_tnt(s, "N");
        put_pip(s, true);
        put_vmcs(s);
        put_mode(s, ptem_32bit);
        put_ip(s, ppt_tip, 0x1000);
        put_tnt(s, "TTT");
        put_plain(s, ppt_psb);
        put_tsc(s, 2000 + i * 1000);
        put_mode(s, ptem_32bit);
        put_pip(s, true);
        put_ip(s, ppt_fup, 0x1000);
        put_plain(s, ppt_psbend);
        put_tnt(s, "T");
        put_ip(s, ppt_fup, 0x1002);
        put_vmcs(s);
        put_pip(s, false);
        put_mode(s, ptem_64bit);
        put_ip(s, ppt_tip, 0x1005);
        put_tnt(s, "T");
    }
    put_psb_of(s, 0x1000, 9000, false);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n"
                     "jcc 1000 1005\n");
    assert_int_equal(s->counts.errors, 2);
}

/* A trace that begins while a guest runs. */
static void a_trace_may_begin_in_a_guest(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb_of(s, 0x1000, 1000, true);
    put_tnt(s, "TT");
    put_exit(s, 0x1000, 0x1005);
    put_tnt(s, "T");
    put_psb_of(s, 0x1000, 2000, false);
    put_tnt(s, "T");
    script_expect(s, "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n"
                     "jcc 1000 1005\n");
}

/* A guest's system calls, where only its user side is traced; its host tells at the end. */
static void tracing_may_go_on_and_off_in_a_guest(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb_of(s, 0x1000, 1000, false);
    put_tnt(s, "N");
    put_pip(s, true);
    put_ip(s, ppt_tip, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_pip(s, true);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "TT");
    put_exit(s, 0x1000, 0x1005);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n");
}

/* An overflow may have lost the packet that says who runs: only the next one does. */
static void an_overflow_hides_who_runs(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb_of(s, 0x1000, 1000, false);
    put_tnt(s, "N");
    put_pip(s, true);
    put_ip(s, ppt_tip, 0x1000);
    put_exit(s, 0x1000, 0x1005);
    put_tnt(s, "T");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x1000); /* the guest's, or the host's */
    put_tnt(s, "T");
    put_psb_of(s, 0x1005, 2000, false);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n"
                     "gap 1\n"
                     "gap 2\n"
                     "on 0 1005\n"
                     "jcc 1005 1000\n");
}

/* A guest that traces itself, and was not told that it is one. */
static void a_guest_that_traces_itself_is_no_gap(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0x03, 0x0f, 0x22, 0xd8, 0x75, 0xf9); /* jne 1005; mov %rax,%cr3; jne 1000 */
    put_psb_of(s, 0x1000, 1000, true);
    put_tnt(s, "TTN");
    put_pip(s, true);
    put_tnt(s, "T");
    put_psb_of(s, 0x1000, 2000, true);
    put_tnt(s, "T");
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.gaps, 0);
    assert_int_equal(s->counts.cond_jump, 5);
    assert_int_equal(s->slow, 0);
}

/* SDM, Intel PT, "Packet Stream Boundary": an overflow may end a PSB+, whose other packets are lost. */
static void an_overflow_may_end_a_psb(void **state)
{
    struct script *s = *state;
    host(s);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "T");
    put_plain(s, ppt_psb);
    put_tsc(s, 2000);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x1000);
    put_tnt(s, "T");
    put_psb(s, 0x1005, 3000);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1005\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1005\n"
                     "jcc 1005 1000\n");
    assert_int_equal(s->counts.errors, 0);
}

/* 1000 jmp *%rax; 2000, 64-bit: mov $imm,%r8; 200a jne. 32-bit: dec; mov; cld; 2007 jne */
static void modes(struct script *s)
{
    script_code(s, 0x1000, 0xff, 0xe0);
    script_code(s, 0x2000, 0x49, 0xb8, 0x75, 0x01, 0x02, 0x75, 0xfc, 0x75, 0xfa, 0x75, 0x75, 0xfe);
    script_code(s, 0x7f0000002000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "T"); /* 2007 jne 2003 */
    put_plain(s, ppt_ovf);
}

static const char modes_until_overflow[] = "on 0 1000\n"
                                           "jmp 1000 2000 ind\n"
                                           "jcc 2007 2003\n"
                                           "gap 1\n";

static void expect_behind_overflow(struct script *s, const char *text)
{
    char all[512];
    snprintf(all, sizeof(all), "%s%s", modes_until_overflow, text);
    script_expect(s, all);
}

/* Where code of both lengths was seen, and the change between them may be lost, nothing is guessed. */
static void an_overflow_hides_the_mode(void **state)
{
    struct script *s = *state;
    modes(s);
    put_ip(s, ppt_fup, 0x2000); /* of 64 bits by now */
    put_tnt(s, "N");
    put_ip(s, ppt_tip, 0x1000);
    put_psb(s, 0x1000, 2000);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "N");
    expect_behind_overflow(s, "on 0 1000\n"
                              "jmp 1000 2000 ind\n"
                              "jcc 200a 200c not\n");
}

/* The next packet that tells it, as tracing goes on or at a branch, ends that. */
static void the_mode_is_known_again(void **state)
{
    struct script *s = *state;
    modes(s);
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "T");
    expect_behind_overflow(s, "on 0 1000\n"
                              "jmp 1000 2000 ind\n"
                              "jcc 2007 2003\n");
}

/* Code so far up is of 64 bits. */
static void an_address_may_tell_the_mode(void **state)
{
    struct script *s = *state;
    modes(s);
    put_ip(s, ppt_fup, 0x7f0000002000);
    put_tnt(s, "NT");
    expect_behind_overflow(s, "on 0 7f0000002000\n"
                              "jcc 7f0000002000 7f0000002002 not\n"
                              "jcc 7f0000002002 7f0000002002\n");
}

/* MTC packets are dropped while packets overflow: the next one tells of all that passed. */
static void dropped_counts_are_made_up_by_the_next(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);
    s->config.mtc_freq = 3;
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    put_plain(s, ppt_psb);
    put_tsc(s, 100000);
    put(s, (struct pt_packet){.type = ppt_tma, .payload.tma = {.ctc = 0x40 << 3}});
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc.ctc = 0x41});
    put_ip(s, ppt_tip, 0x1000);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x1000);
    put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc.ctc = 0x4a});
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.at[1].time, 100000 + 800);
    assert_int_equal(s->events.at[s->events.n - 1].time, 100000 + 10 * 800);
    assert_true(s->events.at[s->events.n - 1].flags & DEC_TIME_EXACT);
}

/* PTWRITE with its address (perf's fup_on_ptw), with tracing on, within a transaction of packets, and off. */
static void ptwrite_may_have_an_address(void **state)
{
    struct script *s = *state;
    struct pt_packet packet = {.type = ppt_ptw, .payload.ptw = {.payload = 7, .plc = 0, .ip = 1}};
    script_code(s, 0x1000, 0x75, 0xfe, 0xf3, 0x0f, 0xae, 0xe0, 0x75, 0xfe); /* jne; 1002 ptwrite; 1006 jne */
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "TN");
    put(s, packet);
    put_ip(s, ppt_fup, 0x1002);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1008);
    put_ip(s, ppt_tip, 0x1002);
    packet.payload.ptw.payload = 8;
    put(s, packet);
    put_ip(s, ppt_fup, 0x1002);
    put_tnt(s, "T");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n"
                     "ptw 1002 0\n"
                     "jcc 1006 1008 not\n"
                     "async 1008 1002\n"
                     "ptw 1002 0\n"
                     "jcc 1006 1006\n");
    assert_int_equal(s->events.at[3].arg, 7);
    assert_int_equal(s->events.at[6].arg, 8);
}

static void put_bytes(struct script *s, const void *bytes, size_t n)
{
    size_t at = script_size(s);
    for (size_t i = 0; i < n; i++)
        put_plain(s, ppt_pad);
    memcpy(s->trace + at, bytes, n);
}

#define put_raw(s, ...) put_bytes(s, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* SDM, Intel PT, "Control Flow Event (CFE) Packet", "Event Data (EVD) Packet". */
static void event_trace_changes_nothing(void **state)
{
    struct script *s = *state;
    s->config.event_trace = true;
    script_code(s, 0x1000, 0x75, 0xfe, 0xfb, 0x75, 0xfe, 0x48, 0xcf); /* jne; 1002 sti; jne; 1005 iretq */
    script_code(s, 0x2000, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_raw(s, 0x99, 0x05); /* MODE.Exec: 64 bits, and IF */
    put_ip(s, ppt_fup, 0x1003);
    put_tnt(s, "N");
    put_raw(s, 0x02, 0x13, 0x82, 0x00); /* CFE: IRET, IP */
    put_ip(s, ppt_fup, 0x1005);
    put_raw(s, 0x99, 0x05);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "T");
    put_raw(s, 0x02, 0x53, 0x00, 0x13, 0x02, 0x13, 0x81, 0, 0, 0, 0); /* EVD: page fault address */
    put_raw(s, 0x02, 0x13, 0x01, 0x0e); /* CFE: INTR, vector 14; its FUP is shared */
    put_ip(s, ppt_fup, 0x2000);
    put_raw(s, 0x99, 0x01);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "N");
    put_psb(s, 0x1002, 2000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1003 1005 not\n"
                     "farret 1005 2000\n"
                     "jcc 2000 2000\n"
                     "async 2000 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1003 1005 not\n");
    assert_int_equal(s->counts.errors, 0);
}

/* Bytes of other packets that look like one of Event Trace are left alone; so is all where none can be. */
static void what_looks_like_event_trace_is_not_touched(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    for (unsigned i = 0; i < 2; i++) {
        put_psb(s, i ? 0x1002 : 0x1000, 0x53021302530213 + i);
        put_tnt(s, "N");
        s->config.event_trace = i;
    }
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1002 1004 not\n");
    assert_true(s->last_time >= 0x53021302530213);
}

/* perf's option `notnt`: what is not known is said, not guessed. */
static void a_trace_without_tnt_goes_on_at_each_address(void **state)
{
    struct script *s = *state;
    s->config.no_tnt = true;
    /* 1000 call 1010; 1005 jmp *rax; 1010 nop; jne; ret */
    script_code(s, 0x1000, 0xe8, 0x0b, 0, 0, 0, 0xff, 0xe0);
    script_code(s, 0x1010, 0x90, 0x75, 0xfd, 0xc3);
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x1005); /* of the return */
    put_ip(s, ppt_tip, 0x1013);
    put_ip(s, ppt_tip, 0x1005);
    put_ip(s, ppt_tip, 0x1010);
    put_ip(s, ppt_fup, 0x1013);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "call 1000 1010\n"
                     "gap 15\n"
                     "on 0 1005\n"
                     "jmp 1005 1013 ind\n"
                     "ret 1013 1005 ind\n"
                     "jmp 1005 1010 ind\n"
                     "gap 15\n");
    assert_non_null(strstr(s->detail, "no TNT packets"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_guest_is_a_gap),
        SCRIPT_TEST(a_guest_of_another_mode),
        SCRIPT_TEST(a_trace_may_begin_in_a_guest),
        SCRIPT_TEST(tracing_may_go_on_and_off_in_a_guest),
        SCRIPT_TEST(an_overflow_hides_who_runs),
        SCRIPT_TEST(a_guest_that_traces_itself_is_no_gap),
        SCRIPT_TEST(an_overflow_may_end_a_psb),
        SCRIPT_TEST(an_overflow_hides_the_mode),
        SCRIPT_TEST(the_mode_is_known_again),
        SCRIPT_TEST(an_address_may_tell_the_mode),
        SCRIPT_TEST(dropped_counts_are_made_up_by_the_next),
        SCRIPT_TEST(ptwrite_may_have_an_address),
        SCRIPT_TEST(event_trace_changes_nothing),
        SCRIPT_TEST(what_looks_like_event_trace_is_not_touched),
        SCRIPT_TEST(a_trace_without_tnt_goes_on_at_each_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
