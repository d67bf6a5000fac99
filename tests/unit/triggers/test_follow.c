/* Whose stalls are told: all threads of the target, born later too, and nobody else's. */
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Blocks in read for 35 ms: the byte comes from a thread of the same process, whose own sleeps are idle. */
struct blocker {
    int ends[2];

    _Atomic bool asked;
};

static void *feed(void *arg)
{
    struct blocker *b = arg;

    while (!b->asked)
        workload_sleep_ms(1);
    workload_sleep_ms(35);
    return write(b->ends[1], "x", 1) == 1 ? NULL : arg;
}

static void block_once(struct workload *w)
{
    struct blocker b = {.asked = false};
    pthread_t feeder;
    uint64_t start;
    char byte;

    if (pipe(b.ends) || pthread_create(&feeder, NULL, feed, &b))
        _exit(1);
    start = workload_now();
    b.asked = true;
    if (read(b.ends[0], &byte, 1) != 1)
        _exit(1);
    if (w)
        workload_end(w, start);
    pthread_join(feeder, NULL);
    close(b.ends[0]);
    close(b.ends[1]);
}

/* Only what blocked in read counts: on a slow machine the C library's own locks may block as long. */
static void run(struct workload *work, workload_fn *fn, uint32_t stalls)
{
    struct watch w;

    told_run(work, fn, &w, BLOCKS, stalls, stalls);
    told_assert_each_once_in(work, &w, stalls, SYS_read);
    watch_stop(&w);
    workload_wait(work);
}

/* ---- threads ---- */

enum { THREADS = 13, EACH = 7 };

static void *block_often(void *arg)
{
    for (int i = 0; i < EACH; i++)
        block_once(arg);
    return NULL;
}

static void block_in_threads(struct workload *w)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, block_often, w))
            _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void test_threads_born_later(void **state)
{
    struct workload work;

    (void)state;
    NEEDS_BPF();
    run(&work, block_in_threads, THREADS * EACH);
}

/* The join of a thread is a FUTEX_WAIT_BITSET: idle. */
static void *nothing(void *arg)
{
    return arg;
}

/* More threads, one after the other, than there are slots at once. */
static void churn(struct workload *w)
{
    for (int i = 0; i < 35000; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, nothing, NULL))
            _exit(1);
        pthread_join(thread, NULL);
    }
    block_once(w);
}

static void test_threads_that_come_and_go(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, churn);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    workload_go(&work);
    told_collect(&w, &work, 1, 1);
    told_assert_each_once_in(&work, &w, 1, SYS_read);
    watch_stop(&w); /* nothing lost: every thread found a slot */
    workload_wait(&work);
}

/* ---- processes ---- */

static void fork_and_block(struct workload *w)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        pid_t grandchild = fork();

        block_once(w);
        if (!grandchild)
            _exit(0);
        waitpid(grandchild, &status, 0);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(1);
}

static void test_processes_forked_later(void **state)
{
    struct workload work;

    (void)state;
    NEEDS_BPF();
    run(&work, fork_and_block, 2);
}

static int fifo[2];

static void *exec_cat(void *unused)
{
    (void)unused;
    dup2(fifo[0], 0);
    execlp("cat", "cat", (char *)NULL);
    _exit(1);
}

/* It is not the first thread that calls exec: its thread id becomes the process id. */
static void exec_from_thread(struct workload *w)
{
    pthread_t thread;

    (void)w;
    if (pthread_create(&thread, NULL, exec_cat, NULL))
        _exit(1);
    pthread_join(thread, NULL);
}

static void test_exec_from_a_thread(void **state)
{
    const struct st_stall_record *r = NULL;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(fifo), 0);
    assert_int_equal(fcntl(fifo[1], F_SETFD, FD_CLOEXEC), 0);
    workload_fork(&work, exec_from_thread);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    workload_go(&work);
    for (int i = 0; i < 500 && !told_fired(&w, 0, SYS_read); i++)
        watch_collect(&w, w.records.n + 1, 20);
    close(fifo[1]);
    told_collect_of(&w, 0, SYS_read, 1);
    for (size_t i = 0; i < w.records.n; i++)
        if (!strcmp(w.records.at[i].r.comm, "cat") && w.records.at[i].r.syscall == SYS_read)
            r = &w.records.at[i].r;
    assert_non_null(r);
    assert_int_equal(r->tid, work.pid);
    assert_int_equal(r->pid, work.pid);
    watch_stop(&w);
    workload_wait(&work);
    close(fifo[0]);
}

static int held_back[2];

/* As the recorder starts a command: the child is held back before its exec until the triggers are live. */
static void test_command_is_followed_from_its_exec(void **state)
{
    struct trg_config config = {0};
    struct watch w;
    pid_t pid;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe2(held_back, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        char byte;

        if (read(held_back[0], &byte, 1) != 1)
            _exit(1);
        execlp("sh", "sh", "-c", "(sleep 0.5; echo) | cat >/dev/null", (char *)NULL);
        _exit(1);
    }
    config.command = pid;
    watch_start(&w, BLOCKS, NULL, 0, NULL, &config);
    workload_sleep_ms(100); /* is ours, not the command's */
    assert_int_equal(write(held_back[1], "x", 1), 1);
    told_collect_of(&w, 0, SYS_read, 1);
    assert_int_equal(told_fired(&w, 0, SYS_read), 1);
    for (size_t i = 0; i < w.records.n; i++)
        assert_true(w.records.at[i].r.syscall != SYS_read || !strcmp(w.records.at[i].r.comm, "cat"));
    watch_stop(&w);
    workload_reap(pid);
}

/* ---- wider targets ---- */

static void test_all_but_not_ourselves(void **state)
{
    struct workload work, other;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, block_once);
    workload_fork(&other, block_once);
    watch_start(&w, BLOCKS, NULL, 0, NULL, NULL);
    workload_go(&work);
    workload_go(&other);
    block_once(NULL); /* this process: the one that arms */
    for (int i = 0; i < 500 && !(told_fired(&w, work.pid, SYS_read) && told_fired(&w, other.pid, SYS_read));
         i++)
        watch_collect(&w, w.records.n + 1, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_int_equal(told_fired(&w, work.pid, SYS_read), 1);
    assert_int_equal(told_fired(&w, other.pid, SYS_read), 1);
    for (size_t i = 0; i < w.records.n; i++) {
        assert_int_not_equal(w.records.at[i].r.pid, getpid());
        assert_int_not_equal(w.records.at[i].r.tid, 0);
    }
    watch_close(&w); /* other programs' stalls may be many: what was lost does not matter here */
    workload_wait(&work);
    workload_wait(&other);
}

static bool make_cgroup(char *path, size_t size)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        char procs[128];

        snprintf(procs, sizeof(procs), "%s/cgroup.procs", roots[i]);
        snprintf(path, size, "%s/stalltrap-test-%d", roots[i], getpid());
        if (!access(procs, W_OK) && !mkdir(path, 0755))
            return true;
    }
    return false;
}

static void join_cgroup(const char *path, pid_t pid)
{
    char name[192], text[16];
    int fd;

    snprintf(name, sizeof(name), "%s/cgroup.procs", path);
    fd = open(name, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(write(fd, text, (size_t)snprintf(text, sizeof(text), "%d", pid)) > 0);
    close(fd);
}

static void test_cgroup_is_followed_as_processes_come_in(void **state)
{
    struct workload inside, later, outside;
    struct watch w;
    char path[128];

    (void)state;
    NEEDS_BPF();
    if (!make_cgroup(path, sizeof(path))) {
        print_message("skipped: no cgroup v2 folder that can be written\n");
        skip();
    }
    workload_fork(&inside, block_in_threads);
    workload_fork(&later, block_once);
    workload_fork(&outside, block_once);
    join_cgroup(path, inside.pid);
    watch_start(&w, BLOCKS, NULL, 0, path, NULL);
    join_cgroup(path, later.pid);
    workload_go(&inside);
    workload_go(&later);
    workload_go(&outside);
    told_collect(&w, &later, 1, 1);
    told_collect(&w, &inside, THREADS * EACH, THREADS * EACH + 1);
    assert_int_equal(told_fired(&w, later.pid, SYS_read), 1);
    assert_int_equal(told_fired(&w, inside.pid, SYS_read), THREADS * EACH);
    assert_int_equal(watch_count(&w, outside.pid, 0, 0), 0);
    watch_stop(&w);
    workload_wait(&inside);
    workload_wait(&later);
    workload_wait(&outside);
    assert_int_equal(rmdir(path), 0);
}

/* ---- under a tracer ---- */

static void count_up(struct workload *w)
{
    workload_be_ordinary();
    for (;;)
        w->shared->note[0]++;
}

/* A stop by a tracer, or by SIGSTOP, is no stall. */
static void test_stops_do_not_count(void **state)
{
    struct workload work;
    struct watch w;
    int status;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, count_up);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    workload_go(&work);
    workload_sleep_ms(50);
    kill(work.pid, SIGSTOP);
    watch_collect(&w, SIZE_MAX, 150);
    kill(work.pid, SIGCONT);
    assert_int_equal(ptrace(PTRACE_SEIZE, work.pid, 0, 0), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, work.pid, 0, 0), 0);
    assert_int_equal(waitpid(work.pid, &status, __WALL), work.pid);
    watch_collect(&w, SIZE_MAX, 150);
    assert_int_equal(ptrace(PTRACE_DETACH, work.pid, 0, 0), 0);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    kill(work.pid, SIGKILL);
    waitpid(work.pid, &status, 0);
}

static void step_to_the_end(pid_t pid)
{
    int status, signal = 0;

    while (!ptrace(PTRACE_SINGLESTEP, pid, 0, signal)) {
        if (waitpid(pid, &status, __WALL) != pid || WIFEXITED(status))
            return;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
}

static int stepped_pipe[2];

static void read_stepped(struct workload *w)
{
    uint64_t start;
    char byte;

    for (int i = 0; i < 5; i++) {
        start = workload_now();
        w->shared->asked++;
        if (syscall(SYS_read, stepped_pipe[0], &byte, 1) != 1)
            _exit(1);
        workload_end(w, start);
    }
    _exit(0);
}

/* Single-stepped from outside, a thread that blocks in a system call is still seen to sleep there. */
static void test_a_stepped_thread_that_blocks(void **state)
{
    struct workload work;
    struct watch w;
    pid_t feeder;
    int status;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(stepped_pipe), 0);
    workload_fork(&work, read_stepped);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    feeder = workload_feeder(&work, stepped_pipe[1], 40, 5);
    assert_int_equal(ptrace(PTRACE_SEIZE, work.pid, 0, 0), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, work.pid, 0, 0), 0);
    assert_int_equal(waitpid(work.pid, &status, __WALL), work.pid);
    workload_go(&work);
    step_to_the_end(work.pid);
    told_collect(&w, &work, 5, 5);
    told_assert_each_once_in(&work, &w, 5, SYS_read);
    for (size_t i = 0; i < w.records.n; i++) {
        assert_int_equal(w.records.at[i].r.syscall, SYS_read);
        assert_int_equal(w.records.at[i].r.state & 0xf, 1);
    }
    watch_stop(&w);
    workload_reap(feeder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_born_later),
        cmocka_unit_test(test_threads_that_come_and_go),
        cmocka_unit_test(test_processes_forked_later),
        cmocka_unit_test(test_exec_from_a_thread),
        cmocka_unit_test(test_command_is_followed_from_its_exec),
        cmocka_unit_test(test_all_but_not_ourselves),
        cmocka_unit_test(test_cgroup_is_followed_as_processes_come_in),
        cmocka_unit_test(test_stops_do_not_count),
        cmocka_unit_test(test_a_stepped_thread_that_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
