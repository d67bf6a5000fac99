/* What a workload noted beside what was told, for kinds that measure calls. */
#include "spans.h"
#include "tests/control/control.h"
#include "triggers/record_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#define PATIENCE_MS 120000

static bool is_open(const struct watch *w, const struct st_stall_record *r)
{
    return r->flags & ST_STALL_ONGOING && spans_whole(w, r) == r;
}

static bool any_open(const struct watch *w)
{
    for (size_t i = 0; i < w->records.n; i++)
        if (is_open(w, &w->records.at[i].r))
            return true;
    return false;
}

void spans_run(struct workload *work, workload_fn *fn, struct watch *w, const char *trigger, uint32_t noted,
               size_t fired)
{
    uint64_t give_up;

    control_begin();
    workload_fork(work, fn);
    watch_start(w, trigger, &work->pid, 1, NULL, NULL);
    workload_go(work);
    give_up = workload_now() + PATIENCE_MS * MS;
    while (workload_now() < give_up &&
           (work->shared->stalls < noted || told_fired(w, 0, -1) < fired || (fired && any_open(w))))
        watch_collect(w, w->records.n + 1, 20);
    watch_collect(w, SIZE_MAX, SETTLE);
    assert_int_equal(work->shared->stalls, noted);
}

const struct st_stall_record *spans_whole(const struct watch *w, const struct st_stall_record *r)
{
    for (size_t i = 0; r->flags & ST_STALL_ONGOING && i < w->records.n; i++)
        if (w->records.at[i].r.seq == r->seq && w->records.at[i].r.flags & ST_STALL_COMPLETION)
            return &w->records.at[i].r;
    return r;
}

static bool is_of(const struct st_stall_record *r, const struct workload_stall *s, uint64_t slack)
{
    return r->tid == (uint32_t)s->tid && r->start_ktime + 100000 + slack / 4 >= s->start_ns &&
           r->start_ktime <= s->end_ns;
}

static void show(const struct workload *work, const struct watch *w)
{
    for (uint32_t i = 0; i < work->shared->stalls; i++)
        print_message("noted: thread %d at %ld us, %ld us\n", work->shared->stall[i].tid,
                      (long)(work->shared->stall[i].start_ns - work->go_ns) / 1000,
                      (long)(work->shared->stall[i].end_ns - work->shared->stall[i].start_ns) / 1000);
    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        print_message("told: thread %u at %ld us, %ld us, flags %#x, seq %lu, system call %d\n", r->tid,
                      (long)(r->start_ktime - work->go_ns) / 1000, (long)r->measured_ns / 1000, r->flags,
                      (unsigned long)r->seq, r->syscall);
    }
}

static void assert_length(const struct watch *w, const struct st_stall_record *r,
                          const struct workload_stall *s, uint64_t slack)
{
    const struct st_stall_record *whole = spans_whole(w, r);
    uint64_t noted = s->end_ns - s->start_ns, tolerance = noted / 20 + 100000 + slack;
    uint64_t apart = whole->measured_ns > noted ? whole->measured_ns - noted : noted - whole->measured_ns;

    assert_int_equal(whole->end_ktime - whole->start_ktime, whole->measured_ns);
    if (apart > tolerance)
        told_excuse(s, tolerance);
    assert_in_range(apart, 0, tolerance);
}

size_t spans_assert(const struct workload *work, const struct watch *w, enum st_stall_kind kind,
                    uint64_t threshold_ns, uint64_t slack_ns)
{
    size_t fired = told_fired(w, 0, -1), matched = 0;

    for (uint32_t i = 0; i < work->shared->stalls; i++) {
        const struct workload_stall *s = &work->shared->stall[i];
        uint64_t noted = s->end_ns - s->start_ns;
        size_t told = 0;

        for (size_t j = 0; j < w->records.n; j++) {
            const struct st_stall_record *r = &w->records.at[j].r;

            if (!(r->flags & ST_STALL_FIRED) || !is_of(r, s, slack_ns))
                continue;
            assert_int_equal(r->kind, kind);
            assert_int_equal(r->threshold_ns, threshold_ns);
            assert_length(w, r, s, slack_ns);
            told++;
        }
        if (told > 1 || (told && noted + 100000 + slack_ns < threshold_ns) ||
            (!told && noted > threshold_ns + threshold_ns / 20 + 100000 + slack_ns)) {
            show(work, w);
            told_excuse(s, threshold_ns / 20 + 100000 + slack_ns);
            fail_msg("noted stall %u of %lu us was told %zu times", i, (unsigned long)noted / 1000, told);
        }
        matched += told;
    }
    if (matched != fired)
        show(work, w);
    assert_int_equal(matched, fired);
    return fired;
}

static int by_start(const void *a, const void *b)
{
    const struct watch_record *x = a, *y = b;

    return x->r.start_ktime < y->r.start_ktime ? -1 : x->r.start_ktime > y->r.start_ktime;
}

void spans_sort(struct watch *w)
{
    if (w->records.n)
        qsort(w->records.at, w->records.n, sizeof(*w->records.at), by_start);
}

const char *spans_attribute(const struct st_stall_record *r, const char *key)
{
    const char *value = trg_attribute(r, key);

    return value ? value : "";
}

const struct st_stall_record *spans_wait_ongoing(struct watch *w, pid_t tid)
{
    uint64_t give_up = workload_now() + PATIENCE_MS * MS;

    while (workload_now() < give_up && !watch_count(w, tid, ST_STALL_ONGOING, 0))
        watch_collect(w, w->records.n + 1, 20);
    return watch_first(w, tid, ST_STALL_ONGOING | ST_STALL_FIRED, 0);
}

void spans_wait_completion(struct watch *w, pid_t tid)
{
    for (int i = 0; i < 500 && !watch_count(w, tid, ST_STALL_COMPLETION, 0); i++)
        watch_collect(w, w->records.n + 1, 20);
}

const struct st_stall_record *spans_hang(struct workload *work, workload_fn *fn, struct watch *w,
                                         const char *trigger)
{
    workload_fork(work, fn);
    watch_start(w, trigger, &work->pid, 1, NULL, NULL);
    workload_go(work);
    return spans_wait_ongoing(w, work->pid);
}
