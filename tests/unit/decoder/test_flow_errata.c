/* What CPUs send against their manual (decoder/pt/errata.h), a trace of each. */
#include "flow_script.h"

#include "decoder/pt/errata.h"

enum {
    BROADWELL = 0x3d,
    SKYLAKE = 0x5e,
    SKYLAKE_SERVER = 0x55,
    GOLDMONT = 0x5c,
    ALDER_LAKE = 0x97,
    ATOM = 0xb6
};

static void on_cpu(struct script *s, uint8_t model)
{
    s->config.family = 6;
    s->config.model = model;
}

static void put_raw(struct script *s, const void *bytes, size_t n)
{
    size_t at = script_size(s);
    for (size_t i = 0; i < n; i++)
        put_plain(s, ppt_pad);
    memcpy(s->trace + at, bytes, n);
}

static void each_cpu_has_its_errata(void **state)
{
    struct pt_errata e;
    struct dec_pt_config config = {.family = 6, .model = ALDER_LAKE};
    (void)state;
    pt_errata_of(&config, &e);
    assert_true(e.bdm70 && e.skl014 && e.skd022 && e.apl11);
    assert_false(e.bdm64 || e.skd007 || e.skz84 || e.apl12);
    config.model = 0xcf;
    pt_errata_of(&config, &e);
    assert_true(e.bdm70 && e.skz84);
    config.model = ATOM;
    pt_errata_of(&config, &e);
    assert_true(e.apl11);
    assert_false(e.bdm70);
    config.model = 0x01; /* of no family that has PT */
    pt_errata_of(&config, &e);
    assert_memory_equal(&e, &(struct pt_errata){0}, sizeof(e));
    config.family = 0x13;
    pt_errata_of(&config, &e);
    assert_true(e.skz84);
}

/* What libipt knows, this table has too. */
static void the_table_has_what_libipt_knows(void **state)
{
    (void)state;
    for (unsigned model = 0; model < 256; model++) {
        struct pt_cpu cpu = {.vendor = pcv_intel, .family = 6, .model = (uint8_t)model};
        struct pt_errata theirs, ours;
        if (pt_cpu_errata(&theirs, &cpu) < 0)
            continue;
        pt_errata_of(&(struct dec_pt_config){.family = 6, .model = (uint8_t)model}, &ours);
        if (theirs.bdm64 > ours.bdm64 || theirs.bdm70 > ours.bdm70 || theirs.skd007 > ours.skd007 ||
            theirs.skd010 > ours.skd010 || theirs.skd022 > ours.skd022 || theirs.skl014 > ours.skl014 ||
            theirs.skl168 > ours.skl168 || theirs.apl11 > ours.apl11 || theirs.apl12 > ours.apl12)
            fail_msg("model 0x%x", model);
    }
}

/* BDM70: the PSB+ before a TIP.PGE says that tracing is on. Newer than the libipt of Debian 12. */
static void bdm70_a_start_that_is_told_too_early(void **state)
{
    struct script *s = *state;
    on_cpu(s, ALDER_LAKE);
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pgd, 0);
    put_psb(s, 0x1000, 2000);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "off 1002 0 async\n"
                     "on 0 1002 resumed\n"
                     "jcc 1002 1004 not\n");
}

/* SKD007: an OVF instead of the rest of a CYC. */
static void skd007_an_overflow_within_a_cyc(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE);
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_cyc(s, 3);
    put_tnt(s, "N");
    put_raw(s, (const uint8_t[]){0x47, 0x02, 0xf3}, 3);
    put_ip(s, ppt_fup, 0x1000);
    put_tnt(s, "N");
    put_psb(s, 0x1002, 5000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1002 1004 not\n");
    assert_int_equal(s->counts.errors, 0);
    assert_int_equal(s->counts.overflows, 1);
}

/* SKD010: the FUP behind an OVF is missing; what follows tells that tracing is on. */
static void skd010_an_overflow_without_an_address(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE);
    script_code(s, 0x1000, 0xff, 0xe0, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip, 0x1000);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_tip, 0x1002);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jmp 1000 1000 ind\n"
                     "gap 1\n"
                     "on 0 1002\n"
                     "jcc 1002 1004 not\n");
    assert_int_equal(s->counts.errors, 0);
}

/* SKD022: a FUP before the TIP.PGD of a VM entry that ends tracing. */
static void skd022_a_vm_entry_that_ends_tracing(void **state)
{
    struct script *s = *state;
    on_cpu(s, ALDER_LAKE);
    script_code(s, 0x1000, 0x75, 0xfe, 0x0f, 0x01, 0xc3, 0x75, 0xfe); /* jne; 1002 vmresume; 1005 jne */
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1005);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1007); /* an interrupt is one */
    put_ip(s, ppt_tip_pgd, 0);
    script_code(s, 0x1007, 0x90);
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "farret 1002 0\n"
                     "off 1002 0\n"
                     "on 0 1005\n"
                     "jcc 1005 1007 not\n"
                     "off 1007 0 async\n");
    assert_int_equal(s->counts.far_return, 1);
}

/* On others it was interrupted. */
static void an_interrupt_before_a_vm_entry(void **state)
{
    struct script *s = *state;
    on_cpu(s, BROADWELL);
    script_code(s, 0x1000, 0x75, 0xfe, 0x0f, 0x01, 0xc3);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "off 1002 0 async\n");
    assert_int_equal(s->slow, 0);
}

/* SKL014: no address where a direct branch left the filter. Which one it was is not guessed. */
static void skl014_a_branch_out_of_the_filter_without_an_address(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE);
    s->config.filtered = true;
    script_code(s, 0x1000, 0x75, 0xfe, 0xe8, 0xf9, 0x0f, 0, 0, 0x0f, 0x05); /* jne; 1002 call 2000; syscall */
    script_code(s, 0x2000, 0xc3);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1007);
    put_ip(s, ppt_tip_pgd, 0); /* no direct branch stands before this one */
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 3\n"
                     "on 0 1007\n"
                     "farcall 1007 0\n"
                     "off 1007 0\n");
    assert_non_null(strstr(s->detail, "SKL014"));
    assert_int_equal(s->counts.call, 0);
}

/* Without a filter the CPU leaves it out where it should: at a return or system call. */
static void a_branch_without_an_address_is_that_of_the_kernel(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE);
    script_code(s, 0x1000, 0xe8, 0xfb, 0x0f, 0, 0);
    script_code(s, 0x2000, 0x0f, 0x05);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "call 1000 2000\n"
                     "farcall 2000 0\n"
                     "off 2000 0\n");
    assert_int_equal(s->slow, 0);
}

/* APL11: a TIP.PGD behind an OVF, of tracing that had ended. */
static void apl11_an_end_behind_an_overflow(void **state)
{
    struct script *s = *state;
    on_cpu(s, ATOM);
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->counts.errors, 0);
}

/* APL12: a FUP behind an OVF, though tracing is off. */
static void apl12_an_address_behind_an_overflow(void **state)
{
    struct script *s = *state;
    on_cpu(s, GOLDMONT);
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pge, 0x1000);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "gap 1\n"
                     "on 0 1000\n"
                     "jcc 1000 1002 not\n");
    assert_int_equal(s->counts.errors, 0);
}

static void put_counted_psb(struct script *s, uint64_t tsc, uint16_t ctc)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put(s, (struct pt_packet){.type = ppt_tma, .payload.tma = {.ctc = ctc}});
    put(s, (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = 10});
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
}

/* SKL168: a CYC and its MTC are lost before a PSB. Time stands still there, and goes on with the PSB's. */
static void skl168_a_cyc_that_is_lost_before_a_psb(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE);
    s->config.mtc_freq = 3;
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    s->config.nom_freq = 10;
    script_code(s, 0x1000, 0xff, 0xe0);
    put_counted_psb(s, 100000, 0x40 << 3);
    put_cyc(s, 700);
    put_ip(s, ppt_tip, 0x1000);
    /* a CYC of 900 and the MTC 0x41, and of it what came behind, are lost */
    put_ip(s, ppt_tip, 0x1000);
    put_counted_psb(s, 101700, (0x42 << 3) + 1);
    put_cyc(s, 50);
    put_ip(s, ppt_tip, 0x1000);
    assert_int_equal(script_run(s), 0);
    assert_int_equal(s->events.n, 4);
    assert_int_equal(s->events.at[1].time, 100700);
    assert_in_range(s->events.at[2].time, 100700, 101700);
    assert_int_equal(s->events.at[3].time, 101750);
}

/* SKZ84: in a guest whose TSC is offset TMA packets are damaged, and have a byte too many. MTC packets then
 * count from nothing that is known. */
static void skz84_a_damaged_tma(void **state)
{
    struct script *s = *state;
    on_cpu(s, SKYLAKE_SERVER);
    s->config.mtc_freq = 3;
    s->config.cpuid15_eax = 2;
    s->config.cpuid15_ebx = 200;
    script_code(s, 0x1000, 0x75, 0xfe, 0x75, 0xfe);
    put_plain(s, ppt_psb);
    put_tsc(s, 100000);
    put_raw(s, (const uint8_t[]){0x02, 0x73, 0x34, 0x12, 0x99, 0x77, 0xfe, 0x55}, 8);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_fup, 0x1000);
    put_plain(s, ppt_psbend);
    put_tnt(s, "N");
    put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc.ctc = 0x41});
    put_tnt(s, "N");
    put_psb(s, 0, 200000);
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "jcc 1002 1004 not\n");
    assert_int_equal(s->events.at[0].time, 100000);
    assert_in_range(s->events.at[2].time, 100000, 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(each_cpu_has_its_errata),
        SCRIPT_TEST(the_table_has_what_libipt_knows),
        SCRIPT_TEST(bdm70_a_start_that_is_told_too_early),
        SCRIPT_TEST(skd007_an_overflow_within_a_cyc),
        SCRIPT_TEST(skd010_an_overflow_without_an_address),
        SCRIPT_TEST(skd022_a_vm_entry_that_ends_tracing),
        SCRIPT_TEST(an_interrupt_before_a_vm_entry),
        SCRIPT_TEST(skl014_a_branch_out_of_the_filter_without_an_address),
        SCRIPT_TEST(a_branch_without_an_address_is_that_of_the_kernel),
        SCRIPT_TEST(apl11_an_end_behind_an_overflow),
        SCRIPT_TEST(apl12_an_address_behind_an_overflow),
        SCRIPT_TEST(skl168_a_cyc_that_is_lost_before_a_psb),
        SCRIPT_TEST(skz84_a_damaged_tma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
