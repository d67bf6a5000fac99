/* When nothing may fire, what is measured all the same, and what happens without the rights. */
#include "watch.h"
#include "workload.h"

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

#define BLOCKS "offcpu>20ms,state=blocked+sleeping"
#define SETTLE 150
#define MS     1000000ull

#define NEEDS_BPF()                                                                                          \
    do {                                                                                                     \
        if (!watch_possible())                                                                               \
            skip();                                                                                          \
    } while (0)

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

static void begin(struct workload *work, workload_fn *fn, struct watch *w, const char *text,
                  const struct trg_config *more)
{
    assert_int_equal(pipe(ends), 0);
    workload_fork(work, fn);
    watch_start(w, text, &work->pid, 1, NULL, more);
    workload_go(work);
}

static void finish(struct workload *work, struct watch *w)
{
    watch_stop(w);
    workload_wait(work);
    close(ends[0]);
    close(ends[1]);
}

/* While held, stalls are recorded, but none fires; then they fire again. */
static void test_hold(void **state)
{
    struct st_error err = {0};
    struct workload work;
    struct watch w;
    size_t held;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_ten, &w, BLOCKS, NULL);
    assert_int_equal(trg_hold(w.set, UINT64_MAX, &err), 0);
    feeder = workload_feeder(&work, ends[1], 40, 10);
    watch_collect(&w, 4, 3000);
    assert_int_equal(watch_count(&w, 0, ST_STALL_FIRED, 0), 0);
    held = w.records.n;
    assert_true(held >= 4);
    assert_int_equal(trg_hold(w.set, 0, &err), 0);
    watch_collect(&w, 10, 3000);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_true(watch_count(&w, 0, ST_STALL_FIRED, 0) >= 10 - held - 1);
    assert_int_equal(watch_count(&w, 0, 0, ST_STALL_COMPLETION), 10);
    finish(&work, &w);
    workload_reap(feeder);
}

static void test_hold_for_a_time(void **state)
{
    struct st_error err = {0};
    struct workload work;
    struct watch w;
    uint64_t until;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_ten, &w, BLOCKS, NULL);
    until = workload_now() + 200 * MS;
    assert_int_equal(trg_hold(w.set, 200 * MS, &err), 0);
    feeder = workload_feeder(&work, ends[1], 40, 10);
    watch_collect(&w, 10, 3000);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_int_equal(watch_count(&w, 0, 0, ST_STALL_COMPLETION), 10);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        if (r->now_ktime < until)
            assert_false(r->flags & ST_STALL_FIRED);
        else if (r->now_ktime > until + 10 * MS && !(r->flags & ST_STALL_COMPLETION))
            assert_true(r->flags & ST_STALL_FIRED);
    }
    finish(&work, &w);
    workload_reap(feeder);
}

/* A hang that began during the warm-up fires when that is over. */
static void test_warm_up(void **state)
{
    struct trg_config config = {.warm_up_ns = 300 * MS};
    struct workload work;
    struct watch w;
    uint64_t armed;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_one, &w, BLOCKS, &config);
    armed = workload_now();
    watch_collect(&w, 1, 200);
    assert_int_equal(w.records.n, 0);
    watch_collect(&w, 1, 1000);
    watch_first(&w, work.pid, ST_STALL_ONGOING | ST_STALL_FIRED, 0);
    assert_true(workload_now() > armed + 250 * MS);
    assert_int_equal(write(ends[1], "x", 1), 1);
    watch_collect(&w, 2, 1000);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    finish(&work, &w);
}

static void test_measure_only(void **state)
{
    struct trg_config config = {.measure_only = true};
    char text[8192] = "";
    struct st_error err = {0};
    struct workload work;
    struct watch w;
    pid_t feeder;
    FILE *to;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_ten, &w, BLOCKS, &config);
    feeder = workload_feeder(&work, ends[1], 40, 10);
    watch_collect(&w, SIZE_MAX, 700);
    assert_int_equal(w.records.n, 0);
    to = fmemopen(text, sizeof(text), "w");
    assert_int_equal(trg_print_histograms(w.set, to, &err), 0);
    fclose(to);
    assert_non_null(strstr(text, "offcpu>20ms,state=blocked+sleeping: time off the CPU: 10 measured\n"));
    assert_non_null(strstr(text, "  33.6 ms ..  67.1 ms"));
    assert_non_null(strstr(text, "p50 4"));
    finish(&work, &w);
    workload_reap(feeder);
}

/* Each new worst fires, and nothing that is less. */
static void read_more_and_less(struct workload *w)
{
    static const int ms[] = {30, 10, 50, 40, 45, 70, 20};
    pid_t pid = fork();

    if (!pid) {
        for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
            while (w->shared->asked <= (int)i)
                workload_sleep_ms(1);
            workload_sleep_ms(ms[i]);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    read_bytes(w, 7);
}

static void test_worst(void **state)
{
    struct workload work;
    struct watch w;
    uint64_t worst = 0;

    (void)state;
    NEEDS_BPF();
    begin(&work, read_more_and_less, &w, "offcpu>worst,state=sleeping", NULL);
    watch_collect(&w, SIZE_MAX, 1000);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_true(r->measured_ns > worst);
        worst = r->measured_ns;
    }
    assert_true(worst > 65 * MS && w.records.n >= 3);
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
