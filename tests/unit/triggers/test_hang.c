/* offcpu: stalls that do not end are told while they go on. */
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- stalls that do not end ---- */

static int pipe_ends[2];

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
        assert_false(r->flags & ST_STALL_FOUND);
        assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
        assert_int_equal(r->syscall_args[0], pipe_ends[0]);
        assert_true(told_has_address_in(r->ustack, r->ustack_n, (void *)read_for_ever, 64));
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
    assert_true(r->flags & ST_STALL_FOUND);
    assert_int_equal(r->syscall, SYS_read);
    assert_true(told_has_frame(r->kstack, r->kstack_n, "vfs_read"));
    assert_int_equal(write(pipe_ends[1], "x", 1), 1);
    watch_collect(&w, 2, 1000);
    watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    watch_stop(&w);
    workload_wait(&work);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_hang_from_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
