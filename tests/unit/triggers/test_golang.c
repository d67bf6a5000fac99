/* Programs of Go are known by the note of their linker, and by nothing else. */
#include "triggers/golang.h"
#include "triggers/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/golang-XXXXXX";

static void write_program(const void *note, size_t n, size_t at)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    for (size_t i = 0; i < at; i++)
        fputc("\177ELF"[i % 4], f);
    fwrite(note, 1, n, f);
    fputs("and so on", f);
    fclose(f);
}

static bool is_golang(void)
{
    char *argv[] = {path, NULL};
    const struct st_target target = {.kind = ST_TARGET_COMMAND, .argv = argv};

    return trg_is_golang(&target);
}

static void the_note_tells(void **state)
{
    static const char go[] = "\4\0\0\0\123\0\0\0\4\0\0\0Go\0\0build id";
    static const char gnu[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0build id";
    static const char text[] = "prints Go\0\0and more";

    (void)state;
    for (size_t at = 0; at < 16000; at += 3988) {
        write_program(go, sizeof(go), at);
        assert_true(is_golang());
    }
    write_program(go, sizeof(go), 20000);
    assert_false(is_golang());
    write_program(gnu, sizeof(gnu), 3996);
    assert_false(is_golang());
    write_program(text, sizeof(text), 3994);
    assert_false(is_golang());
    write_program(go, 14, 3996); /* cut off */
    assert_false(is_golang());
}

static void what_cannot_be_read_is_not_of_go(void **state)
{
    pid_t gone = 0x3fffffff, other = getppid(); /* not this program: it holds such notes */
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &gone, .npids = 1};
    char *argv[] = {"/dev/zero", NULL}, *nowhere[] = {"no-such-command-anywhere", NULL};

    (void)state;
    assert_false(trg_is_golang(&target));
    target.pids = &other;
    assert_false(trg_is_golang(&target));
    target = (struct st_target){.kind = ST_TARGET_COMMAND, .argv = argv};
    assert_false(trg_is_golang(&target));
    target.argv = nowhere;
    assert_false(trg_is_golang(&target));
    target = (struct st_target){.kind = ST_TARGET_ALL};
    assert_false(trg_is_golang(&target));
}

/* It makes this program one of Go's. */
static const char own_note[] __attribute__((section(".note.golang"), aligned(4), used)) =
    "\4\0\0\0\123\0\0\0\4\0\0\0Go\0\0build id";

/* The depth of the stack tells no places of a program of Go apart. */
static void the_stacks_of_go_are_not_steady(void **state)
{
    pid_t own = getpid(), other = getppid();
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &own, .npids = 1};

    (void)state;
    assert_true(trg_is_golang(&target));
    assert_false(trg_has_steady_stacks(&target));
    target.pids = &other;
    assert_true(trg_has_steady_stacks(&target));
}

static int make(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 || close(fd);
}

static int take_away(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_note_tells),
        cmocka_unit_test(what_cannot_be_read_is_not_of_go),
        cmocka_unit_test(the_stacks_of_go_are_not_steady),
    };

    return cmocka_run_group_tests(tests, make, take_away);
}
