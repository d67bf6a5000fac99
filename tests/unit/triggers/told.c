/* What a workload noted, and what was told of it, side by side. */
#include "told.h"
#include "tests/control/control.h"
#include "tests/unit/inconclusive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define PATIENCE_MS 120000
#define SLACK       MS /* the trigger's start is by the run queue's clock, which is a little behind */

size_t told_fired(const struct watch *w, pid_t pid, int syscall)
{
    size_t n = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        n += r->flags & ST_STALL_FIRED && (syscall < 0 || r->syscall == syscall) &&
             (!pid || r->pid == (uint32_t)pid);
    }
    return n;
}

static bool completed(const struct watch *w, const struct st_stall_record *ongoing)
{
    size_t ends = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        ends += r->seq == ongoing->seq && r->flags & ST_STALL_COMPLETION && !(r->flags & ST_STALL_FIRED);
    }
    return ends == 1;
}

static bool all_completed(const struct watch *w)
{
    for (size_t i = 0; i < w->records.n; i++)
        if (w->records.at[i].r.flags & ST_STALL_ONGOING && !completed(w, &w->records.at[i].r))
            return false;
    return true;
}

void told_collect(struct watch *w, const struct workload *work, uint32_t noted, size_t told)
{
    uint64_t give_up = workload_now() + PATIENCE_MS * MS;

    while (workload_now() < give_up &&
           (work->shared->stalls < noted || told_fired(w, 0, -1) < told || !all_completed(w)))
        watch_collect(w, w->records.n + 1, 20);
    watch_collect(w, SIZE_MAX, SETTLE);
}

void told_collect_of(struct watch *w, pid_t pid, int syscall, size_t told)
{
    uint64_t give_up = workload_now() + PATIENCE_MS * MS;

    while (workload_now() < give_up && (told_fired(w, pid, syscall) < told || !all_completed(w)))
        watch_collect(w, w->records.n + 1, 20);
    watch_collect(w, SIZE_MAX, SETTLE);
}

void told_run(struct workload *work, workload_fn *fn, struct watch *w, const char *trigger, uint32_t noted,
              size_t told)
{
    control_begin();
    workload_fork(work, fn);
    watch_start(w, trigger, &work->pid, 1, NULL, NULL);
    workload_go(work);
    told_collect(w, work, noted, told);
}

void told_excuse(const struct workload_stall *s, uint64_t tolerance_ns)
{
    uint64_t off = control_off(s->start_ns - MS, s->end_ns + MS);

    if (off > tolerance_ns / 2)
        test_inconclusive(
            "the machine itself was off by %.1f ms in a stall of %.1f ms; the tolerance is %.1f ms",
            (double)off / MS, (double)(s->end_ns - s->start_ns) / MS, (double)tolerance_ns / MS);
}

static void assert_tells(const struct watch *w, const struct st_stall_record *r,
                         const struct workload_stall *s)
{
    assert_int_equal(r->kind, ST_STALL_OFFCPU);
    assert_int_equal(r->threshold_ns, 20 * MS);
    assert_true(r->measured_ns >= 20 * MS && r->now_ktime >= r->end_ktime);
    if (r->measured_ns > s->end_ns - s->start_ns + SLACK)
        told_excuse(s, SLACK);
    assert_true(r->measured_ns <= s->end_ns - s->start_ns + SLACK);
    if (r->flags & ST_STALL_ONGOING) { /* on a busy machine a stall may last past its grace */
        assert_true(completed(w, r));
        return;
    }
    if (r->end_ktime > s->end_ns)
        print_message("told to end %ld us late, flags %#x\n", (long)(r->end_ktime - s->end_ns) / 1000,
                      r->flags);
    assert_true(r->end_ktime <= s->end_ns);
    assert_int_equal(r->end_ktime - r->start_ktime, r->measured_ns);
}

static bool within(const struct st_stall_record *r, const struct workload_stall *s)
{
    return r->tid == (uint32_t)s->tid && r->start_ktime + SLACK >= s->start_ns && r->start_ktime <= s->end_ns;
}

/* For the reader of a failure. Times in us since the workload was let go. */
static void show(const struct workload *work, const struct watch *w)
{
    for (uint32_t i = 0; i < work->shared->stalls; i++) {
        const struct workload_stall *s = &work->shared->stall[i];

        print_message("noted: thread %d %ld to %ld\n", s->tid, (long)(s->start_ns - work->go_ns) / 1000,
                      (long)(s->end_ns - work->go_ns) / 1000);
    }
    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        print_message("told: thread %u %ld to %ld, stall %lu flags %#x state %#x system call %d waker %u\n",
                      r->tid, (long)(r->start_ktime - work->go_ns) / 1000,
                      r->end_ktime ? (long)(r->end_ktime - work->go_ns) / 1000 : -1, (unsigned long)r->seq,
                      r->flags, r->state, r->syscall, r->waker_ctx);
    }
}

void told_assert_each_once_in(const struct workload *work, const struct watch *w, uint32_t stalls,
                              int syscall)
{
    size_t fired = 0, told = 0;

    assert_int_equal(work->shared->stalls, stalls);
    for (size_t j = 0; j < w->records.n; j++) {
        const struct st_stall_record *r = &w->records.at[j].r;

        fired += r->flags & ST_STALL_FIRED && (syscall < 0 || r->syscall == syscall) &&
                 r->start_ktime >= work->go_ns; /* before, it waited to be let go */
    }
    if (fired != stalls)
        show(work, w);
    assert_int_equal(fired, stalls);
    for (uint32_t i = 0; i < stalls; i++, told = 0) {
        for (size_t j = 0; j < w->records.n; j++) {
            const struct st_stall_record *r = &w->records.at[j].r;

            if (!(r->flags & ST_STALL_FIRED) || !within(r, &work->shared->stall[i]))
                continue;
            told++;
            assert_tells(w, r, &work->shared->stall[i]);
        }
        if (told != 1)
            show(work, w);
        assert_int_equal(told, 1);
    }
}

void told_assert_each_once(const struct workload *work, const struct watch *w, uint32_t stalls)
{
    told_assert_each_once_in(work, w, stalls, -1);
}

bool told_has_frame(const uint64_t *stack, size_t n, const char *function)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(watch_ksym(NULL, stack[i]), function))
            return true;
    return false;
}

#ifdef ST_SANITIZED /* instrumented code is many times as long */
#define LONGER 16
#else
#define LONGER 1
#endif

bool told_has_address_in(const uint64_t *stack, size_t n, const void *function, size_t size)
{
    size *= LONGER;
    for (size_t i = 0; i < n; i++)
        if (stack[i] >= (uint64_t)(uintptr_t)function && stack[i] < (uint64_t)(uintptr_t)function + size)
            return true;
    return false;
}

void told_describe(const struct watch *w, const struct st_stall_record *r, char *text, size_t size)
{
    trg_describe(w->set, r, watch_ksym, NULL, text, size);
}
