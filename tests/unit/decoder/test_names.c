/* What a function's name says of it: its part in the rules of the stack, and the function that a piece
 * belongs to. */
#include "decoder/model/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_user_code_with_a_role),
        cmocka_unit_test(names_of_the_kernel_with_a_role),
        cmocka_unit_test(pieces_belong_to_their_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
