/* quiet against an event that never pauses: silence does not count from before the event could be seen. */
#include "base/stall_record.h"
#include "watch.h"
#include "workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

__attribute__((noinline)) void st_test_pulse(void)
{
    __asm__ volatile("" ::: "memory");
}

/* A probe changes the function's first byte: while that is what it was, nobody sees the event. */
static void pulse(struct workload *w)
{
    const volatile uint8_t *code = (const volatile uint8_t *)(uintptr_t)st_test_pulse;
    uint8_t plain = *code;

    workload_be_ordinary();
    while (!w->shared->note[1]) {
        uint64_t now = workload_now();

        if (*code == plain)
            w->shared->stall[0].start_ns = now;
        st_test_pulse();
        w->shared->note[0] = 1;
    }
}

static void test_silence_from_before_the_probe(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, pulse);
    workload_go(&work);
    while (!work.shared->note[0])
        workload_sleep_ms(1);
    watch_start(&w, "quiet:st_test_pulse>200ns", &work.pid, 1, NULL, NULL);
    for (int i = 0; i < 1500 && !w.records.n; i++)
        watch_collect(&w, 1, 20);
    work.shared->note[1] = 1;
    assert_true(w.records.n > 0);
    assert_true(work.shared->stall[0].start_ns > 0);
    for (size_t i = 0; i < w.records.n; i++)
        assert_true(w.records.at[i].r.start_ktime >= work.shared->stall[0].start_ns);
    watch_close(&w);
    workload_wait(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_from_before_the_probe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
