/* What a function's name says of it: its part in the rules of the stack, and the function that a piece
 * belongs to. */
#include "decoder/model/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

static void names_of_user_code_with_a_role(void **state)
{
    static const struct {
        const char *name;

        enum dec_role role;
    } names[] = {
        {"longjmp", DEC_ROLE_UNWINDER},
        {"__longjmp_chk", DEC_ROLE_UNWINDER},
        {"_Unwind_RaiseException", DEC_ROLE_UNWINDER},
        {"_Unwind_Resume_or_Rethrow", DEC_ROLE_UNWINDER},
        {"_Unwind_Resume", DEC_ROLE_RESUMER},
        {"_Unwind_Resume@plt", DEC_ROLE_PLAIN}, /* leads to it, and is left for it */
        {"__x86_indirect_thunk_rax", DEC_ROLE_INDIRECT_THUNK},
        {"__llvm_retpoline_r11", DEC_ROLE_INDIRECT_THUNK},
        {"__schedule", DEC_ROLE_PLAIN},
        {"__x86_return_thunk", DEC_ROLE_RETURN_THUNK},
        {"srso_return_thunk", DEC_ROLE_PLAIN},
        {"caml_raise_exn", DEC_ROLE_UNWINDER},
        {"caml_runstack", DEC_ROLE_FIBER_STARTER},
        {"caml_perform", DEC_ROLE_FIBER_PERFORMER},
        {"caml_reperform", DEC_ROLE_FIBER_PERFORMER},
        {"caml_resume", DEC_ROLE_FIBER_RESUMER},
        {"caml_c_call", DEC_ROLE_FIBER_UNHANDLED},
        {"caml_call_gc", DEC_ROLE_PLAIN},
        {"main", DEC_ROLE_PLAIN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (dec_role_of(names[i].name, false) != names[i].role)
            fail_msg("%s has role %d", names[i].name, (int)dec_role_of(names[i].name, false));
}

static void names_of_the_kernel_with_a_role(void **state)
{
    (void)state;
    assert_int_equal(dec_role_of("__schedule", true), DEC_ROLE_SCHEDULER);
    assert_int_equal(dec_role_of("schedule", true), DEC_ROLE_PLAIN);
    assert_int_equal(dec_role_of("__x86_return_thunk", true), DEC_ROLE_RETURN_THUNK);
    assert_int_equal(dec_role_of("srso_return_thunk", true), DEC_ROLE_RETURN_THUNK);
    assert_int_equal(dec_role_of("__x86_indirect_thunk_array", true), DEC_ROLE_INDIRECT_THUNK);
    assert_int_equal(dec_role_of("longjmp", true), DEC_ROLE_PLAIN);
    assert_int_equal(dec_role_of("_Unwind_Resume", true), DEC_ROLE_PLAIN);
}

static void pieces_belong_to_their_function(void **state)
{
    (void)state;
    assert_int_equal(dec_family_length("foo"), 3);
    assert_int_equal(dec_family_length("foo.cold"), 3);
    assert_int_equal(dec_family_length("foo.cold.7"), 3);
    assert_int_equal(dec_family_length("foo.colder"), 10);
}

/* A file with two functions of one name and a split-off piece, in two processes at different addresses. */
static void pieces_are_known_in_each_process(void **state)
{
    static const struct {
        const char *name;

        uint64_t start;
    } symbols[] = {{"work", 0}, {"work", 0x100}, {"work.cold", 0x200}, {"other", 0x300}};
    const struct dec_function *f[2][4];
    struct dec_space *spaces[2];
    struct dec_images *images;
    struct dec_symbols *s;
    struct dec_image *image;
    uint8_t *bytes = calloc(1, 0x400);

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(dec_images_new(NULL, &images, NULL), 0);
    assert_int_equal(dec_images_add_bytes(images, "code", bytes, 0x400, &image, NULL), 0);
    assert_int_equal(dec_symbols_new(&s, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(dec_image_add_symbol(image, symbols[i].start, 0x100, symbols[i].name, NULL, NULL),
                         0);
    for (size_t p = 0; p < 2; p++) {
        uint64_t base = 0x1000 + p * 0x10000;

        assert_int_equal(dec_space_new(NULL, &spaces[p], NULL), 0);
        assert_int_equal(dec_space_map(spaces[p], 0, base, 0x400, 0, image, NULL), 0);
        for (size_t i = 0; i < 4; i++)
            f[p][i] = dec_symbols_function(s, spaces[p], 1, base + symbols[i].start + 8);
        assert_true(dec_same_family(f[p][0], f[p][0]) && dec_same_family(f[p][1], f[p][1]));
        assert_true(dec_same_family(f[p][0], f[p][2]) && dec_same_family(f[p][1], f[p][2]));
        assert_false(dec_same_family(f[p][0], f[p][1]) || dec_same_family(f[p][2], f[p][3]));
    }
    dec_symbols_free(s);
    for (size_t p = 0; p < 2; p++)
        dec_space_free(spaces[p]);
    dec_images_free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_user_code_with_a_role),
        cmocka_unit_test(names_of_the_kernel_with_a_role),
        cmocka_unit_test(pieces_belong_to_their_function),
        cmocka_unit_test(pieces_are_known_in_each_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
