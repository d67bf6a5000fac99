/* Debug information of a size that link-time optimisation of a browser comes to: nothing of it is cut off. */
#include "decoder/dwarf/inlines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/st-large-XXXXXX", path[64];

/* A unit with over a million types before its only function, which has another one inlined. */
static const char source[] =
    ".text\n"
    ".globl outer\n"
    "outer: nop\n"
    "inner_begin: nop\n nop\n"
    "inner_end: ret\n"
    "outer_end:\n"
    ".section .debug_abbrev,\"\",@progbits\n"
    ".uleb128 1, 0x11\n .byte 1\n .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0\n" /* unit: low_pc, high_pc */
    ".uleb128 2, 0x24\n .byte 0\n .uleb128 0, 0\n"                         /* base type */
    ".uleb128 3, 0x2e\n .byte 1\n .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n" /* function */
    ".uleb128 4, 0x1d\n .byte 0\n .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n" /* inlined one */
    ".uleb128 0\n"
    ".section .debug_info,\"\",@progbits\n"
    ".long unit_end - unit_begin\n"
    "unit_begin: .value 4\n .long 0\n .byte 8\n"
    ".uleb128 1\n .quad outer, outer_end - outer\n"
    ".fill 1200000, 1, 2\n"
    ".uleb128 3\n .asciz \"outer\"\n .quad outer, outer_end - outer\n"
    ".uleb128 4\n .asciz \"inner\"\n .quad inner_begin, inner_end - inner_begin\n"
    ".byte 0, 0\n"
    "unit_end:\n";

static int set_up(void **state)
{
    char command[256];
    FILE *compiler;

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/large.so", folder);
    snprintf(command, sizeof(command), "cc -x assembler -shared -nostdlib -o %s -", path);
    compiler = popen(command, "w");
    return compiler && fputs(source, compiler) >= 0 && !pclose(compiler) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static uint64_t address_of_outer(void)
{
    unsigned long long address = 0;
    char command[128];
    FILE *nm;

    snprintf(command, sizeof(command), "nm %s | grep ' outer$'", path);
    nm = popen(command, "r");
    assert_non_null(nm);
    assert_int_equal(fscanf(nm, "%llx", &address), 1);
    pclose(nm);
    return address;
}

static void a_function_behind_a_million_types_is_found(void **state)
{
    struct dec_image_id id = {.path = path};
    const struct dec_inline_tree *tree;
    struct dec_inlines *inlines;
    struct dec_images *images;
    struct dec_image *image;

    (void)state;
    assert_int_equal(dec_images_new(NULL, &images, NULL), 0);
    assert_int_equal(dec_images_get(images, &id, &image, NULL), 0);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    assert_int_equal(dec_inlines_open(images, &inlines, NULL), 0);
    tree = dec_inlines_tree(inlines, image, address_of_outer());
    assert_false(dec_inlines_broke(inlines));
    assert_non_null(tree);
    assert_int_equal(tree->nnodes, 1);
    assert_string_equal(tree->nodes[0].name, "inner");
    dec_inlines_close(inlines);
    dec_images_free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_behind_a_million_types_is_found),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
