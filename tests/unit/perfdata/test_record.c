/* What perf record writes on this machine is read as perf itself reads it: each record's time, size, type,
 * thread and sample. */
#include "recording.h"
#include "scratch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A record as a line of text. */
struct line {
    char text[160];
};

struct lines {
    ST_VEC(struct line) all;
};

static void add_line(struct lines *lines, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_line(struct lines *lines, const char *fmt, ...)
{
    struct line line;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line.text, sizeof(line.text), fmt, ap);
    va_end(ap);
    assert_int_equal(st_vec_push(&lines->all, line), 0);
}

static void append(struct lines *lines, const char *what, uint64_t value)
{
    char *text = lines->all.at[lines->all.n - 1].text;
    size_t n = strlen(text);

    snprintf(text + n, sizeof(lines->all.at[0].text) - n, " %s %" PRIu64, what, value);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* perf has its own words for some types of pipe mode. */
static const char *usual_name(const char *name)
{
    static const char *const words[][2] = {
        {"ATTR", "HEADER_ATTR"}, {"FEATURE", "HEADER_FEATURE"}, {"TRACING_DATA", "HEADER_TRACING_DATA"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(name, words[i][0]))
            return words[i][1];
    return name;
}

/* The head of a record in a dump: "[CPU ]TIME OFFSET [SIZE]: PERF_RECORD_NAME...". */
static bool is_head(const char *text, uint64_t *time, unsigned *size, char *name)
{
    const char *at = strstr(text, " [0x");
    int64_t value;

    if (!at || sscanf(at, " [0x%x]: PERF_RECORD_%63[A-Z0-9_]", size, name) != 2)
        return false;
    for (int words = 0; at > text && words < 2; words += at == text || at[-1] == ' ')
        at--;
    if (sscanf(at, "%" SCNd64, &value) != 1)
        return false;
    *time = value == -1 ? 0 : (uint64_t)value;
    return true;
}

static void take_sample_head(struct lines *lines, const char *text)
{
    uint64_t pid, tid, ip, period;

    if (sscanf(text, "PERF_RECORD_SAMPLE(IP, 0x%*x): %" SCNu64 "/%" SCNu64 ": %" SCNx64 " period: %" SCNu64,
               &pid, &tid, &ip, &period) != 4)
        fail_msg("no sample: %s", text);
    append(lines, "", (uint32_t)pid); /* -1 for a task that is going away */
    append(lines, "", (uint32_t)tid);
    append(lines, "ip", ip);
    append(lines, "period", period);
}

/* The head, and those lines below it that tell of a sample. */
static void take_dump_line(struct lines *lines, const char *text)
{
    uint64_t time, n;
    unsigned size;
    char name[64];

    if (is_head(text, &time, &size, name)) {
        add_line(lines, "%" PRIu64 " [%u] %s", time, size, usual_name(name));
        if (!strcmp(name, "SAMPLE"))
            take_sample_head(lines, strstr(text, "PERF_RECORD_SAMPLE"));
    } else if (sscanf(text, "... FP chain: nr:%" SCNu64, &n) == 1) {
        append(lines, "chain", n);
    } else if (sscanf(text, "... ustack: size %" SCNu64, &n) == 1) {
        append(lines, "stack", n);
    }
}

static void perf_lines(const char *path, struct lines *lines)
{
    char command[512], *text = NULL;
    size_t room = 0;
    FILE *f;

    snprintf(command, sizeof(command), "perf --no-pager report --dump -i %s 2>/dev/null </dev/null", path);
    f = popen(command, "re");
    assert_non_null(f);
    while (getline(&text, &room, f) > 0)
        take_dump_line(lines, text);
    free(text);
    assert_int_equal(pclose(f), 0);
}

static int take_record(void *ctx, const struct pd_record *record, struct st_error *err)
{
    struct lines *lines = ctx;
    struct pd_sample s;
    int rc;

    add_line(lines, "%" PRIu64 " [%u] %s", record->id.time, record->header->size,
             pd_record_name(record->header->type));
    if (record->header->type != PERF_RECORD_SAMPLE)
        return 0;
    rc = pd_record_sample(record, &s, err);
    if (rc)
        return rc;
    append(lines, "", record->id.pid);
    append(lines, "", record->id.tid);
    append(lines, "ip", s.ip);
    append(lines, "period", s.period);
    if (s.callchain)
        append(lines, "chain", s.ncallchain);
    if (s.user_stack)
        append(lines, "stack", s.user_stack_size);
    return 0;
}

static void our_lines(const char *path, struct lines *lines)
{
    struct pd_reader *reader = NULL;
    struct st_error err = {0};

    if (pd_reader_open(path, &reader, &err) || pd_reader_each(reader, take_record, lines, &err))
        fail_msg("%s", err.text);
    pd_reader_close(reader);
}

static void compare(struct lines *ours, struct lines *perfs)
{
    qsort(ours->all.at, ours->all.n, sizeof(*ours->all.at), by_text);
    qsort(perfs->all.at, perfs->all.n, sizeof(*perfs->all.at), by_text);
    for (size_t i = 0; i < ours->all.n && i < perfs->all.n; i++)
        assert_string_equal(ours->all.at[i].text, perfs->all.at[i].text);
    assert_int_equal(ours->all.n, perfs->all.n);
}

#define WORK "dd if=/dev/zero of=/dev/null bs=4k count=60000 status=none"

/* Records WORK with `options` and compares; at least `samples` samples must be there, so that it means
 * something. */
static void check(void **state, const char *options, bool pipe, size_t samples)
{
    const char *path = scratch_path(state, "r.data");
    struct lines ours = {0}, perfs = {0};
    char command[1024];
    size_t n = 0;

    snprintf(command, sizeof(command),
             "perf --no-pager record -q %s -o %s -- " WORK " %s%s 2>%s/errors </dev/null", options,
             pipe ? "-" : path, pipe ? ">" : "", pipe ? path : "", (char *)*state);
    if (system(command) && system(command)) /* perf itself fails now and then on a busy machine */
        fail_msg("failed: %s", command);
    our_lines(path, &ours);
    perf_lines(path, &perfs);
    compare(&ours, &perfs);
    for (size_t i = 0; i < ours.all.n; i++)
        n += strstr(ours.all.at[i].text, " SAMPLE ") != NULL;
    assert_in_range(n, samples, SIZE_MAX);
    st_vec_free(&ours.all);
    st_vec_free(&perfs.all);
}

static void one_event(void **state)
{
    check(state, "-e cpu-clock -F 4000", false, 5);
}

static void call_chains(void **state)
{
    check(state, "-e cpu-clock -F 4000 -g", false, 5);
}

static void several_events(void **state)
{
    check(state, "-e cpu-clock,page-faults -c 1000 -d --switch-events", false, 5);
}

static void groups_that_are_read(void **state)
{
    check(state, "-e '{cpu-clock,page-faults}:S' -F 4000 -g", false, 5);
}

static void user_stacks_and_registers(void **state)
{
    check(state, "-e cpu-clock -F 2000 --call-graph dwarf --intr-regs=ax,bx -W", false, 3);
}

static void tracepoints(void **state)
{
    check(state, "-e sched:sched_switch,cpu-clock -a", false, 5);
}

static void compressed(void **state)
{
    check(state, "-e cpu-clock -F 4000 -g -z", false, 5);
}

static void pipe_mode(void **state)
{
    check(state, "-e cpu-clock,page-faults -F 4000 -g", true, 5);
}

static void pipe_mode_with_tracing_data(void **state)
{
    check(state, "-e sched:sched_switch,cpu-clock -a", true, 5);
}

static void compressed_pipe_mode(void **state)
{
    check(state, "-e cpu-clock -F 4000 -g -z", true, 5);
}

static void directory_of_threads(void **state)
{
    check(state, "-e cpu-clock -F 4000 -g -a --threads", false, 5);
}

static void compressed_directory_of_threads(void **state)
{
    check(state, "-e cpu-clock -F 4000 -g -a --threads -z", false, 5);
}

/* A pipe itself, not what it was saved to. */
static void a_live_pipe(void **state)
{
    struct pd_reader *reader = NULL;
    struct lines lines = {0};
    struct st_error err = {0};
    FILE *f = popen("perf --no-pager record -q -e cpu-clock -F 4000 -o - -- " WORK " 2>/dev/null", "re");

    (void)state;
    assert_non_null(f);
    if (pd_reader_open_fd(fileno(f), "the pipe", &reader, &err) ||
        pd_reader_each(reader, take_record, &lines, &err))
        fail_msg("%s", err.text);
    assert_int_equal(pclose(f), 0);
    assert_int_equal(pd_reader_nevents(reader), 1);
    assert_string_equal(pd_reader_event(reader, 0)->name, "cpu-clock");
    assert_non_null(pd_reader_string(reader, PD_FEAT_HOSTNAME));
    assert_in_range(lines.all.n, 10, SIZE_MAX);
    pd_reader_close(reader);
    st_vec_free(&lines.all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_event),
        TEST(call_chains),
        TEST(several_events),
        TEST(groups_that_are_read),
        TEST(user_stacks_and_registers),
        TEST(tracepoints),
        TEST(compressed),
        TEST(pipe_mode),
        TEST(pipe_mode_with_tracing_data),
        TEST(compressed_pipe_mode),
        TEST(directory_of_threads),
        TEST(compressed_directory_of_threads),
        TEST(a_live_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
