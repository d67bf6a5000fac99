/* runq against what the scheduler's tracepoints tell of the same run. */
#include "observer.h"
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define THRESHOLD (20 * MS)

static const int lengths[ABOVE + BELOW] = {30, 2,  25, 35, 1, 3,  45, 30, 25, 5,
                                           30, 35, 2,  30, 4, 25, 30, 1,  28, 33};

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        _exit(1);
}

/* Computes on CPU 0, now and then naps for 1 ms: it is woken while another has the CPU. As all workloads it
 * has real-time priority: what else the machine does makes no waits. */
static __attribute__((noinline)) void compute(struct workload *w)
{
    pin(0);
    w->shared->note[1] = 1;
    for (unsigned i = 0; !w->shared->note[2]; i++)
        if (i % 1000000 == 0)
            workload_sleep_ms(1);
}

static void come_before(int priority)
{
    struct sched_param param = {.sched_priority = priority};

    if (sched_setscheduler(0, SCHED_FIFO, &param))
        _exit(1);
}

static void come_first(void)
{
    come_before(2);
}

/* Takes CPU 0 from it 20 times. */
static void hog(struct workload *w)
{
    come_first();
    pin(0);
    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start;

        workload_sleep_ms(40);
        start = workload_now();
        while (workload_now() - start < (uint64_t)lengths[i] * MS)
            ;
        workload_end(w, start);
    }
}

/* sched_switch: prev_pid at 24, prev_state at 32, next_pid at 56. sched_wakeup: pid at 24. */
static size_t true_waits(const struct observer *o, pid_t pid, struct workload_stall *out, size_t room)
{
    uint64_t since = 0;
    size_t n = 0;

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];

        if (e->event == 1) {
            since = since ? since : e->time;
        } else if (observed_int(e, 24) == pid) {
            since = observed_int(e, 32) & 0xff ? 0 : e->time;
        } else if (observed_int(e, 56) == pid && since) {
            if (e->time - since >= THRESHOLD && n < room)
                out[n++] = (struct workload_stall){since, e->time, pid};
            since = 0;
        }
    }
    return n;
}

static void assert_told(const struct watch *w, const struct workload_stall *s)
{
    uint64_t took = s->end_ns - s->start_ns;
    size_t told = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r, *whole = spans_whole(w, r);

        if (!(r->flags & ST_STALL_FIRED) || r->start_ktime + MS < s->start_ns || r->start_ktime > s->end_ns)
            continue;
        told++;
        assert_int_equal(r->tid, s->tid);
        assert_true(whole->measured_ns <= took + took / 20 + 100000 &&
                    took <= whole->measured_ns + took / 20 + 100000);
    }
    if (told != 1)
        fail_msg("a wait of %lu us was told %zu times", (unsigned long)took / 1000, told);
}

/* The record of the wait in which this stay of the hog's ended, if the stay was most of it. */
static const struct st_stall_record *wait_for_hog(const struct watch *w, const struct workload_stall *stay,
                                                  pid_t tid)
{
    uint64_t took = stay->end_ns - stay->start_ns;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (r->tid == (uint32_t)tid && !(r->flags & (ST_STALL_COMPLETION | ST_STALL_ONGOING)) &&
            r->start_ktime < stay->end_ns && r->start_ktime + r->measured_ns + MS > stay->end_ns)
            return took * 2 > r->measured_ns ? r : NULL;
    }
    return NULL;
}

/* A wait in which the hog ran for most of the time names it. */
static void assert_blamed(const struct watch *w, const struct workload *hog, pid_t tid)
{
    size_t blamed = 0, waits = 0;

    for (uint32_t i = 0; i < hog->shared->stalls; i++) {
        const struct workload_stall *stay = &hog->shared->stall[i];
        const struct st_stall_record *r = wait_for_hog(w, stay, tid);

        waits += r != NULL;
        blamed += r && r->next_tid == (uint32_t)stay->tid;
        if (r && r->next_tid != (uint32_t)stay->tid)
            print_message(
                "the hog ran %lu of %lu us, the longest turn was %s ns, and thread %u \"%.16s\" is named\n",
                (stay->end_ns - stay->start_ns) / 1000, r->measured_ns / 1000, spans_attribute(r, "held_ns"),
                r->next_tid, r->next_comm);
    }
    assert_true(waits >= ABOVE - 2);
    assert_true(blamed + 2 >= waits); /* the kernel leaves others some time: a stay may be in two parts */
}

static void test_waits_are_the_schedulers(void **state)
{
    struct workload_stall waits[256];
    struct workload computer, taker;
    struct observer o = {.events = 0};
    char filter[64], text[512];
    struct watch w;
    size_t n;

    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    workload_fork(&computer, compute);
    workload_fork(&taker, hog);
    watch_start(&w, "runq>20ms", &computer.pid, 1, NULL, NULL);
    snprintf(filter, sizeof(filter), "prev_pid==%d||next_pid==%d", computer.pid, computer.pid);
    observer_add(&o, "sched/sched_switch", filter, 0);
    snprintf(filter, sizeof(filter), "pid==%d", computer.pid);
    observer_add(&o, "sched/sched_wakeup", filter, 0);
    workload_go(&computer);
    while (!computer.shared->note[1])
        workload_sleep_ms(1);
    workload_go(&taker);
    for (int i = 0; i < 1500 && taker.shared->stalls < ABOVE + BELOW; i++)
        watch_collect(&w, SIZE_MAX, 20);
    workload_sleep_ms(100); /* the last wait has ended */
    computer.shared->note[2] = 1;
    watch_collect(&w, SIZE_MAX, SETTLE);
    observer_end(&o);
    n = true_waits(&o, computer.pid, waits, 256);
    assert_true(n >= ABOVE - 2); /* the hog's stay may begin when the other naps */
    for (size_t i = 0; i < n; i++)
        if (waits[i].end_ns - waits[i].start_ns > THRESHOLD + MS)
            assert_told(&w, &waits[i]);
    assert_true(told_fired(&w, 0, -1) <= n + 1);
    assert_blamed(&w, &taker, computer.pid);
    told_describe(&w, watch_first(&w, computer.pid, 0, 0), text, sizeof(text));
    assert_non_null(strstr(text, ", which ran thread "));
    watch_stop(&w);
    observer_free(&o);
    workload_wait(&computer);
    workload_wait(&taker);
}

/* It is runnable and gets no CPU at all. */
static void starve(struct workload *w)
{
    uint64_t start;

    come_first();
    pin(0);
    w->shared->note[1] = 1;
    start = workload_now();
    while (workload_now() - start < 300 * MS)
        ;
}

static void test_starving(void **state)
{
    const struct st_stall_record *r;
    struct workload computer, taker;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&computer, compute);
    workload_fork(&taker, starve);
    watch_start(&w, "runq>60ms", &computer.pid, 1, NULL, NULL);
    workload_go(&computer);
    while (!computer.shared->note[1])
        workload_sleep_ms(1);
    workload_go(&taker);
    r = spans_wait_ongoing(&w, computer.pid);
    assert_true(r->measured_ns >= 100 * MS);
    assert_int_equal(r->next_tid, taker.pid);
    for (int i = 0; i < 500 && !watch_count(&w, computer.pid, ST_STALL_COMPLETION, 0); i++)
        watch_collect(&w, w.records.n + 1, 20);
    computer.shared->note[2] = 1;
    assert_int_equal(watch_count(&w, computer.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    watch_stop(&w);
    workload_wait(&computer);
    workload_wait(&taker);
}

/* Takes CPU 0 from the other two, once a millisecond. */
static void interrupt(struct workload *w)
{
    come_before(3);
    pin(0);
    w->shared->note[1] = 1;
    while (!w->shared->note[2])
        workload_sleep_ms(1);
}

/* Who has the CPU in many turns has it for all of them. */
static void test_many_turns(void **state)
{
    struct workload computer, taker, other;
    const struct st_stall_record *r;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&computer, compute);
    workload_fork(&taker, starve);
    workload_fork(&other, interrupt);
    watch_start(&w, "runq>60ms", &computer.pid, 1, NULL, NULL);
    workload_go(&computer);
    workload_go(&other);
    while (!computer.shared->note[1] || !other.shared->note[1])
        workload_sleep_ms(1);
    workload_go(&taker);
    for (int i = 0; i < 500 && !watch_count(&w, computer.pid, ST_STALL_COMPLETION, 0); i++)
        watch_collect(&w, w.records.n + 1, 20);
    computer.shared->note[2] = other.shared->note[2] = 1;
    r = watch_first(&w, computer.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    if (atoi(spans_attribute(r, "turns")) > 20) { /* else the machine told of few of them */
        assert_int_equal(r->next_tid, taker.pid);
        assert_true(strtoull(spans_attribute(r, "held_ns"), NULL, 10) * 2 >
                    (unsigned long long)r->measured_ns);
    }
    watch_stop(&w);
    workload_wait(&computer);
    workload_wait(&taker);
    workload_wait(&other);
}

/* ---- woken on one CPU, for another ---- */

static int ends[2];

enum { SHORT = 45, LONG = 120 }; /* ms; the first is told when it has ended, the second as ongoing too */

/* On CPU 1. */
static void wait_for_bytes(struct workload *w)
{
    char byte;

    pin(1);
    w->shared->note[0] = 1;
    while (read(ends[0], &byte, 1) == 1 && byte == 'x')
        w->shared->note[1]++;
}

/* On CPU 1 for so long, and then it is no more. */
static pid_t fork_hog(struct workload *w, int ms)
{
    pid_t pid = fork();
    uint64_t start;

    if (pid)
        return pid;
    prctl(PR_SET_NAME, "short-lived");
    come_first();
    pin(1);
    w->shared->note[0] = getpid();
    start = workload_now();
    while (workload_now() - start < (uint64_t)ms * MS)
        ;
    _exit(0);
}

/* Wakes it from CPU 0, while another has its CPU. */
static void wake_from_elsewhere(struct workload *w)
{
    pin(0);
    for (int i = 0; i < ABOVE; i++) {
        pid_t pid = fork_hog(w, i % 3 ? SHORT : LONG);

        while (w->shared->note[0] != pid)
            workload_sleep_ms(1);
        if (write(ends[1], "x", 1) != 1 || waitpid(pid, NULL, 0) != pid)
            _exit(1);
        workload_sleep_ms(30);
        w->shared->note[2] = i + 1;
    }
    if (write(ends[1], "y", 1) != 1)
        _exit(1);
}

static void test_woken_from_elsewhere(void **state)
{
    struct workload waiter, waker;
    struct watch w;
    size_t told = 0;

    (void)state;
    NEEDS_BPF();
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    assert_int_equal(pipe(ends), 0);
    workload_fork(&waiter, wait_for_bytes);
    workload_fork(&waker, wake_from_elsewhere);
    watch_start(&w, "runq>20ms", &waiter.pid, 1, NULL, NULL);
    workload_go(&waiter);
    while (!waiter.shared->note[0])
        workload_sleep_ms(1);
    workload_go(&waker);
    while (waker.shared->note[2] < ABOVE)
        watch_collect(&w, SIZE_MAX, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    for (size_t i = 0; i < w.records.n; i++) {
        const struct st_stall_record *r = &w.records.at[i].r;

        assert_int_equal(r->cpu, 1);
        assert_true(r->next_tid > 0);
        assert_true(r->next_comm[0]);
        told += !strcmp(r->next_comm, "short-lived");
    }
    assert_true(w.records.n >= ABOVE);
    assert_true(told + 2 >= w.records.n); /* the kernel leaves others some time */
    watch_stop(&w);
    workload_wait(&waiter);
    workload_wait(&waker);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_are_the_schedulers),
        cmocka_unit_test(test_starving),
        cmocka_unit_test(test_many_turns),
        cmocka_unit_test(test_woken_from_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
