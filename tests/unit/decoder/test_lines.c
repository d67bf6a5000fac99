/* Source lines of a small program that is compiled here; and the child that reads them fails in every way.
 * What it calls of the libraries stands here, to fail on demand. */
#include "decoder/dwarf/lines.h"

#include "decoder/image/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTER, JUMBLED, MAIN, QUERIES };

static const char program[] = "static inline __attribute__((always_inline)) int\n" /* line 1 */
                              "within(volatile int *n)\n"
                              "{\n"
                              "    return ++*n * 3;\n"
                              "}\n"
                              "__attribute__((noinline)) int\n"
                              "outer(volatile int *n)\n"
                              "{\n" /* 8 */
                              "    return within(n) + 1;\n"
                              "}\n"
                              "#line 700 \"made/elsewhere.y\"\n"
                              "__attribute__((noinline)) int jumbled(int n) { return n ^ 5; }\n"
                              "#line 800 \"known.c\"\n"
                              "int main(void)\n"
                              "{\n" /* 801 */
                              "    volatile int n = 1;\n"
                              "    return outer(&n) + jumbled(n);\n"
                              "}\n";

static char folder[] = "/tmp/st-lines-XXXXXX", path[64];

/* What is to fail. */
static enum fault {
    NOTHING,
    NO_PIPE,
    NO_FORK,
    NO_STREAM,
    CRASH,
    ENDS,
    HANG,
} fault;

static pid_t parent;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pipe2(int ends[2], int flags)
{
    errno = EMFILE;
    return fault == NO_PIPE ? -1 : NEXT(pipe2)(ends, flags);
}

pid_t fork(void)
{
    errno = EAGAIN;
    return fault == NO_FORK ? -1 : NEXT(fork)();
}

FILE *fdopen(int fd, const char *mode)
{
    errno = ENOMEM;
    return fault == NO_STREAM ? NULL : NEXT(fdopen)(fd, mode);
}

/* The half minute of a child that hangs passes at once; one that works may take it. */
unsigned alarm(unsigned seconds)
{
    assert_in_range(seconds, 1, 60);
    return NEXT(alarm)(fault == HANG ? 1 : 10 * seconds);
}

static _Noreturn void wait_for_ever(void)
{
    for (;;)
        pause();
}

int dwarf_getsrclines(Dwarf_Die *unit, Dwarf_Lines **rows, size_t *n)
{
    assert_int_not_equal(getpid(), parent); /* the tables are read by nobody else */
    switch (fault) {
    case CRASH:
        raise(SIGSEGV);
        break;
    case ENDS:
        exit(7);
    case HANG:
        wait_for_ever();
    default:
        break;
    }
    return NEXT(dwarf_getsrclines)(unit, rows, n);
}

/* ---- what was told ---- */

static struct {
    char file[64], function[64];

    int line;
} told[QUERIES + 2];

static size_t ntold, stop_after;

static int tell(void *ctx, const struct dec_line *at)
{
    size_t query = at->query + (size_t)at->level; /* questions for levels are asked alone */
    const char *file = at->file;
    int line = at->line;

    assert_ptr_equal(ctx, told);
    assert_true(query < sizeof(told) / sizeof(told[0]));
    assert_int_equal(told[query].line, 0);
    snprintf(told[query].file, sizeof(told[query].file), "%s", file);
    told[query].line = line;
    snprintf(told[query].function, sizeof(told[query].function), "%s", at->function);
    ntold++;
    return ntold == stop_after ? 42 : 0;
}

static size_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static struct dec_images *images;

static struct dec_image *program_image(void)
{
    struct dec_image_id id = {.path = path};
    struct dec_image *image;

    assert_int_equal(dec_images_get(images, &id, &image, NULL), 0);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    return image;
}

/* The address in the file of a function of the program, as nm tells it. */
static uint64_t address_of(const char *name)
{
    unsigned long long address = 0;
    char command[128];
    FILE *nm;

    snprintf(command, sizeof(command), "nm %s | grep ' %s$'", path, name);
    nm = popen(command, "r");
    assert_non_null(nm);
    assert_int_equal(fscanf(nm, "%llx", &address), 1);
    pclose(nm);
    return address;
}

/* Asks for the functions of the program; no descriptor and no child stays behind. */
static int ask(struct dec_line_query *queries, size_t n)
{
    size_t open_before = open_files();
    int rc;

    memset(told, 0, sizeof(told));
    ntold = 0;
    rc = dec_lines(queries, n, tell, told);
    assert_int_equal(open_files(), open_before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return rc;
}

static uint64_t addresses[QUERIES];

static void find_addresses(void)
{
    static const char *const names[QUERIES] = {"outer", "jumbled", "main"};

    for (size_t i = 0; i < QUERIES; i++)
        addresses[i] = address_of(names[i]);
}

static void make_queries(struct dec_line_query queries[QUERIES])
{
    for (size_t i = 0; i < QUERIES; i++)
        queries[i] = (struct dec_line_query){program_image(), addresses[i], false};
}

static int ask_all(void)
{
    struct dec_line_query queries[QUERIES];

    make_queries(queries);
    return ask(queries, QUERIES);
}

static void assert_told(size_t query, const char *file, int line)
{
    const char *end = told[query].file + strlen(told[query].file);

    assert_true(strlen(told[query].file) >= strlen(file));
    assert_string_equal(end - strlen(file), file);
    assert_int_equal(told[query].line, line);
}

static void assert_all_told(void)
{
    assert_int_equal(ntold, QUERIES);
    assert_true(told[OUTER].line == 7 || told[OUTER].line == 8);
    assert_told(JUMBLED, "made/elsewhere.y", 700);
    assert_told(MAIN, "known.c", 801);
}

static int set_up(void **state)
{
    char command[256], source[96];
    FILE *f;

    (void)state;
    parent = getpid();
    fault = NOTHING;
    stop_after = 0;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/known", folder);
    snprintf(source, sizeof(source), "%s.c", path);
    f = fopen(source, "w");
    if (!f || fputs(program, f) < 0 || fclose(f))
        return -1;
    snprintf(command, sizeof(command), "cd %s && cc -g -O2 -o known known.c", folder);
    if (system(command) || dec_images_new(NULL, &images, NULL))
        return -1;
    find_addresses();
    return 0;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    fault = NOTHING;
    dec_images_free(images);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void lines_of_functions(void **state)
{
    (void)state;
    assert_int_equal(ask_all(), 0);
    assert_all_told();
}

/* The code of `within` stands in `outer`: the function begins at its own line, what follows is of the other.
 */
static void code_of_an_inlined_function_has_its_own_line(void **state)
{
    struct dec_line_query queries[2];
    bool found = false;

    (void)state;
    for (uint64_t i = 1; i < 16 && !found; i++) {
        queries[0] = (struct dec_line_query){program_image(), addresses[OUTER], false};
        queries[1] = (struct dec_line_query){program_image(), queries[0].address + i, false};
        assert_int_equal(ask(queries, 2), 0);
        assert_true(told[0].line == 7 || told[0].line == 8);
        found = told[1].line == 4;
    }
    assert_true(found);
}

/* Each level has the line of the code in it: what was inlined its own, what is around it that of the
 * call. */
static void what_was_put_in_line_is_a_level(void **state)
{
    bool found = false;

    (void)state;
    for (uint64_t i = 0; i < 16 && !found; i++) {
        struct dec_line_query query = {program_image(), addresses[OUTER] + i, true};

        assert_int_equal(ask(&query, 1), 0);
        if (ntold == 1) {
            assert_string_equal(told[0].function, "");
            continue;
        }
        found = true;
        assert_int_equal(ntold, 2);
        assert_string_equal(told[0].function, "within");
        assert_told(0, "known.c", 4);
        assert_string_equal(told[1].function, "");
        assert_told(1, "known.c", 9);
    }
    assert_true(found);
}

static void addresses_without_a_line_are_left_out(void **state)
{
    struct dec_line_query queries[] = {{NULL, 1, false},
                                       {program_image(), 1, true},
                                       {program_image(), UINT64_MAX, true},
                                       {program_image(), addresses[MAIN], false}};

    (void)state;
    assert_int_equal(ask(queries, 4), 0);
    assert_int_equal(ntold, 1);
    assert_told(3, "known.c", 801);
    assert_int_equal(ask(queries, 0), 0);
    assert_int_equal(ntold, 0);
}

static void a_program_without_debug_information(void **state)
{
    char command[256];

    (void)state;
    snprintf(command, sizeof(command), "cp %s %s.whole && strip -g %s", path, path, path);
    assert_int_equal(system(command), 0);
    fault = NO_FORK; /* no process is made for it */
    assert_int_equal(ask_all(), 0);
    assert_int_equal(ntold, 0);
}

static void what_the_callback_returns_ends_it(void **state)
{
    (void)state;
    stop_after = 2;
    assert_int_equal(ask_all(), 42);
    assert_int_equal(ntold, 2);
}

static void the_lines_are_unknown_when(enum fault what)
{
    fault = what;
    assert_int_equal(ask_all(), 0);
    assert_int_equal(ntold, 0);
    fault = NOTHING;
    assert_int_equal(ask_all(), 0);
    assert_all_told();
}

static void no_pipe_no_process_no_stream(void **state)
{
    (void)state;
    the_lines_are_unknown_when(NO_PIPE);
    the_lines_are_unknown_when(NO_FORK);
    the_lines_are_unknown_when(NO_STREAM);
}

static void the_child_dies(void **state)
{
    (void)state;
    the_lines_are_unknown_when(CRASH);
    the_lines_are_unknown_when(ENDS);
}

/* Also where the parent does not take the signal that ends the child. */
static void the_child_hangs(void **state)
{
    sigset_t alarms;

    (void)state;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    signal(SIGALRM, SIG_IGN);
    the_lines_are_unknown_when(HANG);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
}

/* Nobody waits for what a child that is never heard of again would have told. */
static void nobody_waits_once_the_callback_has_ended_it(void **state)
{
    struct dec_line_query queries[2000];

    (void)state;
    for (size_t i = 0; i < 2000; i++)
        queries[i] = (struct dec_line_query){NULL, 0, false};
    make_queries(queries);
    for (size_t i = QUERIES; i < 2000; i++)
        queries[i] = queries[i % QUERIES];
    stop_after = 1;
    assert_int_equal(ask(queries, 2000), 42);
    assert_int_equal(ntold, 1);
}

/* Bytes of the DWARF sections change one by one: whatever the child makes of it, it ends and the parent goes
 * on. */
static void damage_at_every_place(void **state)
{
    char command[320];
    unsigned seen = 0;

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        static const char *const sections[] = {"info", "abbrev", "line", "line_str", "str", "aranges"};

        snprintf(command, sizeof(command),
                 "cd %s && cp known damaged.%u && set -- $(readelf -SW known | sed -n 's/.* \\.debug_%s  "
                 "*PROGBITS "
                 "*[0-9a-f]* \\([0-9a-f]*\\) \\([0-9a-f]*\\) .*/0x\\1 0x\\2/p') && printf '\\377' | dd "
                 "of=damaged.%u bs=1 "
                 "seek=$(($1 + $2 * %u / 2)) conv=notrunc 2>/dev/null",
                 folder, i, sections[i % 6], i, i / 6);
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof(path), "%s/damaged.%u", folder, i);
        assert_int_equal(ask_all(), 0);
        seen += ntold > 0;
    }
    assert_true(seen > 0); /* most damage leaves something to be told */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_of_functions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(code_of_an_inlined_function_has_its_own_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_put_in_line_is_a_level, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses_without_a_line_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_program_without_debug_information, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_callback_returns_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_pipe_no_process_no_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_child_dies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_child_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_waits_once_the_callback_has_ended_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_at_every_place, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
