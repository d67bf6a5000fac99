/* Control flow: each kind of branch, event and damage, on a few bytes of code. */
#include "flow_script.h"

#include "decoder/event.h"

static int setup(void **state)
{
    struct script *s = calloc(1, sizeof(*s));
    if (!s)
        return -1;
    script_open(s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    script_close(*state);
    free(*state);
    return 0;
}

static void conditional_branches_follow_their_bits(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x75, 0x01, 0x90, /* 1000 nop; 1001 jne 1004; 1003 nop */
                0x75, 0xfa, 0x90);                 /* 1004 jne 1000; 1006 nop */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TTNN");
    script_expect(s, "on 0 1000\n"
                     "jcc 1001 1004\n"
                     "jcc 1004 1000\n"
                     "jcc 1001 1003 not\n"
                     "jcc 1004 1006 not\n");
    assert_int_equal(s->counts.cond_jump, 4);
    assert_int_equal(s->counts.taken, 2);
    assert_int_equal(s->counts.instructions,
                     7); /* none behind the last packet: nothing tells how far it went */
    assert_int_equal(s->counts.errors, 0);
    assert_int_equal(s->events.at[3].arg, 2); /* nop, jne */
}

static void calls_push_and_compressed_returns_pop(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xe8, 0x06, 0, 0, 0, /* 1000 call 100b */
                0xff, 0xd0,                     /* 1005 call *rax */
                0x75, 0xfe, 0x90, 0x90,         /* 1007 jne 1007 */
                0xc3);                          /* 100b ret */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x100b);
    put_tnt(s, "TN");
    script_expect(s, "on 0 1000\n"
                     "call 1000 100b\n"
                     "ret 100b 1005 ind\n"
                     "call 1005 100b ind\n"
                     "ret 100b 1007 ind\n"
                     "jcc 1007 1009 not\n");
    assert_int_equal(s->counts.call, 2);
    assert_int_equal(s->counts.ret, 2);
    assert_int_equal(s->counts.indirect, 3);
}

/* The processor takes its entry off the return stack also when the return goes elsewhere and is not
 * compressed: the next compressed return then belongs to the call before. */
static void an_uncompressed_return_pops_too(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xe8, 0x0b, 0, 0, 0,  /* 1000 call 1010 */
                0x75, 0xfe);                     /* 1005 jne 1005 */
    script_code(s, 0x1010, 0xe8, 0x0b, 0, 0, 0); /* 1010 call 1020 */
    script_code(s, 0x1020, 0xc3);                /* 1020 ret, to 1030 */
    script_code(s, 0x1030, 0xc3);                /* 1030 ret, to 1005 */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x1030);
    put_tnt(s, "TN");
    script_expect(s, "on 0 1000\n"
                     "call 1000 1010\n"
                     "call 1010 1020\n"
                     "ret 1020 1030 ind\n"
                     "ret 1030 1005 ind\n"
                     "jcc 1005 1007 not\n");
}

static void a_call_to_the_next_instruction_is_not_pushed(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xe8, 0x06, 0, 0, 0,     /* 1000 call 100b */
                0x75, 0xfe, 0x90, 0x90, 0x90, 0x90, /* 1005 jne 1005 */
                0xe8, 0, 0, 0, 0,                   /* 100b call 1010 */
                0xc3);                              /* 1010 ret, to 1005: compressed against the first call */
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TN");
    script_expect(s, "on 0 1000\n"
                     "call 1000 100b\n"
                     "call 100b 1010 zero\n"
                     "ret 1010 1005 ind\n"
                     "jcc 1005 1007 not\n");
}

static void the_return_stack_keeps_the_youngest_64(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0x07,        /* 1000 jne 1009 */
                0xe8, 0xf9, 0xff, 0xff, 0xff, /* 1002 call 1000 */
                0xeb, 0x00,                   /* 1007 jmp 1009 */
                0xc3);                        /* 1009 ret */
    put_psb(s, 0x1000, 0);
    for (int i = 0; i < 70; i++)
        put_tnt(s, "N");
    for (int i = 0; i < 1 + 64; i++)
        put_tnt(s, "T");
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.call, 70);
    assert_int_equal(s->counts.ret, 64);
    assert_int_equal(s->counts.errors, 0);

    put_tnt(s, "T"); /* a 65th compressed return has no call in the stack */
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->counts.ret, 64);
    assert_int_equal(s->counts.errors, 1);
}

static void a_system_call_leaves_and_resumes(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x0f, 0x05, 0x75, 0xfe); /* 1000 nop; 1001 syscall; 1003 jne 1003 */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1003);
    put_tnt(s, "N");
    put_plain(s, ppt_pad);
    script_expect(s, "on 0 1000\n"
                     "farcall 1001 0\n"
                     "off 1001 0\n"
                     "on 0 1003 resumed\n"
                     "jcc 1003 1005 not\n");
    assert_int_equal(s->counts.far_call, 1);
}

static void a_system_call_that_goes_on_elsewhere_is_not_resumed(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x0f, 0x05, 0x90, 0x75, 0xfe); /* 1000 syscall; 1002 nop; 1003 jne */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1003); /* a signal handler, say */
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "farcall 1000 0\n"
                     "off 1000 0\n"
                     "on 0 1003\n"
                     "jcc 1003 1005 not\n");
}

static void an_interrupt_ends_the_stretch_where_it_came(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x90, 0x90, 0x75, 0xfe); /* 1000 nop nop nop; 1003 jne 1003 */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1002);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, 0x1003);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "off 1002 0 async\n"
                     "on 0 1002 resumed\n"
                     "jcc 1003 1003\n"
                     "off 1003 0 async\n");
    assert_int_equal(s->counts.instructions, 4);
}

static void an_interrupt_before_the_first_instruction_keeps_both_ends(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x75, 0xfe);
    put_psb(s, 0, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_ip(s, ppt_fup, 0x1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "off 1000 0 async\n"
                     "on 0 1000 resumed\n"
                     "jcc 1001 1003 not\n");
}

static void an_interrupt_within_a_kernel_trace_is_one_branch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x90, 0x90, 0x75, 0xfe); /* 1002 jne 1002 */
    script_code(s, 0xffffffff81000000, 0x48, 0xcf); /* iretq */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_fup, 0x1001);
    put_ip(s, ppt_tip, 0xffffffff81000000);
    put_ip(s, ppt_tip, 0x1001);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "async 1001 ffffffff81000000\n"
                     "farret ffffffff81000000 1001\n"
                     "jcc 1002 1004 not\n");
    assert_true(s->events.at[1].flags & DEC_KERNEL_TO);
    assert_true(s->events.at[2].flags & DEC_KERNEL_FROM);
    assert_false(s->events.at[2].flags & DEC_KERNEL_TO);
}

/* Hardware may send no address when tracing goes off at an indirect call. */
static void an_indirect_call_may_leave_without_an_address(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xd0, 0x75, 0xfe); /* 1000 call *rax; 1002 jne */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "call 1000 0 ind\n"
                     "off 1000 0\n"
                     "on 0 1002 resumed\n"
                     "jcc 1002 1004 not\n");
}

static void a_branch_out_of_the_filter_has_its_target(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xeb, 0x00,  /* 1000 jmp 1002: stays */
                0xe8, 0xf9, 0x0f, 0, 0, /* 1002 call 2000: leaves */
                0x75, 0xfe);            /* 1007 jne */
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip_pgd, 0x2000);
    put_ip(s, ppt_tip_pge, 0x1007);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 1002\n"
                     "call 1002 2000\n"
                     "off 1002 0\n"
                     "on 0 1007 resumed\n"
                     "jcc 1007 1009 not\n");
}

static void an_overflow_is_a_gap_and_goes_on(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xe8, 0x0b, 0, 0, 0, 0x75, 0xfe); /* 1000 call 1010; 1005 jne */
    script_code(s, 0x1010, 0xc3);
    put_psb(s, 0x1000, 0);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x1005);
    put_tnt(s, "N");
    assert_int_equal(script_run(s), 0);
    assert_non_null(strstr(s->text.at, "gap 1\non 0 1005\njcc 1005 1007 not\n"));
    assert_int_equal(s->counts.overflows, 1);
    assert_int_equal(s->counts.gaps, 1);
    assert_int_equal(s->counts.errors, 0);
}

static void an_overflow_while_off_waits_for_tracing(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n");
}

static void a_trace_of_32_bit_code(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x40, 0x40,            /* 1000 inc eax; inc eax (REX prefixes in 64-bit code) */
                0xe8, 0xf9, 0xef, 0xff, 0xff);    /* 1002 call 0 */
    script_code(s, 0xfffffff0, 0x75, 0xfe, 0xc3); /* never reached by 64-bit arithmetic */
    script_code(s, 0x0, 0xeb, 0xee);              /* 0 jmp fffffff0, wrapped */
    put_psb_mode(s, 0x1000, 0, ptem_32bit);
    put_tnt(s, "NT");
    script_expect(s, "on 0 1000\n"
                     "call 1002 0\n"
                     "jmp 0 fffffff0\n"
                     "jcc fffffff0 fffffff2 not\n"
                     "ret fffffff2 1007 ind\n");
}

static void a_mode_change_takes_effect_at_its_branch(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x48, 0xcb);       /* 1000 retfq */
    script_code(s, 0x2000, 0x40, 0x75, 0xfe); /* 2000 inc eax; 2001 jne 2001 */
    put_psb(s, 0x1000, 0);
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, 0x2000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "farret 1000 2000\n"
                     "jcc 2001 2003 not\n");
    assert_int_equal(s->counts.instructions, 3);
}

static void put_tsx(struct script *s, bool in, bool abort)
{
    struct pt_packet packet = {.type = ppt_mode};
    packet.payload.mode.leaf = pt_mol_tsx;
    packet.payload.mode.bits.tsx.intx = in;
    packet.payload.mode.bits.tsx.abrt = abort;
    put(s, packet);
}

static void a_transaction_that_aborts(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xc7, 0xf8, 0x0a, 0, 0, 0, /* 1000 xbegin 1010 */
                0x75, 0xfe, 0x90, 0x90, 0x90);        /* 1006 jne 1006; 1008 nop nop nop */
    script_code(s, 0x1010, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tsx(s, true, false);
    put_ip(s, ppt_fup, 0x1006);
    put_tnt(s, "N");
    put_tsx(s, false, true);
    put_ip(s, ppt_fup, 0x1009);
    put_ip(s, ppt_tip, 0x1010);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1006 1008 not tx\n"
                     "async 1009 1010 abort\n"
                     "jcc 1010 1012 not\n");
}

/* Erratum BDM64: the packet of the branch before an abort is wrong on some CPUs. */
static void an_abort_behind_a_wrong_packet(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0xff, 0xe0);       /* 1000 jmp *rax */
    script_code(s, 0x2000, 0x90, 0x75, 0xfe); /* where it went */
    script_code(s, 0x3000, 0x90, 0xc3);       /* where its packet says it went */
    script_code(s, 0x4000, 0x75, 0xfe);
    s->config.family = 6;
    s->config.model = 0x3d;
    s->config.stepping = 4;
    put_psb(s, 0x1000, 0);
    put_ip(s, ppt_tip, 0x3000);
    put_tsx(s, false, true);
    put_ip(s, ppt_fup, 0x2000);
    put_ip(s, ppt_tip, 0x4000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 2000 ind\n"
                     "async 2000 4000 abort\n"
                     "jcc 4000 4002 not\n");
}

static void ptwrite_is_an_event_with_its_payload(void **state)
{
    struct script *s = *state;
    struct pt_packet packet = {.type = ppt_ptw};
    script_code(s, 0x1000, 0x90, 0xf3, 0x48, 0x0f, 0xae, 0xe0, 0x75, 0xfe); /* 1001 ptwrite rax; 1006 jne */
    put_psb(s, 0x1000, 0);
    packet.payload.ptw.payload = 0x1122334455667788;
    packet.payload.ptw.plc = 1;
    put(s, packet);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "ptw 1001 0\n"
                     "jcc 1006 1008 not\n");
    assert_int_equal(s->events.at[1].arg, 0x1122334455667788);
    assert_int_equal(s->counts.instructions, 3);
}

/* ---- time ---- */

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

/* ---- code ---- */

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

/* ---- damage ---- */

static void a_broken_packet_costs_up_to_the_next_psb(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, 0x1000);
    size_t bad = script_size(s);
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "T");
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TN");
    s->trace[bad] = 0x02; /* no packet begins so */
    s->trace[bad + 1] = 0xff;
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 5\n"
                     "on 0 1000\n"
                     "jcc 1000 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->counts.errors, 1);
}

static void an_empty_or_senseless_trace_is_nothing(void **state)
{
    struct script *s = *state;
    struct dec_piece piece = {.bytes = s->trace, .size = 0};
    assert_int_equal(script_run_pieces(s, &piece, 1), 0);
    assert_int_equal(s->events.n, 0);
    assert_int_equal(script_run_pieces(s, NULL, 0), 0);
    memset(s->trace, 0xa5, 4096);
    piece.size = 4096;
    assert_int_equal(script_run_pieces(s, &piece, 1), 0);
    assert_int_equal(s->events.n, 0);
    assert_int_equal(s->counts.bytes, 4096);
}

/* However a trace ends, what was decoded before stays as it was. */
static void a_trace_cut_anywhere_is_a_beginning_of_the_whole(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0x02, 0xff, 0xe0, 0x0f, 0x05, 0xe8, 0xf5, 0xff, 0xff,
                0xff); /* jne 1004; jmp; syscall; call 1000 */
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "TN");
    for (int i = 0; i < 20; i++) {
        put_tnt(s, "N");
        put_tsc(s, 2000 + (uint64_t)i);
        put_ip(s, ppt_tip, 0x1000);
        put_tnt(s, "T");
        put_ip(s, ppt_tip_pgd, 0);
        put_mode(s, ptem_64bit);
        put_ip(s, ppt_tip_pge, 0x1000);
        put_psb(s, 0x1000, 3000 + (uint64_t)i);
    }
    assert_int_equal(script_run(s), 0);
    char *whole = strdup(s->text.at);
    assert_non_null(whole);
    for (s->cut = 1; s->cut < script_size(s); s->cut++) {
        assert_int_equal(script_run(s), 0);
        assert_memory_equal(s->text.at, whole, strlen(s->text.at));
    }
    free(whole);
}

/* ---- pieces ---- */

static void pieces_that_follow_on_are_one_trace(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe, 0xff, 0xe0);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "TTTN");
    put_ip(s, ppt_tip, 0x1000);
    put_tnt(s, "N");
    size_t size = script_size(s), half = size - 5; /* within the TIP */
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = half, .offset = 4096},
                                 {.bytes = s->trace + half, .size = size - half, .offset = 4096 + half}};
    script_expect(s, "on 0 1000\njcc 1000 1000\njcc 1000 1000\njcc 1000 1000\njcc 1000 1002 not\n"
                     "jmp 1002 1000 ind\njcc 1000 1002 not\n");
    char *whole = strdup(s->text.at);
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    free(whole);
}

static void lost_bytes_between_pieces_are_a_gap(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 0);
    put_tnt(s, "T");
    size_t size = script_size(s);
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = size},
                                 {.bytes = s->trace, .size = size, .offset = size + 8}};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, "on 0 1000\njcc 1000 1000\ngap 9\non 0 1000\njcc 1000 1000\n");
    pieces[1].offset = size;
    pieces[1].truncated = true;
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, "on 0 1000\njcc 1000 1000\ngap 9\non 0 1000\njcc 1000 1000\n");
    assert_int_equal(s->counts.errors, 0);
}

/* Snapshots of an overwritten ring: the second begins before the first ended. */
static void snapshots_that_overlap_are_decoded_once(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "TT");
    size_t second = script_size(s);
    put_psb(s, 0x1000, 2000);
    put_tnt(s, "T");
    size_t first_end = script_size(s);
    put_tnt(s, "TT");
    put_psb(s, 0x1000, 3000);
    put_tnt(s, "N");
    size_t size = script_size(s);
    s->snapshot = true;
    assert_int_equal(script_run(s), 0);
    char *whole = strdup(s->text.at);
    struct dec_piece pieces[] = {{.bytes = s->trace, .size = first_end},
                                 {.bytes = s->trace + second - 1, .size = size - second + 1}};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    assert_int_equal(s->counts.bytes, size);
    /* the second holds nothing that the first did not have */
    pieces[0].size = size;
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at, whole);
    /* they do not touch: a gap */
    pieces[0].size = second;
    pieces[1] = (struct dec_piece){.bytes = s->trace + first_end, .size = size - first_end};
    assert_int_equal(script_run_pieces(s, pieces, 2), 0);
    assert_string_equal(s->text.at,
                        "on 0 1000\njcc 1000 1000\njcc 1000 1000\ngap 7\non 0 1000\njcc 1000 1002 not\n");
    free(whole);
}

static void an_overwritten_ring_begins_with_a_gap(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x75, 0xfe);
    s->overwritten = true;
    put_psb(s, 0x1000, 1234);
    put_tnt(s, "N");
    script_expect(s, "gap 7\non 0 1000\njcc 1000 1002 not\n");
    assert_int_equal(s->events.at[0].time, 1234);
}

/* ---- callers ---- */

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
        cmocka_unit_test_setup_teardown(conditional_branches_follow_their_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_push_and_compressed_returns_pop, setup, teardown),
        cmocka_unit_test_setup_teardown(an_uncompressed_return_pops_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_to_the_next_instruction_is_not_pushed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_return_stack_keeps_the_youngest_64, setup, teardown),
        cmocka_unit_test_setup_teardown(a_system_call_leaves_and_resumes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_system_call_that_goes_on_elsewhere_is_not_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_ends_the_stretch_where_it_came, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_before_the_first_instruction_keeps_both_ends, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_within_a_kernel_trace_is_one_branch, setup, teardown),
        cmocka_unit_test_setup_teardown(an_indirect_call_may_leave_without_an_address, setup, teardown),
        cmocka_unit_test_setup_teardown(a_branch_out_of_the_filter_has_its_target, setup, teardown),
        cmocka_unit_test_setup_teardown(an_overflow_is_a_gap_and_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(an_overflow_while_off_waits_for_tracing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_of_32_bit_code, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mode_change_takes_effect_at_its_branch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_transaction_that_aborts, setup, teardown),
        cmocka_unit_test_setup_teardown(an_abort_behind_a_wrong_packet, setup, teardown),
        cmocka_unit_test_setup_teardown(ptwrite_is_an_event_with_its_payload, setup, teardown),
        cmocka_unit_test_setup_teardown(times_between_points_are_spread_and_points_are_marked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(mtc_packets_count_from_tma, setup, teardown),
        cmocka_unit_test_setup_teardown(mtc_counts_past_its_8_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(mtc_of_a_long_period_has_bits_that_tma_lacks, setup, teardown),
        cmocka_unit_test_setup_teardown(cycles_count_at_the_bus_ratio, setup, teardown),
        cmocka_unit_test_setup_teardown(cycles_never_pass_the_next_point, setup, teardown),
        cmocka_unit_test_setup_teardown(cycles_are_measured_where_no_ratio_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(time_that_passed_outside_is_not_spread_over_instructions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_upper_bits_of_tsc_come_from_the_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_without_time_has_time_0, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_code_is_one_gap_and_decoding_goes_on_behind_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(code_without_a_file_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(code_follows_the_mappings_over_time, setup, teardown),
        cmocka_unit_test_setup_teardown(an_instruction_may_cross_mappings, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_instruction_are_a_mismatch, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_where_a_bit_is_due_is_a_mismatch, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_goes_round_without_trace_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_jump_to_itself_that_is_interrupted_is_no_mismatch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_broken_packet_costs_up_to_the_next_psb, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_or_senseless_trace_is_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_cut_anywhere_is_a_beginning_of_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(pieces_that_follow_on_are_one_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_bytes_between_pieces_are_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(snapshots_that_overlap_are_decoded_once, setup, teardown),
        cmocka_unit_test_setup_teardown(an_overwritten_ring_begins_with_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(what_emit_returns_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_where_returns_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_change_while_tracing_is_off, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cpu_feature_names_the_errata, setup, teardown),
        cmocka_unit_test_setup_teardown(the_words_of_perf_become_the_configuration, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
