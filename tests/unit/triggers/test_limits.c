/* When nothing may fire, what is measured all the same, and what happens without the rights. */
#include "spans.h"
#include "triggers/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

static void read_bytes(struct workload *w, int n)
{
    for (int i = 0; i < n; i++)
        workload_read_fed(w, ends[0]);
}

static void read_ten(struct workload *w)
{
    read_bytes(w, 10);
}

static void read_one(struct workload *w)
{
    read_bytes(w, 1);
}

static void prepare(struct workload *work, workload_fn *fn, struct watch *w, const char *text,
                    const struct trg_config *more)
{
    assert_int_equal(pipe(ends), 0);
    workload_fork(work, fn);
    watch_start(w, text, &work->pid, 1, NULL, more);
}

static void begin(struct workload *work, workload_fn *fn, struct watch *w, const char *text,
                  const struct trg_config *more)
{
    prepare(work, fn, w, text, more);
    workload_go(work);
}

static void finish(struct workload *work, struct watch *w)
{
    watch_stop(w);
    workload_wait(work);
    close(ends[0]);
    close(ends[1]);
}

/* Of the reads alone: on a busy machine a page may have to come from the disk. */
static size_t in_read(const struct watch *w, uint32_t with, uint32_t without)
{
    size_t n = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        n += r->syscall == SYS_read && (r->flags & with) == with && !(r->flags & without);
    }
    return n;
}

/* Until so many stalls in read were told. */
static void collect_reads(struct watch *w, size_t n)
{
    uint64_t give_up = workload_now() + 120000 * MS;

    while (in_read(w, 0, ST_STALL_COMPLETION) < n && workload_now() < give_up)
        watch_collect(w, w->records.n + 1, 20);
}

/* While held, stalls are recorded, but none fires; then they fire again. The fifth may have begun before. */
static void test_hold(void **state)
{
    struct st_error err = {0};
    struct workload work;
    struct watch w;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    prepare(&work, read_ten, &w, BLOCKS, NULL);
    assert_int_equal(trg_hold(w.set, UINT64_MAX, &err), 0);
    workload_go(&work);
    feeder = workload_feeder(&work, ends[1], 40, 4);
    collect_reads(&w, 4);
    workload_reap(feeder);
    assert_int_equal(watch_count(&w, 0, ST_STALL_FIRED, 0), 0);
    assert_int_equal(in_read(&w, 0, ST_STALL_COMPLETION), 4);
    assert_int_equal(trg_hold(w.set, 0, &err), 0);
    feeder = workload_feeder(&work, ends[1], 40, 6);
    told_collect(&w, &work, 10, 5);
    assert_in_range(in_read(&w, ST_STALL_FIRED, 0), 5, 6);
    assert_int_equal(in_read(&w, 0, ST_STALL_COMPLETION), 10);
    finish(&work, &w);
    workload_reap(feeder);
}

static void test_hold_for_a_time(void **state)
{
    struct st_error err = {0};
    struct workload work;
    struct watch w;
    uint64_t earliest, latest;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    prepare(&work, read_ten, &w, BLOCKS, NULL);
    earliest = workload_now() + 200 * MS;
    assert_int_equal(trg_hold(w.set, 200 * MS, &err), 0);
    latest = workload_now() + 200 * MS;
    workload_go(&work);
    feeder = workload_feeder(&work, ends[1], 40, 10);
    told_collect(&w, &work, 10, 0);
    assert_int_equal(in_read(&w, 0, ST_STALL_COMPLETION), 10);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        if (r->now_ktime < earliest)
            assert_false(r->flags & ST_STALL_FIRED);
        else if (r->start_ktime + r->measured_ns > latest + MS && !(r->flags & ST_STALL_COMPLETION))
            assert_true(r->flags & ST_STALL_FIRED);
    }
    finish(&work, &w);
    workload_reap(feeder);
}

/* A hang that began during the warm-up fires when that is over: it is told late, not measured late. */
static void test_warm_up(void **state)
{
    struct trg_config config = {.warm_up_ns = 300 * MS};
    const struct st_stall_record *r;
    uint64_t armed, asleep, give_up;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    armed = workload_now();
    begin(&work, read_one, &w, BLOCKS, &config);
    give_up = armed + 120000 * MS;
    while ((!work.shared->asked || !workload_sleeps(work.pid)) && workload_now() < give_up)
        workload_sleep_ms(1);
    asleep = workload_now();
    collect_reads(&w, 1);
    r = watch_first(&w, work.pid, ST_STALL_ONGOING | ST_STALL_FIRED, 0);
    assert_true(r->now_ktime >= armed + 300 * MS);
    assert_true(r->start_ktime <= asleep);
    assert_int_equal(write(ends[1], "x", 1), 1);
    told_collect(&w, &work, 1, 1);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(in_read(&w, 0, 0), 2);
    finish(&work, &w);
}

/* The shortest and the longest of the stalls that the workload noted, in ms. */
static void bounds_noted(const struct workload *work, double *least, double *most)
{
    *least = 1e9;
    *most = 0;
    for (size_t i = 0; i < work->shared->stalls; i++) {
        double took = (double)(work->shared->stall[i].end_ns - work->shared->stall[i].start_ns) / (double)MS;

        *least = took < *least ? took : *least;
        *most = took > *most ? took : *most;
    }
}

static void test_measure_only(void **state)
{
    static const char head[] = "offcpu>20ms,state=blocked+sleeping: time off the CPU: ";
    struct trg_config config = {.measure_only = true};
    char text[8192] = "";
    struct st_error err = {0};
    double least, most, p50 = 0;
    struct workload work;
    struct watch w;
    int measured = 0;
    pid_t feeder;
    FILE *to;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_ten, &w, BLOCKS, &config);
    feeder = workload_feeder(&work, ends[1], 40, 10);
    told_collect(&w, &work, 10, 0);
    assert_int_equal(w.records.n, 0);
    to = fmemopen(text, sizeof(text), "w");
    assert_int_equal(trg_print_histograms(w.set, false, to, &err), 0);
    fclose(to);
    assert_int_equal(strncmp(text, head, strlen(head)), 0);
    assert_int_equal(sscanf(text + strlen(head), "%d measured", &measured), 1);
    assert_true(measured >= 10); /* a page that has to come from the disk is a wait too */
    assert_int_equal(sscanf(strstr(text, "p50 "), "p50 %lf ms", &p50), 1);
    bounds_noted(&work, &least, &most);
    if (p50 < 0.85 * least || p50 > 1.15 * most) /* a bucket is an eighth of a power of two */
        fail_msg("p50 %f ms of stalls of %f to %f ms\n%s", p50, least, most, text);
    finish(&work, &w);
    workload_reap(feeder);
}

/* Each new worst fires, and nothing that is less. The reader sleeps at least so long in each. */
static const int worst_ms[] = {30, 10, 50, 40, 45, 70, 20};

enum { WORSTS = sizeof(worst_ms) / sizeof(worst_ms[0]) };

static void read_more_and_less(struct workload *w)
{
    pid_t reader = getpid(), pid = fork();

    if (!pid) {
        for (int i = 0; i < WORSTS; i++) {
            while (w->shared->asked <= i || !workload_sleeps(reader))
                workload_sleep_ms(1);
            workload_sleep_ms(worst_ms[i]);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    read_bytes(w, WORSTS);
}

/* The record that fired in a stall; NULL: none did. */
static const struct st_stall_record *fired_during(const struct watch *w, const struct workload_stall *s)
{
    const struct st_stall_record *found = NULL;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (!(r->flags & ST_STALL_FIRED) || r->syscall != SYS_read || r->start_ktime + MS <= s->start_ns ||
            r->start_ktime >= s->end_ns)
            continue;
        assert_null(found);
        found = r;
    }
    return found;
}

/* What was measured of a stall is at least what the writer waited while the reader slept, and at most what
 * the reader noted: so some must fire, some must not, and what lies between is either. */
static void test_worst(void **state)
{
    uint64_t noted = 0, told = 0;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_more_and_less, &w, "offcpu>worst,state=sleeping", NULL);
    told_collect(&w, &work, WORSTS, 0);
    assert_int_equal(work.shared->stalls, WORSTS);
    for (int i = 0; i < WORSTS; i++) {
        const struct workload_stall *s = &work.shared->stall[i];
        const struct st_stall_record *r = fired_during(&w, s);
        uint64_t took = s->end_ns - s->start_ns;

        if (!i || (uint64_t)worst_ms[i] * MS > noted)
            assert_non_null(r);
        if (took <= told)
            assert_null(r);
        if (r) {
            assert_true(spans_whole(&w, r)->measured_ns > told);
            told = spans_whole(&w, r)->measured_ns;
        }
        noted = took > noted ? took : noted;
    }
    assert_true(told >= 70 * MS);
    finish(&work, &w);
}

/* ---- refused ---- */

/* Runs trg_open() in a child that has only the capabilities `keep`; returns its code, and its message in
 * text. */
static int open_with(uint64_t keep, char *text, size_t size)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{(uint32_t)keep, (uint32_t)keep, 0},
                                             {(uint32_t)(keep >> 32), (uint32_t)(keep >> 32), 0}};
    struct st_target target = {.kind = ST_TARGET_ALL};
    struct trg_config config = {.target = &target};
    int out[2], status;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(out), 0);
    pid = fork();
    if (!pid) {
        struct st_error err = {0};
        struct trg_set *set = NULL;
        int rc = trg_add(&set, "offcpu>20ms", &err);

        if (syscall(SYS_capset, &header, data))
            _exit(99);
        if (!rc)
            rc = trg_open(set, &config, &err);
        n = write(out[1], err.text, strlen(err.text) + 1);
        trg_close(set);
        _exit(n > 0 ? -rc : 99);
    }
    close(out[1]);
    n = read(out[0], text, size);
    assert_true(n > 0);
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return -WEXITSTATUS(status);
}

static void test_missing_capabilities_are_named(void **state)
{
    char text[1024];

    (void)state;
    if (geteuid()) {
        print_message("skipped: only root has capabilities to drop\n");
        skip();
    }
    assert_int_equal(open_with(0, text, sizeof(text)), ST_ECANNOT);
    assert_non_null(strstr(text, "lacks CAP_BPF and CAP_PERFMON"));
    assert_int_equal(open_with(1ull << CAP_BPF, text, sizeof(text)), ST_ECANNOT);
    assert_non_null(strstr(text, "lacks CAP_PERFMON\n"));
    assert_int_equal(open_with(1ull << CAP_PERFMON, text, sizeof(text)), ST_ECANNOT);
    assert_non_null(strstr(text, "lacks CAP_BPF\n"));
}

static void test_two_capabilities_are_enough(void **state)
{
    char text[1024];

    (void)state;
    NEEDS_BPF();
    assert_int_equal(open_with(1ull << CAP_BPF | 1ull << CAP_PERFMON, text, sizeof(text)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_hold_for_a_time),
        cmocka_unit_test(test_warm_up),
        cmocka_unit_test(test_measure_only),
        cmocka_unit_test(test_worst),
        cmocka_unit_test(test_missing_capabilities_are_named),
        cmocka_unit_test(test_two_capabilities_are_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
