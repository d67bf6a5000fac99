/* What is read of the files in which docker and containerd keep the names of containers. */
#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As docker writes it, in part: the same key stands deeper, in a value, and behind an escaped quote. */
static const char docker[] =
    "{\"StreamConfig\":{\"Name\":\"inner\"},\"Path\":\"\\\"Name\\\":\",\"Args\":[\"Name\",\"x\"],"
    "\"Config\":{\"Env\":[\"A=\\\\\"],\"Labels\":{\"Name\" : \"label\"}},\"Name\" "
    ":\t\"/web\",\"Driver\":\"overlay2\"}";

static const char containerd[] =
    "{\"ociVersion\":\"1.1.0\",\"process\":{\"args\":[\"io.kubernetes.cri.container-name\"]},\n"
    " \"annotations\":{\"io.kubernetes.cri.container-name\":\"app\",\"io.kubernetes.cri.sandbox-name\":"
    "\"shop-7d4\"},\n"
    " \"linux\":{}}";

static bool ask(const char *text, size_t n, int depth, const char *key, char value[16])
{
    char *copy = malloc(n + 1); /* so that whoever reads on is caught */
    bool found;

    assert_non_null(copy);
    memcpy(copy, text, n);
    copy = realloc(copy, n ? n : 1);
    found = st_container_json(copy, n, depth, key, value, 16);
    free(copy);
    return found;
}

static void names_are_found(void **state)
{
    char value[16];

    (void)state;
    assert_true(ask(docker, strlen(docker), 1, "Name", value));
    assert_string_equal(value, "/web");
    assert_true(ask(docker, strlen(docker), 2, "Name", value));
    assert_string_equal(value, "inner");
    assert_true(ask(containerd, strlen(containerd), 2, "io.kubernetes.cri.container-name", value));
    assert_string_equal(value, "app");
    assert_true(ask(containerd, strlen(containerd), 2, "io.kubernetes.cri.sandbox-name", value));
    assert_string_equal(value, "shop-7d4");
    assert_false(ask(containerd, strlen(containerd), 2, "io.kubernetes.cri.sandbox-uid", value));
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "\"",
        "{\"Name\"",
        "{\"Name\":",
        "{\"Name\":7}",
        "{\"Name\":\"",
        "{\"Name\":\"\\u0041\"}",
        "{\"Name\":\"\\",
        "{\"Name\":\"longer than there is room for\"}",
        "[\"Name\",\"x\"]",
        "{\"Name\":{\"Name\":\"x\"}}",
        "\\\"Name\":\"x\"",
    };
    char value[16];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(ask(texts[i], strlen(texts[i]), 1, "Name", value));
}

/* Cut at every place it is not read beyond, and tells the whole name or none. */
static void cut_files_are_not_read_beyond(void **state)
{
    char value[16];

    (void)state;
    for (size_t n = 0; n < strlen(docker); n++)
        if (ask(docker, n, 1, "Name", value))
            assert_string_equal(value, "/web");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(cut_files_are_not_read_beyond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
