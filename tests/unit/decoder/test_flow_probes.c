/* Uprobes of any tracer: what runs in memory is another code than the file's. */
#include "flow_script.h"

enum { TRAMPOLINE = 0x7000 };

/* 1000 call 2000; 1005 jne; 1007 jmp *%rax. 2000 nop of 5 bytes; 2005 ret. 3000 nop of 5 bytes; jne; syscall
 */
static void code_with_nops(struct script *s)
{
    script_code(s, 0x1000, 0xe8, 0xfb, 0x0f, 0, 0, 0x75, 0xfe, 0xff, 0xe0);
    script_code(s, 0x2000, 0x0f, 0x1f, 0x44, 0, 0, 0xc3);
    script_code(s, 0x3000, 0x0f, 0x1f, 0x44, 0, 0, 0x75, 0xfe, 0x0f, 0x05);
}

/* The kernel has mapped it: some probe of the process was optimised. */
static void trampoline(struct script *s)
{
    struct dec_image_id id = {.path = "[uprobes-trampo", .pid = 7}; /* as the kernel cuts it */
    struct dec_image *image;
    assert_int_equal(dec_images_get(s->images, &id, &image, NULL), 0);
    assert_int_equal(dec_space_map(s->space, 0, TRAMPOLINE, 0x1000, 0, image, NULL), 0);
}

/* At 2000 a CALL to the trampoline stands in memory, whose system call is not traced. */
static void an_optimised_probe_is_a_gap(void **state)
{
    struct script *s = *state;
    code_with_nops(s);
    trampoline(s);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, TRAMPOLINE + 0xd);
    put_tnt(s, "TTN"); /* back to 2005, to 1005, jne */
    put_ip(s, ppt_tip, 0x1005);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "call 1000 2000\n"
                     "gap 3\n"
                     "gap 11\n"
                     "on 0 1005\n"
                     "jcc 1005 1007 not\n");
    assert_non_null(strstr(s->detail, "[uprobes-trampoline]"));
    assert_int_equal(s->counts.ret, 0);
}

/* Of Linux 7.2 on: lea -0x80(%rsp),%rsp and a CALL, where the file has a NOP of 10 bytes. */
static void a_longer_nop_may_be_one(void **state)
{
    struct script *s = *state;
    script_code(s, 0x1000, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xe8, 0xf1, 0x0f, 0, 0);
    script_code(s, 0x2000, 0x0f, 0x05);
    trampoline(s);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip_pgd, 0);
    script_expect(s, "on 0 1000\n"
                     "gap 3\n");
}

/* Where the kernel is traced, its entry follows. */
static void an_optimised_probe_with_the_kernel(void **state)
{
    struct script *s = *state;
    code_with_nops(s);
    trampoline(s);
    struct dec_space *kernel;
    static const uint8_t entry[] = {0x75, 0xfe, 0x0f, 0x07}; /* jne; sysret */
    struct dec_image *image;
    uint8_t *copy = malloc(sizeof(entry));
    assert_non_null(copy);
    memcpy(copy, entry, sizeof(entry));
    assert_int_equal(dec_images_add_bytes(s->images, "kernel", copy, sizeof(entry), &image, NULL), 0);
    assert_int_equal(dec_space_new(NULL, &kernel, NULL), 0);
    assert_int_equal(dec_space_map(kernel, 0, 0xffffffff81000000, sizeof(entry), 0, image, NULL), 0);
    struct dec_space *user = s->space;
    assert_int_equal(dec_space_new(kernel, &s->space, NULL), 0);
    code_with_nops(s);
    trampoline(s);
    put_psb(s, 0x1000, 1000);
    put_ip(s, ppt_tip, 0xffffffff81000000);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, TRAMPOLINE + 0xd);
    put_tnt(s, "TTN");
    put_ip(s, ppt_tip, 0x1005);
    put_tnt(s, "N");
    assert_int_equal(script_run(s), 0);
    assert_string_equal(s->text.at, "on 0 1000\n"
                                    "call 1000 2000\n"
                                    "gap 3\n"
                                    "on 0 ffffffff81000000\n"
                                    "jcc ffffffff81000000 ffffffff81000002 not\n"
                                    "farret ffffffff81000002 700d\n"
                                    "gap 11\n"
                                    "on 0 1005\n"
                                    "jcc 1005 1007 not\n");
    dec_space_free(s->space);
    dec_space_free(kernel);
    s->space = user;
}

/* A NOP behind which the trace goes on as the file says was no probe; nor is any where none was optimised. */
static void a_nop_is_no_probe(void **state)
{
    struct script *s = *state;
    code_with_nops(s);
    for (int i = 0; i < 2; i++) {
        put_psb(s, 0x3000, 1000 + (uint64_t)i);
        put_tnt(s, "TN");
        put_ip(s, ppt_tip_pgd, 0);
        put_ip(s, ppt_tip_pge, 0x1000);
        put_tnt(s, "T");
        put_ip(s, ppt_fup, 0x1005);
        put_ip(s, ppt_tip_pgd, 0);
        script_expect(s, "on 0 3000\n"
                         "jcc 3005 3005\n"
                         "jcc 3005 3007 not\n"
                         "farcall 3007 0\n"
                         "off 3007 0\n"
                         "on 0 1000\n"
                         "call 1000 2000\n"
                         "ret 2005 1005 ind\n"
                         "off 1005 0 async\n");
        assert_int_equal(s->counts.gaps, 0);
        assert_int_equal(s->slow, i); /* with optimised probes it is libipt's walk that decodes */
        script_close(s);
        script_open(s);
        code_with_nops(s);
        trampoline(s);
    }
}

/* A breakpoint interrupts where it stands; the kernel did the instruction, `push %rbp`, itself, or elsewhere.
 */
static void a_breakpoint_of_another_tracer(void **state)
{
    struct script *s = *state;
    struct dec_image_id id = {.path = "[uprobes]", .pid = 7};
    struct dec_image *image;
    script_code(s, 0x1000, 0x75, 0xfe, 0x55, 0x75, 0xfe, 0x48, 0x29, 0xc8, 0x75,
                0xfe); /* jne; push; jne; sub; jne */
    assert_int_equal(dec_images_get(s->images, &id, &image, NULL), 0);
    assert_int_equal(dec_space_map(s->space, 0, TRAMPOLINE, 0x1000, 0, image, NULL), 0);
    put_psb(s, 0x1000, 1000);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1002);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1003);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, 0x1005);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, TRAMPOLINE); /* a slot with `sub`, behind which single-stepping ends */
    put_ip(s, ppt_fup, TRAMPOLINE + 3);
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x1008);
    put_tnt(s, "N");
    script_expect(s, "on 0 1000\n"
                     "jcc 1000 1002 not\n"
                     "off 1002 0 async\n"
                     "on 0 1003\n"
                     "jcc 1003 1005 not\n"
                     "off 1005 0 async\n"
                     "gap 11\n"
                     "on 0 1008\n"
                     "jcc 1008 100a not\n");
    assert_non_null(strstr(s->detail, "[uprobes]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(an_optimised_probe_is_a_gap),        SCRIPT_TEST(a_longer_nop_may_be_one),
        SCRIPT_TEST(an_optimised_probe_with_the_kernel), SCRIPT_TEST(a_nop_is_no_probe),
        SCRIPT_TEST(a_breakpoint_of_another_tracer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
