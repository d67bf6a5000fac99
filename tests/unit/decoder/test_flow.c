/* Control flow: each kind of branch and event, on a few bytes of code. */
#include "flow_script.h"

#include "decoder/event/event.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(conditional_branches_follow_their_bits),
        SCRIPT_TEST(calls_push_and_compressed_returns_pop),
        SCRIPT_TEST(an_uncompressed_return_pops_too),
        SCRIPT_TEST(a_call_to_the_next_instruction_is_not_pushed),
        SCRIPT_TEST(the_return_stack_keeps_the_youngest_64),
        SCRIPT_TEST(a_system_call_leaves_and_resumes),
        SCRIPT_TEST(a_system_call_that_goes_on_elsewhere_is_not_resumed),
        SCRIPT_TEST(an_interrupt_ends_the_stretch_where_it_came),
        SCRIPT_TEST(an_interrupt_before_the_first_instruction_keeps_both_ends),
        SCRIPT_TEST(an_interrupt_within_a_kernel_trace_is_one_branch),
        SCRIPT_TEST(an_indirect_call_may_leave_without_an_address),
        SCRIPT_TEST(a_branch_out_of_the_filter_has_its_target),
        SCRIPT_TEST(an_overflow_is_a_gap_and_goes_on),
        SCRIPT_TEST(an_overflow_while_off_waits_for_tracing),
        SCRIPT_TEST(a_trace_of_32_bit_code),
        SCRIPT_TEST(a_mode_change_takes_effect_at_its_branch),
        SCRIPT_TEST(a_transaction_that_aborts),
        SCRIPT_TEST(an_abort_behind_a_wrong_packet),
        SCRIPT_TEST(ptwrite_is_an_event_with_its_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
