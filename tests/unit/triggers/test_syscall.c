/* syscall against calls of known number and length, as the program that makes them notes them. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];

static const int lengths[ABOVE + BELOW] = {30, 2,  25, 35, 1, 3,  45, 30, 25, 5,
                                           30, 35, 2,  30, 4, 25, 30, 1,  28, 33};

/* Reads 16 bytes that come so long later. The writer asks before it writes whether the reader sleeps. */
static __attribute__((noinline)) void read_late(struct workload *w, int fd)
{
    char bytes[16];
    uint64_t start = workload_now();

    w->shared->asked++;
    if (read(fd, bytes, sizeof(bytes)) != sizeof(bytes))
        _exit(1);
    workload_end(w, start);
}

static pid_t fork_writer(struct workload *w, size_t n)
{
    pid_t reader = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid)
        return pid;
    for (size_t i = 0; i < n; i++) {
        while (w->shared->asked <= (int)i || !workload_sleeps(reader))
            workload_sleep_ms(1);
        workload_sleep_ms(lengths[i]);
        if (write(ends[1], "0123456789abcdef", 16) != 16)
            _exit(1);
    }
    _exit(0);
}

/* Between them waits for work, which do not count. */
static void read_them(struct workload *w)
{
    pid_t writer = fork_writer(w, ABOVE + BELOW);

    for (int i = 0; i < ABOVE + BELOW; i++) {
        read_late(w, ends[0]);
        if (i % 5 == 0)
            workload_sleep_ms(60);
    }
    close(ends[0]);
    (void)writer;
}

static void test_reads(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    spans_run(&work, read_them, &w, "syscall>20ms", ABOVE + BELOW, ABOVE);
    assert_true(spans_assert(&work, &w, ST_STALL_SYSCALL, 20 * MS, 2 * MS) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        assert_int_equal(r->syscall, SYS_read);
        assert_int_equal(w.records.at[i].sample_tid && r->tid == (uint32_t)work.pid, 1);
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_int_equal(r->syscall_args[0], ends[0]);
        assert_int_equal(r->syscall_args[2], 16);
        assert_string_equal(spans_attribute(r, "ret"), "16");
        assert_string_equal(spans_attribute(r, "bytes"), "16");
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)read_them, 256));
        assert_int_equal(r->waker_ctx, ST_WAKER_TASK);
        assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_true(told_has_frame(r->wstack, r->wstack_n, "vfs_write"));
    }
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, " ms in read (returned 16), woken by thread "));
    watch_stop(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

/* ---- what counts ---- */

/* 3 polls of 30 ms, 5 naps of 30 ms, 2 reads that fail at once. */
static void idle_about(struct workload *w)
{
    char byte;

    for (int i = 0; i < 3; i++) {
        uint64_t start = workload_now();

        poll(NULL, 0, 30);
        workload_end(w, start);
    }
    for (int i = 0; i < 5; i++)
        workload_sleep_ms(30);
    for (int i = 0; i < 2; i++)
        if (read(-1, &byte, 1) != -1)
            _exit(1);
    w->shared->note[0] = 1;
}

static void expect(const char *trigger, int syscall, size_t fired)
{
    struct workload work;
    struct watch w;

    spans_run(&work, idle_about, &w, trigger, 3, fired);
    for (int i = 0; i < 500 && !work.shared->note[0]; i++)
        watch_collect(&w, SIZE_MAX, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    if (told_fired(&w, 0, syscall) != fired || (syscall >= 0 && told_fired(&w, 0, -1) != fired))
        fail_msg("%s: %zu fired, %zu of system call %d", trigger, told_fired(&w, 0, -1),
                 told_fired(&w, 0, syscall), syscall);
    watch_stop(&w);
    workload_wait(&work);
}

static void test_which_calls_count(void **state)
{
    (void)state;
    NEEDS_BPF();
    expect("syscall>20ms", -1, 0);
    expect("syscall:poll>20ms", SYS_poll, 3);
    expect("syscall:read>1s", SYS_read, 0);
    expect("syscall:read>1ns,if=ret<0", SYS_read, 2);
    expect("syscall:read>1ns,if=ret>=0&&arg2==1", SYS_read, 0);
    expect("syscall:poll>20ms,if=arg2==30", SYS_poll, 3);
    expect("syscall:poll>20ms,if=arg2==31", SYS_poll, 0);
}

static void test_idle_calls_count_if_wanted(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    spans_run(&work, idle_about, &w, "syscall>20ms,idle=yes", 3, 8);
    assert_int_equal(told_fired(&w, 0, SYS_poll), 3);
    for (size_t i = 0; i < w.records.n; i++)
        assert_true(w.records.at[i].r.flags & ST_STALL_IDLE);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- several threads, born later; several at once ---- */

enum { THREADS = 13 };

static void *read_in_thread(void *arg)
{
    struct workload *w = arg;
    uint64_t start = workload_now();
    char byte;

    if (read(ends[0], &byte, 1) != 1)
        _exit(1);
    workload_end(w, start);
    return NULL;
}

static void read_in_threads(struct workload *w)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, read_in_thread, w))
            _exit(1);
    workload_sleep_ms(40);
    if (write(ends[1], "0123456789abc", THREADS) != THREADS)
        _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void test_threads_born_later(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    spans_run(&work, read_in_threads, &w, "syscall:read>20ms", THREADS, THREADS);
    assert_int_equal(told_fired(&w, work.pid, SYS_read), THREADS);
    for (size_t i = 0; i < w.records.n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(w.records.at[i].r.tid != w.records.at[j].r.tid ||
                        w.records.at[i].r.seq == w.records.at[j].r.seq);
    watch_stop(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

/* Two triggers on the same calls, of all processes: each tells what is over its own threshold. */
static void test_several_at_once(void **state)
{
    size_t fired[2] = {0, 0};
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    workload_fork(&work, read_them);
    watch_start_both(&w, "syscall:read>20ms,if=arg2==16", "syscall:read>400us,if=arg2==16");
    workload_go(&work);
    for (int i = 0; i < 1500 && work.shared->stalls < ABOVE + BELOW; i++)
        watch_collect(&w, SIZE_MAX, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    for (size_t i = 0; i < w.records.n; i++)
        if (w.records.at[i].r.flags & ST_STALL_FIRED && w.records.at[i].r.pid == (uint32_t)work.pid)
            fired[w.records.at[i].r.trigger & 1]++;
    assert_true(fired[0] >= ABOVE && fired[0] < ABOVE + BELOW);
    assert_int_equal(fired[1], ABOVE + BELOW);
    watch_close(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

/* ---- one that does not return ---- */

static __attribute__((noinline)) void wait_for_byte(void)
{
    char byte;

    if (read(ends[0], &byte, 1) != 1)
        _exit(1);
}

static __attribute__((noinline)) void read_for_ever(struct workload *w)
{
    wait_for_byte();
    w->shared->note[0] = 1;
}

static void test_hang(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    r = spans_hang(&work, read_for_ever, &w, "syscall:read>20ms");
    assert_true(r->measured_ns >= 60 * MS);
    assert_int_equal(r->end_ktime, 0);
    assert_int_equal(r->syscall_args[0], ends[0]);
    assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
    assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)read_for_ever, 128));
    assert_int_equal(write(ends[1], "x", 1), 1);
    spans_wait_completion(&w, work.pid);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_FIRED, 0), 1);
    watch_stop(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

/* In it already when the trigger is armed. */
static void test_hang_that_was_there_before(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    workload_fork(&work, read_for_ever);
    workload_go(&work);
    workload_sleep_ms(200);
    watch_start(&w, "syscall>20ms", &work.pid, 1, NULL, NULL);
    assert_int_equal(spans_wait_ongoing(&w, work.pid)->syscall, SYS_read);
    assert_int_equal(write(ends[1], "x", 1), 1);
    watch_stop(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

/* ---- io_uring ---- */

/* A ring of 4, by the system calls themselves (include/uapi/linux/io_uring.h). */
static void wait_in_ring(struct workload *w)
{
    struct io_uring_params p = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 4, &p);
    size_t size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    char *sq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqes =
        mmap(NULL, p.sq_entries * sizeof(*sqes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);

    if (fd < 0 || sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED) {
        w->shared->note[1] = 1;
        return;
    }
    for (int i = 0; i < ABOVE; i++) {
        struct __kernel_timespec t = {0, 30000000};
        unsigned *tail = (unsigned *)(void *)(sq + p.sq_off.tail), at = *tail & (p.sq_entries - 1);
        uint64_t start;

        sqes[at] =
            (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uintptr_t)&t, .len = 1};
        ((unsigned *)(void *)(sq + p.sq_off.array))[at] = at;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        start = workload_now();
        if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
            _exit(1);
        workload_end(w, start);
        *(unsigned *)(void *)(cq + p.cq_off.head) += 1;
    }
}

static void test_io_uring_names_its_operation(void **state)
{
    struct workload work;
    struct watch w;
    int probe = (int)syscall(SYS_io_uring_setup, 4, &(struct io_uring_params){0});

    (void)state;
    NEEDS_BPF();
    if (probe < 0) {
        print_message("skipped: io_uring is not allowed here\n");
        skip();
    }
    close(probe);
    spans_run(&work, wait_in_ring, &w, "syscall:io_uring_enter>20ms", ABOVE, ABOVE);
    assert_int_equal(spans_assert(&work, &w, ST_STALL_SYSCALL, 20 * MS, 2 * MS), ABOVE);
    for (size_t i = 0; i < w.records.n; i++)
        assert_string_equal(spans_attribute(&w.records.at[i].r, "io_uring"), "TIMEOUT");
    watch_stop(&w);
    workload_wait(&work);
}

/* The same waits, as times off the CPU. */
static void test_io_uring_off_its_cpu(void **state)
{
    struct workload work;
    struct watch w;
    int probe = (int)syscall(SYS_io_uring_setup, 4, &(struct io_uring_params){0});

    (void)state;
    NEEDS_BPF();
    if (probe < 0) {
        print_message("skipped: io_uring is not allowed here\n");
        skip();
    }
    close(probe);
    spans_run(&work, wait_in_ring, &w, "offcpu>20ms,idle=yes,state=sleeping", ABOVE, ABOVE);
    assert_int_equal(told_fired(&w, 0, SYS_io_uring_enter), ABOVE);
    for (size_t i = 0; i < w.records.n; i++)
        assert_string_equal(spans_attribute(&w.records.at[i].r, "io_uring"), "TIMEOUT");
    watch_stop(&w);
    workload_wait(&work);
}

/* Each new worst fires. */
static void test_worst(void **state)
{
    uint64_t worst = 0;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(ends), 0);
    spans_run(&work, read_them, &w, "syscall:read>worst", ABOVE + BELOW, 1);
    for (uint32_t i = 0; i < ABOVE + BELOW; i++) {
        const struct workload_stall *s = &work.shared->stall[i];
        uint64_t took = s->end_ns - s->start_ns;
        size_t fired = 0;

        for (size_t j = 0; j < w.records.n; j++)
            fired += w.records.at[j].r.flags & ST_STALL_FIRED &&
                     w.records.at[j].r.tid == (uint32_t)s->tid && /* the writer reads /proc */
                     w.records.at[j].r.start_ktime >= s->start_ns &&
                     w.records.at[j].r.start_ktime <= s->end_ns;
        if (took > worst + 2 * MS || took + 2 * MS < worst) {
            if (fired != (took > worst))
                told_excuse(s, 2 * MS);
            assert_int_equal(fired, took > worst);
        }
        worst = took > worst ? took : worst;
    }
    watch_stop(&w);
    workload_wait(&work);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_which_calls_count),
        cmocka_unit_test(test_idle_calls_count_if_wanted),
        cmocka_unit_test(test_threads_born_later),
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_hang_that_was_there_before),
        cmocka_unit_test(test_io_uring_names_its_operation),
        cmocka_unit_test(test_io_uring_off_its_cpu),
        cmocka_unit_test(test_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
