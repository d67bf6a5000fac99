/* docs/triggers.md against the trigger language as it is. */
#include "base/syscalls.h"
#include "triggers/language/kind.h"
#include "triggers/language/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_document(void)
{
    FILE *f = fopen(ST_TEST_DIR "/../../../docs/triggers.md", "re");
    char *text = calloc(1, 65536);

    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, f) > 0);
    fclose(f);
    return text;
}

/* Every example is taken. */
static void test_document_examples(void **state)
{
    char *text = read_document();
    size_t examples = 0;

    (void)state;
    for (char *at = strstr(text, "--on '"); at; at = strstr(at, "--on '")) {
        struct st_error err = {0};
        struct trg_spec spec;
        char *end = strchr(at += strlen("--on '"), '\'');

        assert_non_null(end);
        *end = '\0';
        if (trg_parse(at, &spec, &err))
            fail_msg("docs/triggers.md: %s", err.text);
        trg_spec_free(&spec);
        at = end + 1;
        examples++;
    }
    assert_true(examples >= 10);
    free(text);
}

static void assert_documented(const char *text, const char *format, const char *word)
{
    char marked[64];

    snprintf(marked, sizeof(marked), format, word);
    if (!strstr(text, marked))
        fail_msg("docs/triggers.md does not tell of %s", marked);
}

/* A kind's section tells each of its keys and no others in its table. */
static void assert_keys_documented(const char *text, const struct trg_kind *kind)
{
    char head[64], *section, *end;
    size_t keys = 0;

    snprintf(head, sizeof(head), "\n## %s\n", kind->name);
    if (!strstr(text, head))
        fail_msg("docs/triggers.md has no section%s", head);
    section = strdup(strstr(text, head) + 1);
    assert_non_null(section);
    end = strstr(section, "\n## ");
    if (end)
        *end = '\0';
    for (const struct trg_key *key = kind->keys; key->name; key++, keys++)
        assert_documented(section, "\n| `%s=` |", key->name);
    for (const char *row = strstr(section, "\n| `"); row; row = strstr(row + 1, "\n| `"))
        if (strchr(row + 5, '`')[-1] == '=' && keys-- == 0)
            fail_msg("docs/triggers.md tells of a key that is not there: %.20s", row + 1);
    assert_documented(section, "%s", kind->example);
    free(section);
}

/* Every kind, key, state, unit and idle system call that the parser knows is told. */
static void test_document_words(void **state)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "min", "h"};
    char *text = read_document();
    struct trg_spec spec;
    const char *words[8];
    char name[64];

    (void)state;
    for (size_t i = 0; trg_kinds[i]; i++)
        assert_keys_documented(text, trg_kinds[i]);
    for (size_t i = 0, n = trg_state_words(words, 8); i < n; i++)
        assert_documented(text, "`%s`", words[i]);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        assert_documented(text, "`%s`", units[i]);
    assert_int_equal(trg_parse("offcpu>20ms", &spec, NULL), 0);
    for (int i = 0; i < OFFCPU_SYSCALLS; i++)
        if (spec.options->idle[i / 64] >> (i % 64) & 1)
            assert_documented(text, "`%s`", st_syscall_name(i, false, name, sizeof(name)));
    trg_spec_free(&spec);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document_examples),
        cmocka_unit_test(test_document_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
