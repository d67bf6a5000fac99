/* Units, options, safe text, nearest words, output files. */
#include "base/nearest.h"
#include "base/opt.h"
#include "base/outfile.h"
#include "base/safetext.h"
#include "base/target.h"
#include "base/units.h"
#include "base/vec.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;

        uint64_t ns;
    } good[] = {{"20ms", 20000000},   {"1.5s", 1500000000},  {"300us", 300000}, {"7ns", 7},
                {"2m", 120000000000}, {"1h", 3600000000000}, {"0", 0},          {"0.5us", 500}};
    static const char *const bad[] = {"",       "ms",    "20",     "-5ms", "20 ms", "20mss",
                                      "0x10ms", "nanms", "1e300s", "inf",  "5MS"};
    struct st_error err;
    uint64_t ns;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(st_parse_duration(good[i].text, &ns, &err), 0);
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ns = 42;
        assert_int_equal(st_parse_duration(bad[i], &ns, &err), ST_EUSAGE);
        assert_int_equal(ns, 42);
    }
    st_parse_duration("20", &ns, &err);
    assert_non_null(strstr(err.text, "20ms"));
}

static void sizes_are_read(void **state)
{
    static const struct {
        const char *text;

        uint64_t bytes;
    } good[] = {
        {"0", 0},          {"4096", 4096},     {"17B", 17},          {"3K", 3072},
        {"3k", 3072},      {"64KiB", 65536},   {"4M", 4194304},      {"4MiB", 4194304},
        {"1.5M", 1572864}, {"2G", 2147483648}, {"5GiB", 5368709120},
    };
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(st_parse_size(good[i].text, &n, NULL), 0);
        assert_int_equal(n, good[i].bytes);
    }
    assert_int_equal(st_parse_size("4X", &n, NULL), ST_EUSAGE);
    assert_int_equal(st_parse_size("-1", &n, NULL), ST_EUSAGE);
}

static void quantities_are_written(void **state)
{
    static const struct {
        int64_t ns;

        const char *text;
    } rows[] = {
        {0, "0 ns"},         {999, "999 ns"},    {1000, "1.00 us"},      {40200000, "40.2 ms"},
        {312000, "312 us"},  {999499, "999 us"}, {1500000000, "1.50 s"}, {125000000000, "2 m 05 s"},
        {-2500, "-2.50 us"}, {9999, "10.0 us"},  {99960, "100 us"},      {INT64_MAX, "153722867 m 16 s"}};
    char buf[32];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(st_format_duration(rows[i].ns, buf, sizeof(buf)), rows[i].text);
    assert_string_equal(st_format_count(1234567, buf, sizeof(buf)), "1,234,567");
    assert_string_equal(st_format_count(12, buf, sizeof(buf)), "12");
    assert_string_equal(st_format_size(4 << 20, buf, sizeof(buf)), "4 MiB");
    assert_string_equal(st_format_size(1536, buf, sizeof(buf)), "1.5 KiB");
}

static void foreign_text_is_escaped(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"plain", "plain"},
                {"a\033[31mb", "a\\x1b[31mb"},
                {"tab\tnl\n", "tab\\x09nl\\x0a"},
                {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
                {"\xc2\x9b"
                 "31m",
                 "\\xc2\\x9b31m"},
                {"\xff\xc3", "\\xff\\xc3"},
                {"\xe2\x80\xae"
                 "x",
                 "\\xe2\\x80\\xaex"},
                {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                {"\xc0\xaf", "\\xc0\\xaf"}};
    char out[64], tiny[4];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        st_safe_text(out, sizeof(out), rows[i].in);
        assert_string_equal(out, rows[i].out);
    }
    st_safe_lines(out, sizeof(out), "one\ntwo\r");
    assert_string_equal(out, "one\ntwo\\x0d");
    assert_int_equal(st_safe_text(tiny, sizeof(tiny), "ab\033"), 2);
    assert_string_equal(tiny, "ab");
}

static void nearest_word_is_found(void **state)
{
    static const char *const words[] = {"offcpu", "busy", "runq", "syscall", "socket", "softirq"};

    (void)state;
    assert_string_equal(st_nearest("ofcpu", 5, words, 6), "offcpu");
    assert_string_equal(st_nearest("OFFCPU", 6, words, 6), "offcpu");
    assert_string_equal(st_nearest("sofitrq", 7, words, 6), "softirq");
    assert_null(st_nearest("zebra", 5, words, 6));
    assert_null(st_nearest("", 0, words, 6));
}

static const struct st_opt_usage usage = {"arm", "[TARGET]", "records.", NULL};

struct parsed {
    bool kernel;

    const char *output;

    uint64_t timeout, ring;

    long snapshots, untold;

    struct st_target target;
};

static int parse(struct parsed *p, char **argv, struct st_error *err)
{
    struct st_option table[] = {
        {"kernel", 0, NULL, ST_OPT_FLAG, &p->kernel, "", 0, 0, NULL, true},
        {"output", 'o', "PREFIX", ST_OPT_STRING, &p->output, "", 0, 0, NULL, false},
        {"timeout", 0, "DUR", ST_OPT_DURATION, &p->timeout, "", 0, 0, NULL, false},
        {"ring", 0, "SIZE", ST_OPT_SIZE, &p->ring, "", 0, 0, NULL, false},
        {"snapshots", 0, "N", ST_OPT_NUMBER, &p->snapshots, "", 0, 1000, NULL, false},
        {"pid", 'p', "PID", ST_OPT_CALL, &p->target, "", 0, 0, st_target_add_pids, false},
        {"untold", 0, "N", ST_OPT_NUMBER, &p->untold, NULL, 0, 10, NULL, false},
        {0},
    };
    int argc = 0;

    while (argv[argc])
        argc++;
    return st_opt_parse(&usage, table, argc, argv, true, err);
}

static void options_are_parsed(void **state)
{
    char *argv[] = {"arm",       "--no-kernel", "-o",  "x",           "--timeout", "3s",
                    "--ring=4M", "-p",          "7,9", "--snapshots", "2",         "--untold",
                    "4",         "--",          "ls",  "-l",          NULL};
    struct parsed p = {.kernel = true};
    struct st_error err = {0};
    int first = parse(&p, argv, &err);

    (void)state;
    assert_int_equal(first, 14);
    assert_true(st_opt_had_dashes(argv, first));
    assert_false(p.kernel);
    assert_string_equal(p.output, "x");
    assert_int_equal(p.timeout, 3000000000);
    assert_int_equal(p.ring, 4 << 20);
    assert_int_equal(p.snapshots, 2);
    assert_int_equal(p.untold, 4);
    assert_int_equal(p.target.npids, 2);
    assert_int_equal(p.target.pids[1], 9);
    st_target_free(&p.target);
}

static void wrong_options_are_named(void **state)
{
    static const struct {
        char *word, *argument;

        const char *expected;
    } rows[] = {{"--tiemout", "3s", "did you mean '--timeout'"},
                {"--timeout", NULL, "needs an argument"},
                {"--timeout", "3", "--timeout: '3' has no unit"},
                {"--snapshots", "1001", "not within"},
                {"--no-kernel=3", NULL, "takes no argument"},
                {"-z", NULL, "unknown option '-z'"},
                {"-p", "abc", "no whole number"},
                {"--untolt", "4", "unknown or ambiguous option '--untolt'"},
                {"--frobnicate", NULL, "--help"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *argv[] = {"arm", rows[i].word, rows[i].argument, NULL};
        struct parsed p = {0};
        struct st_error err = {0};

        assert_int_equal(parse(&p, argv, &err), ST_EUSAGE);
        if (!strstr(err.text, rows[i].expected))
            fail_msg("%s: '%s' lacks '%s'", rows[i].word, err.text, rows[i].expected);
        st_target_free(&p.target);
    }
}

static void output_appears_whole(void **state)
{
    char folder[] = "/tmp/st-base-XXXXXX", path[64];
    struct st_outfile out;
    struct st_error err = {0};
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.data", folder);
    assert_int_equal(st_outfile_open(&out, path, &err), 0);
    assert_int_equal(st_outfile_write(&out, "hello", 5, &err), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(st_outfile_commit(&out, false, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_mode & 0777, 0600);

    assert_int_equal(st_outfile_open(&out, path, &err), 0);
    assert_int_equal(st_outfile_commit(&out, false, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "File exists"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);

    assert_int_equal(st_outfile_open(&out, path, &err), 0);
    st_outfile_abort(&out);
    unlink(path);
    /* rmdir fails if any temporary file was left. */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(st_outfile_open(&out, path, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, path));
}

/* What cannot be looked at is not said to be gone. */
static void no_descriptor_is_left(void **state)
{
    struct st_target t = {0};
    struct st_error err = {0};
    struct rlimit before, none;
    pid_t *tids;
    char self[16];
    int rc[2];

    (void)state;
    snprintf(self, sizeof(self), "%d", getpid());
    assert_int_equal(st_target_add_pids(&t, self, &err), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc[0] = st_target_resolve(&t, &err);
    rc[1] = st_target_threads(getpid(), &tids, NULL);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(rc[0], ST_EFAIL);
    assert_non_null(strstr(err.text, "Too many open files"));
    assert_int_equal(rc[1], ST_EFAIL);
    st_target_free(&t);
}

static void targets_are_resolved(void **state)
{
    struct st_target t = {0};
    struct st_error err = {0};
    pid_t *tids;
    char self[16];

    (void)state;
    snprintf(self, sizeof(self), "%d", getpid());
    assert_int_equal(st_target_add_pids(&t, self, &err), 0);
    assert_int_equal(st_target_resolve(&t, &err), 0);
    assert_int_equal(st_target_threads(getpid(), &tids, &err), 1);
    assert_int_equal(tids[0], getpid());
    free(tids);
    assert_int_equal(st_target_threads(INT_MAX, &tids, &err), 0);
    assert_null(tids);
    assert_int_equal(st_target_set_all(&t, NULL, &err), ST_EUSAGE);
    st_target_free(&t);

    t = (struct st_target){0};
    assert_int_equal(st_target_resolve(&t, &err), ST_EUSAGE);
    st_target_set_comm(&t, "no-such-program", &err); /* one may come */
    assert_int_equal(st_target_resolve(&t, &err), 0);
    assert_int_equal(t.npids, 0);
    assert_true(st_target_waits(&t));
    t.comm = "no-program-of-such";
    assert_int_equal(st_target_resolve(&t, &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "try 'no-program-of-s'"));
    st_target_free(&t);
}

static int count_self(void *ctx, pid_t pid, struct st_error *err)
{
    (void)err;
    *(unsigned *)ctx += pid == getpid();
    return 0;
}

/* A child that has ended and was not reaped has its name still, and is none of the processes of that name. */
static void processes_of_a_name_run(void **state)
{
    struct st_target t = {.kind = ST_TARGET_COMM, .comm = "st-base-child"};
    struct st_error err = {0};
    unsigned self = 0;
    int go[2], named[2];
    char c;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(named), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_NAME, "st-base-child");
        close(go[1]);
        if (write(named[1], "x", 1) < 0 || read(go[0], &c, 1))
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(named[0], &c, 1), 1);
    assert_int_equal(st_target_resolve(&t, &err), 0);
    assert_int_equal(t.npids, 1);
    assert_int_equal(t.pids[0], pid);
    assert_int_equal(st_target_parent(pid), getpid());
    assert_int_equal(st_target_children(getpid(), count_self, &self, &err), 0);
    assert_int_equal(self, 0);
    close(go[1]);
    assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
    st_target_free(&t);
    assert_int_equal(st_target_resolve(&t, &err), 0);
    assert_int_equal(t.npids, 0);
    waitpid(pid, NULL, 0);
    st_target_free(&t);
}

static void many_processes_come_and_go(void **state)
{
    struct st_target t = {.kind = ST_TARGET_CGROUP};
    struct st_error err = {0};

    (void)state;
    for (pid_t pid = 1; pid <= 1000; pid++)
        assert_int_equal(st_target_add(&t, pid, &err), 0);
    assert_int_equal(st_target_add(&t, 500, &err), 0);
    assert_int_equal(t.npids, 1000);
    for (pid_t pid = 1; pid <= 999; pid++)
        st_target_remove(&t, pid);
    st_target_remove(&t, 1);
    assert_int_equal(t.npids, 1);
    assert_int_equal(t.pids[0], 1000);
    st_target_free(&t);
}

static void vectors_grow(void **state)
{
    ST_VEC(int) v = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(st_vec_push(&v, i), 0);
    assert_int_equal(v.n, 1000);
    assert_int_equal(v.at[999], 999);
    assert_int_equal(st_vec_reserve(&v, SIZE_MAX / 2), -1);
    assert_int_equal(v.n, 1000);
    st_vec_free(&v);
    assert_null(v.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(quantities_are_written),
        cmocka_unit_test(foreign_text_is_escaped),
        cmocka_unit_test(nearest_word_is_found),
        cmocka_unit_test(options_are_parsed),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(output_appears_whole),
        cmocka_unit_test(targets_are_resolved),
        cmocka_unit_test(processes_of_a_name_run),
        cmocka_unit_test(many_processes_come_and_go),
        cmocka_unit_test(no_descriptor_is_left),
        cmocka_unit_test(vectors_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
