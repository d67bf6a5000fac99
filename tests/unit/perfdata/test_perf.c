/* perf reads what is written: Debian's linux-perf on the small recording, in both forms. */
#include "recording.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Runs "perf ARGS" on the recording and returns what it prints; it must succeed and say nothing on stderr. */
static const char *perf(void **state, const char *args, bool directory)
{
    static struct file out, complaints;
    const char *data = scratch_path(state, directory ? "d.data" : "a.data");
    const char *errors = scratch_path(state, "errors");
    const char *output = scratch_path(state, "output");
    struct st_error err = {0};
    char command[2048];
    int rc;

    rc = recording_write(data, directory, &err);
    if (rc && !strstr(err.text, "File exists"))
        fail_msg("%s", err.text);
    snprintf(command, sizeof(command), "perf --no-pager --buildid-dir %s %s -i %s >%s 2>%s </dev/null",
             (char *)*state, args, data, output, errors);
    rc = system(command);
    file_read(&complaints, errors);
    file_add(&complaints, "", 1);
    file_read(&out, output);
    file_add(&out, "", 1);
    if (rc || complaints.bytes.n > 1)
        print_error("%s\n%s", command, (const char *)complaints.bytes.at);
    assert_int_equal(rc, 0);
    assert_int_equal(complaints.bytes.n, 1);
    return (const char *)out.bytes.at;
}

/* Every line of `want` is in the text, one behind the other. */
static void assert_in_order(const char *text, const char *const *want)
{
    const char *at = text;

    for (; *want; want++) {
        const char *found = strstr(at, *want);

        if (!found)
            fail_msg("'%s' is missing, or not behind the lines before it, in:\n%s", *want, text);
        at = found + strlen(*want);
    }
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (text = strstr(text, word); text; text = strstr(text + 1, word))
        n++;
    return n;
}

static void dump_shows_every_record_sorted_by_time(void **state)
{
    static const char *const want[] = {
        "PERF_RECORD_AUXTRACE_INFO type: 1",
        "PMU Type            8",
        "PERF_RECORD_AUXTRACE size: 0x18  offset: 0x1000  ref: 0x7  idx: 3  tid: 4243  cpu: -1",
        "Intel Processor Trace data: size 24 bytes",
        "02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82 PSB",
        "PSBEND",
        "1 1000000000 ",
        "PERF_RECORD_COMM exec: forwarder:4242/4243",
        "1 1000001000 ",
        "PERF_RECORD_MMAP2 4242/4243: [0x400000(0x2000) @ 0x1000 00:00 0 0]: r-xp /usr/bin/forwarder",
        "1 1000002000 ",
        "PERF_RECORD_ITRACE_START pid: 4242 tid: 4243",
        "1 1000003000 ",
        "PERF_RECORD_SWITCH OUT",
        "1 1000004000 ",
        "PERF_RECORD_SAMPLE(IP, 0x2): 4242/4243: 0 period: 1 addr: 0",
        "... thread: forwarder:4243",
        "1 1000005000 ",
        "PERF_RECORD_EXIT(4242:4243):(1:1)",
        NULL};

    for (int directory = 0; directory < 2; directory++) {
        const char *text = perf(state, "report --dump", directory);

        assert_in_order(text, want);
        assert_int_equal(count(text, ": PERF_RECORD_"), NRECORDS);
    }
}

static void script_shows_the_stall(void **state)
{
    static const char *const want[] = {
        "forwarder  4243 [001]     1.000000000: PERF_RECORD_COMM exec: forwarder:4242/4243",
        "forwarder  4243 [001]     1.000001000: PERF_RECORD_MMAP2",
        "forwarder  4243 [001]     1.000003000: PERF_RECORD_SWITCH OUT",
        "forwarder  4243 [001]     1.000004000:          1 stalltrap:stall:",
        "BPF string: \"" STALL_TEXT "\"",
        "forwarder  4243 [001]     1.000005000: PERF_RECORD_EXIT(4242:4243):(1:1)",
        NULL};

    for (int directory = 0; directory < 2; directory++)
        assert_in_order(
            perf(state, "script --ns --show-task-events --show-mmap-events --show-switch-events", directory),
            want);
}

/* The trace has a PSB and nothing else; perf's decoder finds it, by the index of trace buffers, and no error.
 */
static void script_decodes_the_trace(void **state)
{
    const char *text = perf(state, "script --itrace=cep -F tid,event", false);

    assert_int_equal(count(text, "psb"), 1);
    assert_int_equal(count(text, "error"), 0);
}

static void evlist_shows_the_events(void **state)
{
    static const char *const want[] = {
        "intel_pt//u: type: 8, size: ",     "config: 0x300e601", "dummy:u: type: 1, size: ", "config: 0x9",
        "stalltrap:stall: type: 1, size: ", "config: 0xa",       "PERIOD|RAW|IDENTIFIER",    NULL};

    assert_in_order(perf(state, "evlist -v", false), want);
}

static void build_ids_are_listed(void **state)
{
    static const char *const want[] = {"abcd030405060708090a0b0c0d0e0f1011121314 /usr/bin/forwarder\n",
                                       "abcd030405060708090a0b0c0d0e0f10         [kernel.kallsyms]\n", NULL};

    assert_in_order(perf(state, "buildid-list", false), want);
    assert_in_order(perf(state, "buildid-list", true), want);
}

static void the_header_tells_of_the_machine(void **state)
{
    static const char *const want[] = {"# hostname : examplehost\n",
                                       "# os release : ",
                                       "# perf version : stalltrap ",
                                       "# arch : ",
                                       "# nrcpus online : ",
                                       "# cpudesc : ",
                                       "# cpuid : ",
                                       "# cmdline : stalltrap arm -p 4242",
                                       "# event : name = intel_pt//u, , id = { 100, 101 }, type = 8",
                                       "# event : name = dummy:u, , id = { 110, 111 }, type = 1",
                                       "# event : name = stalltrap:stall, , id = { 120, 121 }, type = 1",
                                       "software = 1",
                                       "intel_pt = 8",
                                       "# contains AUX area data",
                                       "# time of first sample : 1.000000",
                                       "# time of last sample : 1.000005",
                                       NULL};

    assert_in_order(perf(state, "report --header-only", false), want);
}

static void report_counts_the_stall(void **state)
{
    static const char *const want[] = {"Samples: 1  of event 'stalltrap:stall'", "100.00%", "forwarder",
                                       NULL};

    assert_in_order(perf(state, "report --stdio --itrace=e", false), want);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dump_shows_every_record_sorted_by_time),
        TEST(script_shows_the_stall),
        TEST(script_decodes_the_trace),
        TEST(evlist_shows_the_events),
        TEST(build_ids_are_listed),
        TEST(the_header_tells_of_the_machine),
        TEST(report_counts_the_stall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
