/* What a record tells of the CPU quota of a thread's control groups: the nearest one's, how often it was used
 * up, and whether it is now. Beside the group's own files. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUOTA  5000 /* us of a period */
#define PERIOD 1000000
#define MOST   1000000000ull /* us that a quota may be; one that is none is told as more, where it is told */

static char outer[128], inner[160]; /* the group with the quota, and one in it without */

static bool version_2;

/* ------------------------------------------------------------------ */
/* The groups                                                           */

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text);
}

static void set_quota(bool any)
{
    char text[64];

    if (version_2) {
        snprintf(text, sizeof(text), "%d %d", QUOTA, PERIOD);
        assert_true(write_file(outer, "cpu.max", any ? text : "max"));
        return;
    }
    snprintf(text, sizeof(text), "%d", PERIOD);
    assert_true(write_file(outer, "cpu.cfs_period_us", text));
    snprintf(text, sizeof(text), "%d", any ? QUOTA : -1);
    assert_true(write_file(outer, "cpu.cfs_quota_us", text));
}

static unsigned long long times_throttled(void)
{
    unsigned long long n = 0;
    char path[192], line[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/cpu.stat", outer);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) && sscanf(line, "nr_throttled %llu", &n) != 1)
        ;
    fclose(f);
    return n;
}

static int make_groups(void **state)
{
    (void)state;
    version_2 = access("/sys/fs/cgroup/cpu/cgroup.procs", W_OK) != 0;
    if (version_2)
        write_file("/sys/fs/cgroup", "cgroup.subtree_control", "+cpu");
    snprintf(outer, sizeof(outer), "/sys/fs/cgroup%s/stalltrap-quota-%d", version_2 ? "" : "/cpu", getpid());
    snprintf(inner, sizeof(inner), "%s/inner", outer);
    if (mkdir(outer, 0755)) {
        outer[0] = '\0';
        return 0;
    }
    if (!mkdir(inner, 0755) && (!version_2 || write_file(outer, "cgroup.subtree_control", "+cpu")))
        return 0;
    rmdir(inner);
    rmdir(outer);
    outer[0] = '\0';
    return 0;
}

static int remove_groups(void **state)
{
    (void)state;
    return outer[0] && (rmdir(inner) || rmdir(outer));
}

#define NEEDS_GROUPS()                                                                                       \
    do {                                                                                                     \
        NEEDS_BPF();                                                                                         \
        if (!outer[0]) {                                                                                     \
            print_message("skipped: no control group with a CPU quota can be made here\n");                  \
            skip();                                                                                          \
        }                                                                                                    \
    } while (0)

/* ------------------------------------------------------------------ */
/* The children                                                         */

static void pin(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(0, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        _exit(1);
}

static void join(struct workload *w)
{
    workload_be_ordinary();
    pin();
    if (!write_file(inner, "cgroup.procs", "0"))
        _exit(1);
    w->shared->note[1] = 1;
}

/* Uses the quota up. */
static void compute(struct workload *w)
{
    join(w);
    while (!w->shared->note[2])
        ;
}

/* Hardly uses it: is woken now and then. */
static void nap(struct workload *w)
{
    join(w);
    while (!w->shared->note[2])
        workload_sleep_ms(50);
}

/* Has the CPU for 300 ms at a time. */
static void hog(struct workload *w)
{
    pin();
    while (!w->shared->note[2]) {
        uint64_t start = workload_now();

        while (workload_now() - start < 300 * MS)
            ;
        workload_sleep_ms(100);
    }
}

/* ------------------------------------------------------------------ */

/* One that goes on, with our quota, used up (now "1") or not, and at least so many times before; NULL: there
 * is none. */
static const struct st_stall_record *find(const struct watch *w, pid_t tid, const char *now,
                                          unsigned long long times)
{
    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (r->tid == (uint32_t)tid && r->flags & ST_STALL_ONGOING &&
            !strcmp(spans_attribute(r, "cpu_quota_us"), "5000") &&
            !strcmp(spans_attribute(r, "throttled_now"), now) &&
            strtoull(spans_attribute(r, "throttled"), NULL, 10) >= times)
            return r;
    }
    return NULL;
}

static void begin(struct workload *work, workload_fn *fn, struct watch *w)
{
    workload_fork(work, fn);
    watch_start(w, "runq>20ms", &work->pid, 1, NULL, NULL);
    workload_go(work);
    while (!work->shared->note[1])
        workload_sleep_ms(1);
}

static const struct st_stall_record *wait_for(struct watch *w, pid_t tid, const char *now,
                                              unsigned long long times)
{
    const struct st_stall_record *r;

    for (int i = 0; i < 3000 && !(r = find(w, tid, now, times)); i++)
        watch_collect(w, w->records.n + 1, 20);
    if (!r)
        fail_msg("no record of our quota has throttled_now=%s and throttled=%llu or more", now, times);
    return r;
}

static void end(struct workload *work, struct watch *w)
{
    work->shared->note[2] = 1;
    if (w)
        watch_stop(w);
    workload_wait(work);
}

static void of_no_group_nothing_is_told(void **state)
{
    struct workload napper, taker;
    struct watch w;

    (void)state;
    NEEDS_GROUPS();
    set_quota(false);
    workload_fork(&taker, hog);
    begin(&napper, nap, &w);
    workload_go(&taker);
    for (int i = 0; i < 3000 && !watch_count(&w, napper.pid, ST_STALL_ONGOING, 0); i++)
        watch_collect(&w, w.records.n + 1, 20);
    const char *told = spans_attribute(watch_first(&w, napper.pid, ST_STALL_ONGOING, 0), "cpu_quota_us");
    assert_string_not_equal(told, "5000");
    assert_true(strtoull(told, NULL, 10) < MOST); /* of a group that was here before */
    end(&taker, NULL);
    end(&napper, &w);
}

static void a_quota_that_is_left_is_told_as_that(void **state)
{
    struct workload napper, taker;
    struct watch w;

    (void)state;
    NEEDS_GROUPS();
    set_quota(true);
    workload_fork(&taker, hog);
    begin(&napper, nap, &w);
    workload_go(&taker);
    wait_for(&w, napper.pid, "0", 0);
    end(&taker, NULL);
    end(&napper, &w);
}

static void a_quota_that_is_used_up_is_that_of_the_nearest_group(void **state)
{
    const struct st_stall_record *r;
    unsigned long long times;
    struct workload computer;
    struct watch w;

    (void)state;
    NEEDS_GROUPS();
    set_quota(true);
    begin(&computer, compute, &w);
    r = wait_for(&w, computer.pid, "1", 1); /* the kernel counts at the end of a period */
    times = strtoull(spans_attribute(r, "throttled"), NULL, 10);
    assert_string_equal(spans_attribute(r, "cpu_period_us"), "1000000");
    assert_in_range(times, 1, times_throttled());
    end(&computer, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_no_group_nothing_is_told),
        cmocka_unit_test(a_quota_that_is_left_is_told_as_that),
        cmocka_unit_test(a_quota_that_is_used_up_is_that_of_the_nearest_group),
    };

    return cmocka_run_group_tests(tests, make_groups, remove_groups);
}
