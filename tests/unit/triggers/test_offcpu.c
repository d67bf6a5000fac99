/* offcpu against waits of known kind, number and length. The programs really block; the records really come
 * out of the rings. */
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMES 10

/* ---- a pipe: another process writes ---- */

static int pipe_ends[2];

static __attribute__((noinline)) void read_pipe(struct workload *w)
{
    for (int i = 0; i < TIMES; i++)
        workload_read_fed(w, pipe_ends[0]);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void test_pipe(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&work, read_pipe);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    feeder = workload_feeder(&work, pipe_ends[1], 40, TIMES);
    workload_go(&work);
    told_collect(&w, &work, TIMES, TIMES);
    told_assert_each_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        assert_int_equal(r->pid, work.pid);
        assert_int_equal(r->syscall, SYS_read);
        assert_int_equal(r->syscall_args[0], pipe_ends[0]);
        assert_int_equal(r->syscall_args[2], 1);
        assert_int_equal(r->state & 3, 1);
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_int_equal(r->waker_ctx, ST_WAKER_TASK);
        assert_int_equal(r->waker_tid, feeder);
        assert_true(r->wake_ktime > r->start_ktime && r->wake_ktime <= r->end_ktime);
        assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_non_null(strstr(watch_ksym(NULL, r->wstack[0]), "try_to_wake_up"));
        assert_true(told_has_frame(r->wstack, r->wstack_n, "vfs_write"));
        assert_true(r->ustack_n > 1);
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)read_pipe, 128));
        assert_int_equal(w.records.at[i].sample_tid, work.pid);
    }
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, " ms in read, woken by thread "));
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ---- a lock: another thread of the same process holds it ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, waited; /* a wait for a semaphore is idle (FUTEX_WAIT_BITSET) */

/* Frame pointers skip the caller of the C library, which has none: the one that is seen calls this. */
__attribute__((noinline)) static void let_go(void)
{
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("" ::: "memory");
}

static void *hold_lock(void *arg)
{
    struct workload *w = arg;

    w->shared->note[0] = workload_tid();
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&mutex);
        sem_post(&held);
        workload_sleep_ms(40);
        let_go();
        sem_wait(&waited);
    }
    return NULL;
}

static void wait_for_lock(struct workload *w)
{
    pthread_t holder;

    sem_init(&held, 0, 0);
    sem_init(&waited, 0, 0);
    if (pthread_create(&holder, NULL, hold_lock, w))
        _exit(1);
    for (int i = 0; i < TIMES; i++) {
        uint64_t start;

        sem_wait(&held);
        start = workload_now();
        pthread_mutex_lock(&mutex);
        workload_end(w, start);
        pthread_mutex_unlock(&mutex);
        sem_post(&waited);
    }
    pthread_join(holder, NULL);
}

/* The user stack of the waker is of the moment in which it woke the thread. */
static void assert_waker_in(const struct st_stall_record *r, const void *function)
{
    unsigned kernel = st_stall_waker_kernel(r);

    assert_true(kernel < r->wstack_n);
    assert_true(r->wstack[kernel] == ST_STALL_USER_FRAMES);
    assert_true(told_has_address_in(r->wstack + kernel + 1, r->wstack_n - kernel - 1, function, 256));
}

static void test_lock(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, wait_for_lock, &w, BLOCKS, TIMES, TIMES);
    told_assert_each_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->tid, work.pid);
        assert_int_equal(r->syscall, SYS_futex);
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_int_equal(r->waker_ctx, ST_WAKER_TASK);
        assert_int_equal(r->waker_tid, work.shared->note[0]);
        assert_int_equal(r->waker_pid, work.pid);
        assert_true(told_has_frame(r->wstack, st_stall_waker_kernel(r), "futex_wake"));
        assert_waker_in(r, (void *)hold_lock);
    }
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- not off the CPU at all ---- */

static void burn(struct workload *w)
{
    uint64_t start = workload_now();

    workload_be_ordinary();
    while (workload_now() - start < 300 * MS)
        ;
    workload_end(w, start);
}

static void test_busy_loop_does_not_fire(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    told_run(&work, burn, &w, BLOCKS, 1, 0);
    assert_int_equal(work.shared->stalls, 1);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Calls nothing, so that whenever it loses the CPU it is in this function. */
static __attribute__((noinline)) void burn_pinned(struct workload *w)
{
    workload_be_ordinary();
    pin(0);
    w->shared->note[1] = 1;
    while (!w->shared->note[2])
        ;
}

static void wait_for_note(const struct workload *w, int which)
{
    while (!w->shared->note[which])
        workload_sleep_ms(1);
}

/* Takes the CPU away for so long, as real-time threads can. Tells when it began. */
static pid_t fork_hog(int ms, _Atomic int *began_ms)
{
    struct sched_param param = {.sched_priority = 10};
    uint64_t start;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid)
        return pid;
    pin(0);
    if (sched_setscheduler(0, SCHED_FIFO, &param))
        _exit(1);
    start = workload_now();
    *began_ms = (int)(start / MS);
    while (workload_now() - start < (uint64_t)ms * MS)
        ;
    _exit(0);
}

static const struct st_stall_record *told_between(const struct watch *w, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (!(r->flags & ST_STALL_ONGOING) && r->start_ktime < from_ns && r->end_ktime > to_ns)
            return r;
    }
    return NULL;
}

static void test_preempted(void **state)
{
    const struct st_stall_record *r = NULL;
    struct workload work;
    struct watch w;
    char text[512];
    uint64_t began;
    pid_t hog;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, burn_pinned);
    watch_start(&w, "offcpu>40ms,state=preempted", &work.pid, 1, NULL, NULL);
    workload_go(&work);
    wait_for_note(&work, 1);
    hog = fork_hog(60, &work.shared->note[0]);
    wait_for_note(&work, 0);
    began = (uint64_t)work.shared->note[0] * MS;
    for (int i = 0; i < 500 && !r; i++) { /* it may be long until it gets the CPU back */
        watch_collect(&w, w.records.n + 1, 20);
        r = told_between(&w, began + 30 * MS, began + 50 * MS);
    }
    assert_non_null(r); /* while the hog ran, it did not */
    assert_int_equal(r->tid, work.pid);
    assert_int_equal(r->state, 0);
    assert_int_equal(r->syscall, -1);
    assert_int_equal(r->waker_ctx, ST_WAKER_NONE);
    assert_true(r->next_tid && r->next_tid != r->tid && r->next_comm[0]);
    assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)burn_pinned, 128));
    told_describe(&w, r, text, sizeof(text));
    assert_non_null(strstr(text, ", preempted by thread "));
    watch_stop(&w);
    work.shared->note[2] = 1;
    workload_reap(hog);
    workload_wait(&work);
}

/* ---- 32-bit system calls (int 0x80 makes them from any program) ---- */

static long call32(long nr, unsigned b, unsigned c, unsigned d)
{
    long result;

    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(nr), "b"(b), "c"(c), "d"(d)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static void use_32_bit_calls(struct workload *w)
{
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    int *ts = (int *)low;
    uint64_t start;

    ts[1] = 60000000;
    if (call32(162, (unsigned)(uintptr_t)ts, 0, 0)) /* nanosleep */
        _exit(1);
    start = workload_now();
    w->shared->asked++;
    if (call32(3, (unsigned)pipe_ends[0], (unsigned)(uintptr_t)low, 1) != 1) /* read */
        _exit(1);
    workload_end(w, start);
}

static void test_32_bit_calls(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&work, use_32_bit_calls);
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    feeder = workload_feeder(&work, pipe_ends[1], 100, 1);
    workload_go(&work);
    told_collect(&w, &work, 1, 1);
    told_assert_each_once(&work, &w, 1);
    r = watch_first(&w, work.pid, ST_STALL_COMPAT, 0);
    assert_int_equal(r->syscall, 3);
    assert_int_equal(r->syscall_args[0], pipe_ends[0]);
    assert_int_equal(r->syscall_args[2], 1);
    told_describe(&w, r, text, sizeof(text));
    assert_non_null(strstr(text, "in read"));
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_busy_loop_does_not_fire),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_32_bit_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
