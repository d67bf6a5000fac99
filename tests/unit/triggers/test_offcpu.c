/* offcpu against waits of known kind, number and length. The programs really block; the records really come
 * out of the rings. */
#include "watch.h"
#include "workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS     1000000ull
#define TIMES  10
#define SETTLE 150 /* ms after the workload's end in which nothing more may come */
#define BLOCKS "offcpu>20ms,state=blocked+sleeping" /* a busy machine may preempt: that is another test */

#define NEEDS_BPF()                                                                                          \
    do {                                                                                                     \
        if (!watch_possible())                                                                               \
            skip();                                                                                          \
    } while (0)

/* Runs the workload to its end under the trigger; the records are in w. */
static void run(struct workload *work, workload_fn *fn, struct watch *w, const char *trigger, size_t expected)
{
    workload_fork(work, fn);
    watch_start(w, trigger, &work->pid, 1, NULL, NULL);
    workload_go(work);
    watch_collect(w, expected ? expected : SIZE_MAX, expected ? 5000 : 1500);
    watch_collect(w, SIZE_MAX, SETTLE);
}

/* On a busy machine a stall may last past its grace: it is told as ongoing, and its end follows. */
static void assert_completed(const struct watch *w, const struct st_stall_record *ongoing)
{
    size_t ends = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        ends += r->seq == ongoing->seq && r->flags & ST_STALL_COMPLETION && !(r->flags & ST_STALL_FIRED);
    }
    assert_int_equal(ends, 1);
}

static void assert_tells(const struct watch *w, const struct st_stall_record *r,
                         const struct workload_stall *s)
{
    assert_int_equal(r->kind, ST_STALL_OFFCPU);
    assert_int_equal(r->threshold_ns, 20 * MS);
    assert_true(r->measured_ns >= 20 * MS && r->now_ktime >= r->end_ktime);
    assert_true(r->measured_ns <= s->end_ns - s->start_ns + 100000);
    if (r->flags & ST_STALL_ONGOING) {
        assert_completed(w, r);
        return;
    }
    assert_true(r->end_ktime <= s->end_ns + 100000);
    assert_int_equal(r->end_ktime - r->start_ktime, r->measured_ns);
}

/* Every stall that the workload noted fired exactly once, with its thread and its length, and nothing else
 * did. */
static void assert_each_told_once(const struct workload *work, const struct watch *w, uint32_t stalls)
{
    assert_int_equal(work->shared->stalls, stalls);
    assert_int_equal(watch_count(w, 0, ST_STALL_FIRED, 0), stalls);
    for (uint32_t i = 0; i < stalls; i++) {
        const struct workload_stall *s = &work->shared->stall[i];
        size_t told = 0;

        for (size_t j = 0; j < w->records.n; j++) {
            const struct st_stall_record *r = &w->records.at[j].r;

            if (r->tid != (uint32_t)s->tid || r->start_ktime < s->start_ns || r->start_ktime > s->end_ns ||
                !(r->flags & ST_STALL_FIRED))
                continue;
            told++;
            assert_tells(w, r, s);
        }
        assert_int_equal(told, 1);
    }
}

static bool has_frame(const uint64_t *stack, size_t n, const char *function)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(watch_ksym(NULL, stack[i]), function))
            return true;
    return false;
}

static bool has_address_in(const uint64_t *stack, size_t n, const void *function, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if (stack[i] >= (uint64_t)(uintptr_t)function && stack[i] < (uint64_t)(uintptr_t)function + size)
            return true;
    return false;
}

static void describe(const struct watch *w, const struct st_stall_record *r, char *text, size_t size)
{
    trg_describe(w->set, r, watch_ksym, NULL, text, size);
}

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
    watch_collect(&w, TIMES, 5000);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_each_told_once(&work, &w, TIMES);
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
        assert_true(has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_non_null(strstr(watch_ksym(NULL, r->wstack[0]), "try_to_wake_up"));
        assert_true(has_frame(r->wstack, r->wstack_n, "vfs_write"));
        assert_true(r->ustack_n > 1);
        assert_true(has_address_in(r->ustack, r->ustack_n, (void *)read_pipe, 128));
        assert_int_equal(w.records.at[i].sample_tid, work.pid);
    }
    describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, " ms in read, woken by thread "));
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ---- a lock: another thread of the same process holds it ---- */

static uint32_t lock_word;

static long futex(uint32_t *word, int op, uint32_t value)
{
    return syscall(SYS_futex, word, op, value, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turn;

static void *hold_lock(void *arg)
{
    struct workload *w = arg;

    w->shared->note[0] = workload_tid();
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&mutex);
        pthread_barrier_wait(&turn); /* a barrier of glibc waits by FUTEX_WAIT, briefly */
        workload_sleep_ms(40);
        pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static void wait_for_lock(struct workload *w)
{
    pthread_t holder;

    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&holder, NULL, hold_lock, w))
        _exit(1);
    for (int i = 0; i < TIMES; i++) {
        uint64_t start;

        pthread_barrier_wait(&turn);
        start = workload_now();
        pthread_mutex_lock(&mutex);
        workload_end(w, start);
        pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&turn);
    }
    pthread_join(holder, NULL);
}

static void test_lock(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    run(&work, wait_for_lock, &w, BLOCKS, TIMES);
    assert_each_told_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->tid, work.pid);
        assert_int_equal(r->syscall, SYS_futex);
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_int_equal(r->waker_ctx, ST_WAKER_TASK);
        assert_int_equal(r->waker_tid, work.shared->note[0]);
        assert_int_equal(r->waker_pid, work.pid);
        assert_true(has_frame(r->wstack, r->wstack_n, "futex_wake"));
    }
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- idle waits ---- */

static void sleep_often(struct workload *w)
{
    for (int i = 0; i < TIMES; i++) {
        uint64_t start = workload_now();

        workload_sleep_ms(40);
        workload_end(w, start);
    }
}

static void test_sleep_is_idle(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    run(&work, sleep_often, &w, BLOCKS, 0);
    assert_int_equal(work.shared->stalls, TIMES);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
}

static void test_sleep_counts_when_asked(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    /* The wait for the start is a poll: idle too, so it is one record more, of before the first note. */
    workload_fork(&work, sleep_often);
    watch_start(&w, BLOCKS ",idle=yes", &work.pid, 1, NULL, NULL);
    workload_go(&work);
    watch_collect(&w, TIMES, 5000);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_each_told_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_true(r->flags & ST_STALL_IDLE);
        assert_int_equal(r->syscall, SYS_clock_nanosleep);
        if (!(r->flags & ST_STALL_ONGOING))
            assert_int_equal(r->waker_ctx, ST_WAKER_IRQ);
    }
    describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, "in clock_nanosleep, woken by its time-out"));
    watch_stop(&w);
    workload_wait(&work);
}

static void wait_on_epoll(struct workload *w)
{
    uint64_t start = workload_now();
    struct epoll_event event;
    int fd = epoll_create1(0);

    if (fd < 0 || epoll_wait(fd, &event, 1, 1000))
        _exit(1);
    workload_end(w, start);
}

static void test_epoll_is_idle(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    run(&work, wait_on_epoll, &w, BLOCKS, 0);
    assert_int_equal(work.shared->stalls, 1);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
}

/* Condition variables wait by FUTEX_WAIT_BITSET, mutexes by FUTEX_WAIT. */
static void wait_on_futexes(struct workload *w)
{
    struct timespec soon = {0, 45000000}, later;
    uint64_t start;

    clock_gettime(CLOCK_MONOTONIC, &later);
    later.tv_nsec += 45000000;
    later.tv_sec += later.tv_nsec / 1000000000;
    later.tv_nsec %= 1000000000;
    syscall(SYS_futex, &lock_word, FUTEX_WAIT_BITSET, 0, &later, NULL, FUTEX_BITSET_MATCH_ANY);
    start = workload_now();
    syscall(SYS_futex, &lock_word, FUTEX_WAIT, 0, &soon, NULL, 0);
    workload_end(w, start);
    futex(&lock_word, FUTEX_WAKE, 1);
}

static void test_condition_is_idle_and_mutex_is_not(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    run(&work, wait_on_futexes, &w, BLOCKS, 1);
    assert_each_told_once(&work, &w, 1);
    watch_stop(&w);
    workload_wait(&work);
}

static void test_own_idle_call(void **state)
{
    struct workload work;
    struct watch w;
    pid_t feeder;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&work, read_pipe);
    watch_start(&w, BLOCKS ",idle=read", &work.pid, 1, NULL, NULL);
    feeder = workload_feeder(&work, pipe_ends[1], 40, TIMES);
    workload_go(&work);
    watch_collect(&w, SIZE_MAX, 800);
    assert_int_equal(work.shared->stalls, TIMES);
    assert_int_equal(w.records.n, 0);
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
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
    run(&work, burn, &w, BLOCKS, 0);
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

static void burn_pinned(struct workload *w)
{
    uint64_t start = workload_now();

    (void)w;
    workload_be_ordinary();
    pin(0);
    while (workload_now() - start < 400 * MS)
        ;
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

static void test_preempted(void **state)
{
    const struct st_stall_record *r = NULL;
    struct workload work;
    struct watch w;
    char text[512];
    uint64_t hogged;
    pid_t hog;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, burn_pinned);
    watch_start(&w, "offcpu>40ms,state=preempted", &work.pid, 1, NULL, NULL);
    workload_go(&work);
    workload_sleep_ms(100);
    hog = fork_hog(60, (_Atomic int *)&work.shared->note[0]);
    watch_collect(&w, SIZE_MAX, 600);
    hogged = (uint64_t)work.shared->note[0] + 30;
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *one = &w.records.at[i].r;

        if (!(one->flags & ST_STALL_ONGOING) && one->start_ktime / MS < hogged &&
            one->end_ktime / MS > hogged)
            r = one;
    }
    assert_non_null(r); /* while the hog ran, it did not */
    assert_int_equal(r->tid, work.pid);
    assert_int_equal(r->state, 0);
    assert_int_equal(r->syscall, -1);
    assert_int_equal(r->waker_ctx, ST_WAKER_NONE);
    assert_true(r->next_tid && r->next_tid != r->tid && r->next_comm[0]);
    assert_true(has_address_in(r->ustack, r->ustack_n, (void *)burn_pinned, 512));
    describe(&w, r, text, sizeof(text));
    assert_non_null(strstr(text, ", preempted by thread "));
    watch_stop(&w);
    workload_reap(hog);
    workload_wait(&work);
}

/* ---- stalls that do not end ---- */

static void read_for_ever(struct workload *w)
{
    workload_read_fed(w, pipe_ends[0]);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void test_hang(void **state)
{
    const struct st_stall_record *r, *end;
    uint64_t late = UINT64_MAX;

    (void)state;
    NEEDS_BPF();
    for (int attempt = 0; attempt < 3 && late > 50 * MS; attempt++) { /* other load may delay the timer */
        struct workload work;
        struct watch w;

        assert_int_equal(pipe(pipe_ends), 0);
        workload_fork(&work, read_for_ever);
        watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
        workload_go(&work);
        watch_collect(&w, 1, 2000);
        r = watch_first(&w, work.pid, ST_STALL_FIRED | ST_STALL_ONGOING, ST_STALL_COMPLETION);
        assert_int_equal(r->end_ktime, 0);
        assert_int_equal(r->syscall, SYS_read);
        assert_int_equal(r->pid, work.pid);
        assert_true(r->measured_ns >= 60 * MS);
        assert_true(has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_int_equal(r->syscall_args[0], pipe_ends[0]);
        assert_true(has_address_in(r->ustack, r->ustack_n, (void *)read_for_ever, 64));
        late = r->now_ktime - r->start_ktime - 20 * MS;
        watch_collect(&w, SIZE_MAX, 200);
        assert_int_equal(w.records.n, 1); /* never twice */
        assert_int_equal(write(pipe_ends[1], "x", 1), 1);
        watch_collect(&w, 2, 1000);
        end = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED | ST_STALL_ONGOING);
        r = watch_first(&w, work.pid, ST_STALL_FIRED, 0);
        assert_int_equal(end->seq, r->seq);
        assert_true(end->end_ktime > r->now_ktime);
        assert_int_equal(end->waker_tid, getpid());
        assert_int_equal(end->start_ktime, r->start_ktime);
        watch_collect(&w, SIZE_MAX, SETTLE);
        assert_int_equal(w.records.n, 2);
        watch_stop(&w);
        workload_wait(&work);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
    }
    if (late > 50 * MS)
        fail_msg("a hang was told %lu us after its threshold", (unsigned long)(late / 1000));
}

/* It blocked before the trigger was armed: it counts from then. */
static void test_hang_from_before(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    uint64_t armed;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(pipe(pipe_ends), 0);
    workload_fork(&work, read_for_ever);
    workload_go(&work);
    workload_sleep_ms(100);
    armed = workload_now();
    watch_start(&w, BLOCKS, &work.pid, 1, NULL, NULL);
    watch_collect(&w, 1, 2000);
    r = watch_first(&w, work.pid, ST_STALL_FIRED | ST_STALL_ONGOING, 0);
    assert_true(r->start_ktime > armed - 20 * MS);
    assert_int_equal(r->syscall, SYS_read);
    assert_true(has_frame(r->kstack, r->kstack_n, "vfs_read"));
    assert_int_equal(write(pipe_ends[1], "x", 1), 1);
    watch_collect(&w, 2, 1000);
    watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    watch_stop(&w);
    workload_wait(&work);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ---- the chain: timer -> softirq -> thread ---- */

static int tcp_pair(int *pair)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(listener, (void *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (void *)&address, &size))
        return -1;
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(pair[0], (void *)&address, size))
        return -1;
    pair[1] = accept(listener, NULL, NULL);
    close(listener);
    return pair[1] < 0 ? -1 : 0;
}

/* Nagle's algorithm keeps the second small write until the first is acknowledged, and the peer delays that
 * ACK: 40 ms. */
static void meet_delayed_ack(struct workload *w)
{
    int pair[2], off = 0;
    char bytes[2];

    if (tcp_pair(pair))
        _exit(1);
    for (int i = 0; i < TIMES; i++) {
        uint64_t start;

        setsockopt(pair[1], IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
        if (send(pair[0], "a", 1, 0) != 1 || send(pair[0], "b", 1, 0) != 1)
            _exit(1);
        start = workload_now();
        if (recv(pair[1], bytes, 2, MSG_WAITALL) != 2)
            _exit(1);
        workload_end(w, start);
    }
}

static void test_delayed_ack_names_its_timer(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];
    int resent = 0;

    (void)state;
    NEEDS_BPF();
    run(&work, meet_delayed_ack, &w, BLOCKS, TIMES);
    assert_each_told_once(&work, &w, TIMES);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->syscall, SYS_recvfrom);
        if (r->flags & ST_STALL_ONGOING)
            continue;
        assert_int_equal(r->waker_ctx, ST_WAKER_SOFTIRQ);
        assert_int_equal(r->waker_vec, 3); /* NET_RX_SOFTIRQ */
        if (!strcmp(watch_ksym(NULL, r->timer_func),
                    "tcp_write_timer")) { /* a busy machine: it was resent first */
            resent++;
            continue;
        }
        assert_string_equal(watch_ksym(NULL, r->timer_func), "tcp_delack_timer");
        assert_true(r->timer_ktime <= r->wake_ktime && r->wake_ktime - r->timer_ktime < 20 * MS);
        assert_true(has_frame(r->wstack, r->wstack_n, "sock_def_readable"));
    }
    assert_true(resent < TIMES / 2);
    describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, "in recvfrom, woken by softirq NET_RX after timer tcp_"));
    watch_stop(&w);
    workload_wait(&work);
}

/* A receive time-out is the timer wheel's: its own timer ran in the TIMER softirq. */
static void time_out_in_recv(struct workload *w)
{
    struct timeval limit = {0, 45000};
    uint64_t start;
    int pair[2];
    char byte;

    if (tcp_pair(pair) || setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
        _exit(1);
    start = workload_now();
    if (recv(pair[0], &byte, 1, 0) != -1 || errno != EAGAIN)
        _exit(1);
    workload_end(w, start);
}

static void test_receive_time_out_names_its_timer(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    run(&work, time_out_in_recv, &w, BLOCKS, 1);
    r = watch_first(&w, work.pid, ST_STALL_FIRED, 0);
    if (r->flags & ST_STALL_ONGOING) /* a late tick: past the grace */
        r = watch_first(&w, work.pid, ST_STALL_COMPLETION, 0);
    assert_int_equal(r->waker_ctx, ST_WAKER_SOFTIRQ);
    assert_int_equal(r->waker_vec, 1); /* TIMER_SOFTIRQ */
    assert_string_equal(watch_ksym(NULL, r->timer_func), "process_timeout");
    watch_stop(&w);
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
    watch_collect(&w, 1, 2000);
    watch_collect(&w, SIZE_MAX, SETTLE);
    assert_each_told_once(&work, &w, 1);
    r = watch_first(&w, work.pid, ST_STALL_COMPAT, 0);
    assert_int_equal(r->syscall, 3);
    assert_int_equal(r->syscall_args[0], pipe_ends[0]);
    assert_int_equal(r->syscall_args[2], 1);
    describe(&w, r, text, sizeof(text));
    assert_non_null(strstr(text, "in 32-bit system call 3"));
    watch_stop(&w);
    workload_wait(&work);
    workload_reap(feeder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_sleep_is_idle),
        cmocka_unit_test(test_sleep_counts_when_asked),
        cmocka_unit_test(test_epoll_is_idle),
        cmocka_unit_test(test_condition_is_idle_and_mutex_is_not),
        cmocka_unit_test(test_own_idle_call),
        cmocka_unit_test(test_busy_loop_does_not_fire),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_hang_from_before),
        cmocka_unit_test(test_delayed_ack_names_its_timer),
        cmocka_unit_test(test_receive_time_out_names_its_timer),
        cmocka_unit_test(test_32_bit_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
