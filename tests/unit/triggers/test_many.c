/* More threads than are looked at in one go: what goes on in the last of them is told too. */
#include "told.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS = 2100, /* LOOK_SLOTS of span.bpf.h are looked at in one go */
    PATIENCE = 60000
};

static int pipe_ends[2];
static struct workload_shared *shared;

static void *sleeps(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void *reads(void *unused)
{
    char byte;

    shared->note[0] = workload_tid();
    if (read(pipe_ends[0], &byte, 1) != 1)
        _exit(1);
    return unused;
}

static void work(struct workload *w)
{
    pthread_attr_t small;
    pthread_t thread;

    workload_be_ordinary();
    shared = w->shared;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 * 1024);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, &small, sleeps, NULL))
            _exit(1);
    if (pthread_create(&thread, &small, reads, NULL) || pthread_join(thread, NULL))
        _exit(1);
}

static void test_last_thread(void **state)
{
    const struct st_stall_record *r, *end;
    struct workload w;
    struct watch seen;
    pid_t tid;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&w, work);
    watch_start(&seen, "syscall:read>300ms", &w.pid, 1, NULL, NULL);
    workload_go(&w);
    for (int i = 0; !watch_count(&seen, 0, ST_STALL_ONGOING, 0) && i < PATIENCE / 100; i++)
        watch_collect(&seen, 1, 100);
    tid = w.shared->note[0];
    r = watch_first(&seen, tid, ST_STALL_FIRED | ST_STALL_ONGOING, 0);
    assert_int_equal(r->syscall, SYS_read);
    assert_true(r->measured_ns >= 340 * MS);
    watch_collect(&seen, SIZE_MAX, SETTLE);
    assert_int_equal(watch_count(&seen, 0, ST_STALL_FIRED, 0), 1); /* never twice */
    assert_int_equal(write(pipe_ends[1], "x", 1), 1);
    for (int i = 0; !watch_count(&seen, 0, ST_STALL_COMPLETION, 0) && i < PATIENCE / 100; i++)
        watch_collect(&seen, 2, 100);
    r = watch_first(&seen, tid, ST_STALL_ONGOING, 0);
    end = watch_first(&seen, tid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_int_equal(end->seq, r->seq);
    watch_stop(&seen);
    workload_wait(&w);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
