/* The side-band from the kernel's own events: what a target does is told, threads and children included.
 * Needs perf events for one's own processes (kernel.perf_event_paranoid at most 2). */
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"
#include "recorder/sideband/sideband.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_list.h"

static int64_t mono_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns how long the reading took: so far apart may its three times be. */
static int64_t read_moment(struct rec_clock *clock, struct rec_moment *moment)
{
    int64_t begun = mono_now();

    assert_int_equal(rec_clock_moment(clock, moment, NULL), 0);
    return mono_now() - begun;
}

static void perf_time_goes_on(void **state)
{
    struct rec_clock clock = {.fd = -1};
    struct rec_moment a, b;
    int64_t apart;
    uint64_t now;

    (void)state;
    assert_int_equal(rec_clock_open(&clock, NULL), 0);
    apart = read_moment(&clock, &a);
    assert_int_equal(rec_clock_now(&clock, &now, NULL), 0);
    assert_true(now >= a.perf);
    usleep(20000);
    apart += read_moment(&clock, &b);
    assert_true(b.perf > now);
    /* The same time went by in all three clocks, but for what each reading took and for their rates, which
     * the kernel corrects by less than a thousandth. */
    apart += (b.mono - a.mono) / 1000;
    assert_true(llabs((int64_t)(b.perf - a.perf) - (b.mono - a.mono)) <= apart);
    assert_true(llabs((b.wall - a.wall) - (b.mono - a.mono)) <= apart);
    rec_clock_close(&clock);
    rec_clock_close(&clock);
}

/* A thread's name is not touched by reading the clock. */
static void the_clock_keeps_the_name(void **state)
{
    struct rec_clock clock = {.fd = -1};
    char name[16];
    uint64_t now;

    (void)state;
    prctl(PR_SET_NAME, "unchanged");
    assert_int_equal(rec_clock_open(&clock, NULL), 0);
    for (int i = 0; i < 1000; i++) /* far more than the ring holds at once */
        assert_int_equal(rec_clock_now(&clock, &now, NULL), 0);
    prctl(PR_GET_NAME, name);
    assert_string_equal(name, "unchanged");
    rec_clock_close(&clock);
}

/* The target: a child that waits for a byte before each deed and answers with one. */
struct child {
    pid_t pid;

    int to[2], from[2];
};

static void *thread_main(void *arg)
{
    prctl(PR_SET_NAME, arg);
    usleep(1000);
    return NULL;
}

static void make_thread(const char *name)
{
    pthread_t t;

    if (pthread_create(&t, NULL, thread_main, (void *)name) || pthread_join(t, NULL))
        _exit(1);
}

static void do_deed(char deed)
{
    pid_t pid;

    switch (deed) {
    case 't':
        make_thread("new thread");
        break;
    case 'm':
        if (mmap(NULL, 12288, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            _exit(1);
        break;
    case 'f':
        pid = fork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(pid, NULL, 0);
        break;
    default:
        break;
    }
}

static void child_main(struct child *c)
{
    char deed;

    prctl(PR_SET_NAME, "the target");
    while (read(c->to[0], &deed, 1) == 1) {
        do_deed(deed);
        if (write(c->from[1], &deed, 1) != 1)
            break;
    }
    _exit(0);
}

static void start_child(struct child *c)
{
    assert_int_equal(pipe(c->to) | pipe(c->from), 0);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        close(c->to[1]);
        child_main(c);
    }
    close(c->to[0]);
}

static void ask(struct child *c, char deed)
{
    char done;

    assert_int_equal(write(c->to[1], &deed, 1), 1);
    assert_int_equal(read(c->from[0], &done, 1), 1);
}

static void end_child(struct child *c)
{
    close(c->to[1]);
    waitpid(c->pid, NULL, 0);
    close(c->from[0]);
    close(c->from[1]);
}

struct recording {
    struct rec_clock clock;

    struct rec_store *store;

    struct rec_sideband *sideband;

    struct st_target target;

    struct rec_stored *list;

    size_t n;
};

static void open_recording(struct recording *r, pid_t *pid, bool switches)
{
    struct rec_sideband_config config = {.target = &r->target, .switches = switches};

    *r = (struct recording){.clock = {.fd = -1}, .target = {.kind = ST_TARGET_PIDS, .pids = pid, .npids = 1}};
    assert_int_equal(rec_store_open(NULL, &r->store, NULL), 0);
    assert_int_equal(rec_clock_open(&r->clock, NULL), 0);
    assert_int_equal(rec_sideband_open(&config, &r->clock, r->store, &r->sideband, NULL), 0);
}

static void read_recording(struct recording *r)
{
    assert_int_equal(rec_sideband_drain(r->sideband, NULL), 0);
    free(r->list);
    list_store(r->store, &r->list, &r->n);
}

static size_t count_type(const struct recording *r, uint32_t type)
{
    size_t found = 0;

    for (size_t i = 0; i < r->n; i++)
        found += r->list[i].record->type == type;
    return found;
}

/* Reads until there are `n` records of the type: who joins a thread goes on before the kernel tells of its
 * end. A minute is the end of what hangs. */
static void read_until(struct recording *r, uint32_t type, size_t n)
{
    for (int i = 0; i < 6000; i++) {
        read_recording(r);
        if (count_type(r, type) >= n)
            return;
        usleep(10000);
    }
    fail_msg("%zu records of type %u, not %zu", count_type(r, type), type, n);
}

static void close_recording(struct recording *r)
{
    free(r->list);
    rec_sideband_close(r->sideband, -1);
    rec_clock_close(&r->clock);
    rec_store_close(r->store);
}

static bool has_comm(const struct recording *r, const char *name, bool exec)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct rec_comm_record *c = (const struct rec_comm_record *)r->list[i].record;

        if (c->header.type == PERF_RECORD_COMM && !strcmp(c->comm, name) &&
            ((c->header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0) == exec)
            return true;
    }
    return false;
}

static bool has_map(const struct recording *r, pid_t pid, const char *part, uint64_t len, bool build_id)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct rec_mmap2_record *m = (const struct rec_mmap2_record *)r->list[i].record;

        if (m->header.type == PERF_RECORD_MMAP2 && (!pid || m->pid == (uint32_t)pid) &&
            strstr(m->filename, part) && (!len || m->len == len) &&
            (!build_id || (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)))
            return true;
    }
    return false;
}

static void what_is_there_and_what_happens_is_told(void **state)
{
    struct recording r;
    struct child c;

    (void)state;
    start_child(&c);
    ask(&c, ' ');
    open_recording(&r, &c.pid, false);
    read_recording(&r);
    assert_true(has_comm(&r, "the target", false));
    assert_true(has_map(&r, c.pid, "libc", 0, true));
    assert_true(has_map(&r, c.pid, "[vdso]", 0, false));
    assert_false(has_comm(&r, "new thread", false));

    ask(&c, 't');
    ask(&c, 'm');
    ask(&c, 'f');
    read_until(&r, PERF_RECORD_EXIT, 2);
    assert_true(has_comm(&r, "new thread", false));
    assert_true(has_map(&r, c.pid, "//anon", 12288, false));
    assert_true(has_comm(&r, "true", true));
    assert_true(has_map(&r, 0, "/true", 0, true));
    /* The child itself from /proc, then the thread and the forked process; both of these ended. */
    assert_int_equal(count_type(&r, PERF_RECORD_FORK), 3);
    assert_int_equal(count_type(&r, PERF_RECORD_EXIT), 2);
    end_child(&c);
    read_until(&r, PERF_RECORD_EXIT, 3);
    assert_int_equal(count_type(&r, PERF_RECORD_EXIT), 3);
    assert_int_equal(count_type(&r, PERF_RECORD_LOST), 0);
    close_recording(&r);
}

static void records_carry_time_thread_and_event(void **state)
{
    struct rec_clock clock = {.fd = -1};
    struct recording r;
    struct child c;
    uint64_t before, after;

    (void)state;
    start_child(&c);
    assert_int_equal(rec_clock_open(&clock, NULL), 0);
    assert_int_equal(rec_clock_now(&clock, &before, NULL), 0);
    rec_clock_close(&clock);
    open_recording(&r, &c.pid, true);
    ask(&c, 'm');
    ask(&c, ' ');
    read_until(&r, PERF_RECORD_SWITCH, 2);
    assert_int_equal(rec_clock_now(&r.clock, &after, NULL), 0);
    for (size_t i = 0; i < r.n; i++) {
        const struct perf_event_header *h = r.list[i].record;
        const struct rec_trailer *t = (const struct rec_trailer *)((const char *)h + h->size) - 1;
        enum rec_sideband_group which =
            h->type == PERF_RECORD_SWITCH ? REC_SIDEBAND_SWITCHES : REC_SIDEBAND_STATE;
        const struct rec_group *group = rec_sideband_group(r.sideband, which);
        bool known = false;

        for (size_t k = 0; k < group->events.n; k++)
            known |= group->events.at[k].id == t->id;
        assert_true(known);
        assert_int_equal(t->pid, c.pid);
        assert_true(r.list[i].time == t->time && t->time <= after);
        if (h->type == PERF_RECORD_SWITCH)
            assert_true(t->time >= before);
    }
    end_child(&c);
    close_recording(&r);
}

/* The events of many threads write into a ring a CPU; none of them is missed and none is told twice. */
static void threads_that_are_born_all_the_time(void **state)
{
    struct recording r;
    struct child c;
    enum { THREADS = 200 };

    (void)state;
    start_child(&c);
    open_recording(&r, &c.pid, false);
    for (int i = 0; i < THREADS; i++) {
        ask(&c, 't');
        if (i % 50 == 49) /* 64 KiB hold that many, on whichever CPU */
            read_recording(&r);
    }
    read_until(&r, PERF_RECORD_EXIT, THREADS);
    assert_int_equal(count_type(&r, PERF_RECORD_FORK), 1 + THREADS);
    assert_int_equal(count_type(&r, PERF_RECORD_EXIT), THREADS);
    assert_int_equal(count_type(&r, PERF_RECORD_LOST), 0);
    end_child(&c);
    close_recording(&r);
}

/* So that all of its records are in one ring. */
static void stay_on_one_cpu(pid_t pid)
{
    cpu_set_t mine, one;
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
    while (!CPU_ISSET(cpu, &mine))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

static void ringing_wakes_the_loop(void **state)
{
    struct st_error err = {0};
    struct recording r;
    struct child c;
    int loop = rec_loop_open(&err);
    struct rec_watch timer = {.fd = -1};

    (void)state;
    (void)timer;
    start_child(&c);
    stay_on_one_cpu(c.pid);
    open_recording(&r, &c.pid, false);
    assert_int_equal(rec_sideband_watch(r.sideband, loop, &err), 0);
    /* 64 KiB of records a CPU: half of them must have been asked for, without one poll of ours in between. */
    for (int i = 0; i < 600; i++)
        ask(&c, 't');
    assert_int_equal(rec_loop_turn(loop, &err), 0);
    free(r.list);
    list_store(r.store, &r.list, &r.n);
    assert_true(count_type(&r, PERF_RECORD_FORK) > 100);
    end_child(&c);
    rec_sideband_close(r.sideband, loop);
    r.sideband = NULL;
    close_recording(&r);
    close(loop);
}

static int count_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    (void)pid;
    (void)tid;
    (void)err;
    ++*(int *)ctx;
    return 0;
}

static void new_threads_are_announced(void **state)
{
    struct recording r;
    struct child c;
    int announced = 0;

    (void)state;
    start_child(&c);
    open_recording(&r, &c.pid, false);
    rec_sideband_on_thread(r.sideband, count_thread, &announced);
    ask(&c, 't');
    ask(&c, 't');
    read_recording(&r);
    assert_int_equal(announced, 2);
    end_child(&c);
    close_recording(&r);
}

static void a_target_that_is_gone(void **state)
{
    pid_t gone = 999999999;
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &gone, .npids = 1};
    struct rec_sideband_config config = {.target = &target};
    struct rec_clock clock = {.fd = -1};
    struct rec_sideband *sideband;
    struct rec_store *store;
    struct st_error err = {0};

    (void)state;
    assert_int_equal(rec_store_open(NULL, &store, NULL), 0);
    assert_int_equal(rec_clock_open(&clock, NULL), 0);
    assert_int_equal(rec_sideband_open(&config, &clock, store, &sideband, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "ended"));
    rec_clock_close(&clock);
    rec_store_close(store);
}

/* Everything needs a privilege; without it the refusal says which. */
static void the_whole_machine(void **state)
{
    struct st_target target = {.kind = ST_TARGET_ALL};
    struct rec_sideband_config config = {.target = &target, .switches = true};
    struct recording r = {.clock = {.fd = -1}};
    struct st_error err = {0};
    struct child c;
    int rc;

    (void)state;
    start_child(&c);
    ask(&c, ' ');
    assert_int_equal(rec_store_open(NULL, &r.store, NULL), 0);
    assert_int_equal(rec_clock_open(&r.clock, NULL), 0);
    rc = rec_sideband_open(&config, &r.clock, r.store, &r.sideband, &err);
    if (rc) {
        assert_int_equal(rc, ST_ECANNOT);
        assert_non_null(strstr(err.text, "CAP_PERFMON"));
        assert_true(geteuid() != 0);
    } else {
        /* The machine's other threads fill the rings too. */
        for (int i = 0; i < 6000 && !has_comm(&r, "new thread", false); i++) {
            ask(&c, 't');
            read_recording(&r);
        }
        assert_true(has_comm(&r, "the target", false));
        assert_true(has_comm(&r, "new thread", false));
        assert_true(has_map(&r, c.pid, "libc", 0, true));
        assert_true(count_type(&r, PERF_RECORD_SWITCH_CPU_WIDE) > 0);
    }
    end_child(&c);
    close_recording(&r);
}

/* What the kernel answers where kernel.perf_event_paranoid forbids: the message says so, and what to do. */
static void refusals_are_explained(void **state)
{
    struct st_error err = {0};
    char level[64];

    (void)state;
    snprintf(level, sizeof(level), "kernel.perf_event_paranoid is %d", rec_perf_paranoid());
    errno = EACCES;
    assert_int_equal(rec_perf_refused("watch thread 12", &err), ST_ECANNOT);
    assert_non_null(strstr(err.text, "no permission to watch thread 12"));
    assert_non_null(strstr(err.text, level));
    assert_non_null(strstr(err.text, "CAP_PERFMON"));
    errno = EMFILE;
    assert_int_equal(rec_perf_refused("watch thread 12", &err), ST_ECANNOT);
    assert_non_null(strstr(err.text, "ulimit -n"));
    errno = ESRCH;
    assert_int_equal(rec_perf_refused("watch thread 12", &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "it has ended"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perf_time_goes_on),
        cmocka_unit_test(the_clock_keeps_the_name),
        cmocka_unit_test(what_is_there_and_what_happens_is_told),
        cmocka_unit_test(records_carry_time_thread_and_event),
        cmocka_unit_test(threads_that_are_born_all_the_time),
        cmocka_unit_test(ringing_wakes_the_loop),
        cmocka_unit_test(new_threads_are_announced),
        cmocka_unit_test(a_target_that_is_gone),
        cmocka_unit_test(the_whole_machine),
        cmocka_unit_test(refusals_are_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
