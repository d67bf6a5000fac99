/* In which order a freeze stops the rings: that of the thread that stalled, or of its CPU, is the first one.
 */
#include "recorder/sources/sample/sample.h"
#include "recorder/sources/step/step.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 6 };

struct target {
    pid_t pid;

    pid_t tids[THREADS];
};

static bool busy; /* a stepped thread has a ring that is not closed only while it runs in user space */

static void *run(void *at)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);

    if (write(*(int *)at, &tid, sizeof(tid)) != sizeof(tid))
        _exit(1);
    for (volatile unsigned i = 0;; i++)
        if (!busy)
            usleep(1000);
    return NULL;
}

static void start(struct target *t)
{
    pthread_t thread;
    int told[2];

    assert_int_equal(pipe(told), 0);
    t->pid = fork();
    if (!t->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 1; i < THREADS; i++)
            if (pthread_create(&thread, NULL, run, &told[1]))
                _exit(1);
        run(&told[1]);
    }
    close(told[1]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(read(told[0], &t->tids[i], sizeof(pid_t)), sizeof(pid_t));
    close(told[0]);
}

static void end(const struct target *t)
{
    kill(t->pid, SIGKILL);
    waitpid(t->pid, NULL, 0);
}

static void must(int rc, const struct st_error *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

/* Which ring was stopped before all others; NULL: two at once, or not all were. */
static const struct rec_ring *earliest(const struct rec_ring *rings, size_t n)
{
    const struct rec_ring *first = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!rings[i].stopped)
            return NULL;
        if (!first || rings[i].stopped < first->stopped)
            first = &rings[i];
    }
    for (size_t i = 0; i < n; i++)
        if (&rings[i] != first && rings[i].stopped == first->stopped)
            return NULL;
    return first;
}

static void freeze_each(const struct rec_source_ops *ops, const struct target *t, struct rec_source *source,
                        bool by_cpu)
{
    size_t kinds = by_cpu ? (size_t)sysconf(_SC_NPROCESSORS_ONLN) : THREADS;
    struct st_error err = {0};

    for (size_t i = 0; i < 2 * kinds; i++) {
        struct rec_first first = {.tid = t->tids[i % THREADS], .cpu = by_cpu ? (int)(i % kinds) : 0};
        const struct rec_ring *rings, *early;
        struct rec_freeze how;
        size_t n;

        must(ops->freeze(source, first, &how, &err), &err);
        must(ops->rings(source, &rings, &n, &err), &err);
        early = earliest(rings, n);
        assert_non_null(early);
        assert_true(early->stopped >= how.asked_time && early->stopped <= how.done_time);
        assert_false(early->marks);
        assert_int_equal(by_cpu ? early->cpu : early->tid, by_cpu ? first.cpu : first.tid);
        must(ops->resume(source, &err), &err);
    }
}

/* A stepped thread has a ring once it has run. */
static void wait_for_rings(const struct rec_source_ops *ops, struct rec_source *source)
{
    const struct rec_ring *rings;
    struct st_error err = {0};
    struct rec_freeze how;
    size_t n = 0;

    for (int i = 0; i < 60000 && n < THREADS; i++) {
        if (n)
            usleep(1000);
        must(ops->freeze(source, (struct rec_first){-1, -1}, &how, &err), &err);
        must(ops->rings(source, &rings, &n, &err), &err);
        must(ops->resume(source, &err), &err);
    }
    assert_int_equal(n, THREADS);
}

static void try(const struct rec_source_ops *ops, enum rec_rings rings)
{
    struct target t;
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &t.pid, .npids = 1};
    struct rec_source_config config = {.target = &target, .rings = rings, .ring_bytes = 65536};
    struct rec_source *source;
    struct st_error err = {0};

    start(&t);
    must(ops->open(&config, &source, &err), &err);
    must(ops->start(source, &err), &err);
    if (busy)
        wait_for_rings(ops, source);
    freeze_each(ops, &t, source, rings == REC_RINGS_CPU);
    ops->close(source);
    end(&t);
}

static void rings_of_threads(void **state)
{
    (void)state;
    try(&rec_source_sample, REC_RINGS_THREAD);
}

static void rings_of_cpus(void **state)
{
    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip(); /* one ring is always the first */
    try(&rec_source_sample, REC_RINGS_CPU);
}

static void stepped_threads(void **state)
{
    (void)state;
    busy = true;
    try(&rec_source_step, REC_RINGS_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_of_threads),
        cmocka_unit_test(rings_of_cpus),
        cmocka_unit_test(stepped_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
