/* Where a process waits is named by the code that is mapped there, and only by that. */
#include "triggers/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE = 200000 /* ms */ };

/* The mapping of this program's code. */
static void find_code(uint64_t *start, uint64_t *end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long from, to, self = (unsigned long)(uintptr_t)find_code;
    char line[512];

    assert_non_null(maps);
    *end = 0;
    while (!*end && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && self >= from && self < to) {
            *start = from;
            *end = to;
        }
    fclose(maps);
    assert_true(*end);
}

static void code_is_named_to_its_edges(void **state)
{
    struct st_confined child = {.patience = PATIENCE};
    char text[512], bare[32];
    uint64_t start, end;

    (void)state;
    find_code(&start, &end);
    trg_name_place(&child, (uint32_t)getpid(), (uint64_t)(uintptr_t)find_code + 1, text, sizeof(text));
    assert_string_equal(text, "find_code+0x1 (unit_triggers_places)");
    trg_name_place(&child, (uint32_t)getpid(), start, text, sizeof(text));
    assert_non_null(strstr(text, "(unit_triggers_places)"));
    trg_name_place(&child, (uint32_t)getpid(), end - 1, text, sizeof(text));
    assert_non_null(strstr(text, "(unit_triggers_places)"));
    trg_name_place(&child, (uint32_t)getpid(), end, text, sizeof(text));
    snprintf(bare, sizeof(bare), "0x%llx", (unsigned long long)end);
    assert_string_equal(text, bare);
    st_confined_close(&child);
}

static void what_cannot_be_looked_at_is_a_number(void **state)
{
    struct st_confined child = {.patience = PATIENCE};
    char text[512];

    (void)state;
    trg_name_place(&child, 0x3fffffff, 0x401000, text, sizeof(text));
    assert_string_equal(text, "0x401000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_named_to_its_edges),
        cmocka_unit_test(what_cannot_be_looked_at_is_a_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
