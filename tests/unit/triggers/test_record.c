/* Stall records as they come from a ring or a file, the line for a person, and the percentiles. */
#include "triggers/histogram.h"
#include "triggers/trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct st_stall_record sample_record(void)
{
    return (struct st_stall_record){
        .magic = ST_STALL_MAGIC,
        .version = ST_STALL_VERSION,
        .kind = ST_STALL_OFFCPU,
        .flags = ST_STALL_FIRED,
        .seq = 1,
        .start_ktime = 1000000,
        .end_ktime = 41200000,
        .measured_ns = 40200000,
        .threshold_ns = 20000000,
        .pid = 4312,
        .tid = 4312,
        .comm = "forwarder",
        .state = 1,
        .syscall = 45,
        .ustack_n = 1,
    };
}

static void test_records_are_checked(void **state)
{
    struct st_stall_record r = sample_record();
    const struct st_stall_record *found = NULL;
    struct st_error err = {0};
    _Alignas(8) char shifted[sizeof(r) + 8];

    (void)state;
    assert_int_equal(trg_record(&r, sizeof(r), &found, &err), 1);
    assert_ptr_equal(found, &r);
    assert_int_equal(trg_record(&r, sizeof(r) + 4, &found, &err), 1); /* perf pads */
    for (size_t n = 0; n < sizeof(r); n++)
        assert_int_equal(trg_record(&r, n, &found, &err), n < 6 ? 0 : ST_EBADFILE);
    memcpy(shifted + 4, &r, sizeof(r));
    assert_int_equal(trg_record(shifted + 4, sizeof(r), &found, &err), ST_EFAIL);
    r.version = 99;
    assert_int_equal(trg_record(&r, sizeof(r), &found, &err), ST_EBADFILE);
    assert_non_null(strstr(err.text, "version 99"));
    r = sample_record();
    r.kstack_n = ST_STALL_KSTACK + 1;
    assert_int_equal(trg_record(&r, sizeof(r), &found, &err), ST_EBADFILE);
    r = sample_record();
    r.extra_n = 65535;
    assert_int_equal(trg_record(&r, sizeof(r), &found, &err), ST_EBADFILE);
    r = sample_record();
    r.magic = ST_SYMBOL_MAGIC;
    assert_int_equal(trg_record(&r, sizeof(r), &found, &err), 0);
}

static const char *symbol(void *ctx, uint64_t address)
{
    (void)ctx;
    return address == 0xd1   ? "tcp_delack_timer"
           : address == 0xd2 ? "hrtimer_wakeup"
           : address == 0xd3 ? "process_timeout"
           : address == 0xd4 ? "call_timer_fn"
                             : NULL;
}

static void assert_line(const struct st_stall_record *r, const char *expected)
{
    char text[512], cut[512];

    trg_describe(NULL, r, symbol, NULL, text, sizeof(text));
    assert_string_equal(text, expected);
    for (size_t n = 1; n <= strlen(expected) + 1; n++) { /* whatever room there is */
        trg_describe(NULL, r, symbol, NULL, cut, n);
        assert_true(strlen(cut) < n);
        assert_int_equal(strncmp(cut, expected, strlen(cut)), 0);
    }
}

static void test_lines_about_wakers(void **state)
{
    struct st_stall_record r = sample_record();

    (void)state;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom");
    r.flags |= ST_STALL_UNTRACED;
    assert_line(&r,
                "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by what this kernel did not "
                "trace");
    r.waker_ctx = ST_WAKER_SOFTIRQ;
    r.waker_vec = 3;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by softirq NET_RX");
    r.waker_vec = ST_WAKER_VEC_UNKNOWN;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by a softirq");
    r.waker_vec = 3;
    r.timer_func = 0xd1;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by softirq NET_RX after "
                    "timer tcp_delack_timer");
    r.timer_func = 0xff;
    assert_line(
        &r,
        "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by softirq NET_RX after timer 0xff");
    r = sample_record();
    r.waker_ctx = ST_WAKER_TASK;
    r.waker_tid = 4313;
    strcpy(r.waker_comm, "logger");
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by thread 4313 \"logger\"");
    r.wake_ktime = r.end_ktime - 10200000;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by thread 4313 \"logger\" "
                    "and then 10.2 ms in the run queue");
    r.kind = ST_STALL_SYSCALL; /* the call may have waited again behind that */
    assert_line(&r, "thread 4312 \"forwarder\" was 40.2 ms in recvfrom, woken by thread 4313 \"logger\"");
    r = sample_record();
    r.waker_ctx = ST_WAKER_IRQ;
    r.waker_vec = 24;
    strcpy(r.waker_irq, "nvme0q1");
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by irq 24 nvme0q1");
    r.waker_irq[0] = '\0';
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by an interrupt");
    r.wstack[0] = 0xd2;
    r.wstack_n = 1;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by its own time-out");
    strcpy(r.extra, "timeout_ns=40000000");
    r.extra_n = 20;
    r.wake_ktime = r.end_ktime - 100000;
    assert_line(
        &r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by its own time-out of 40.0 ms");
    strcpy(r.extra, "timeout_ns=50000000"); /* another wait's */
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by its own time-out");
    r.waker_ctx = ST_WAKER_SOFTIRQ;
    r.waker_vec = 1;
    r.timer_func = 0xd3;
    r.wstack[0] = 0xd5;
    r.wstack[1] = 0xd4;
    r.wstack_n = 2;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by its own time-out");
    r.timer_func = 0xd1; /* another timer's function woke it */
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in recvfrom, woken by softirq TIMER after "
                    "timer tcp_delack_timer");
}

static void test_lines_about_states(void **state)
{
    struct st_stall_record r = sample_record();

    (void)state;
    r.flags = ST_STALL_FIRED | ST_STALL_ONGOING;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms so far in recvfrom");
    r.flags |= ST_STALL_FOUND;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU at least 40.2 ms so far in recvfrom");
    r = sample_record();
    r.syscall = -1;
    r.state = 2;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms outside of system calls (page fault)");
    r.state = 0;
    r.next_tid = 99;
    strcpy(r.next_comm, "hog");
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms, preempted by thread 99 \"hog\"");
    r.extra_n = sizeof("throttled=7");
    memcpy(r.extra, "throttled=7", r.extra_n);
    assert_line(
        &r,
        "thread 4312 \"forwarder\" off-CPU 40.2 ms, ready to run while its CPU went to thread 99 \"hog\"");
    r.extra_n = sizeof("throttled=7\0throttled_now=0");
    memcpy(r.extra, "throttled=7\0throttled_now=0", r.extra_n);
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms, preempted by thread 99 \"hog\"");
    r.extra[r.extra_n - 2] = '1';
    assert_line(&r,
                "thread 4312 \"forwarder\" off-CPU 40.2 ms, throttled by the CPU quota of its control group");
    r = sample_record();
    r.syscall = 511;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in system call 511");
    r.syscall = 3;
    r.flags |= ST_STALL_COMPAT;
    assert_line(&r, "thread 4312 \"forwarder\" off-CPU 40.2 ms in read");
}

/* Names come from other people's programs. */
static void test_lines_are_safe(void **state)
{
    struct st_stall_record r = sample_record();

    (void)state;
    memcpy(r.comm, "\x1b[2Jevil\x1b[0mxxxx", 16); /* no NUL either */
    assert_line(&r, "thread 4312 \"\\x1b[2Jevil\\x1b[0mxxxx\" off-CPU 40.2 ms in recvfrom");
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* As measure() in offcpu.bpf.c. */
static void put(struct hist *h, uint64_t v)
{
    unsigned power = v ? 63 - (unsigned)__builtin_clzll(v) : 0;
    unsigned step = (unsigned)(power >= 3 ? v >> (power - 3) : v << (3 - power)) % HIST_STEPS;

    h->bucket[power * HIST_STEPS + step]++;
    if (v > h->worst)
        h->worst = v;
}

static void test_percentiles(void **state)
{
    static const double shares[] = {0.01, 0.5, 0.9, 0.99, 0.999, 1.0};
    static struct hist h;
    static uint64_t all[10000];
    enum { N = sizeof(all) / sizeof(all[0]) };

    (void)state;
    srandom(1);
    for (int i = 0; i < N; i++) {
        all[i] = (uint64_t)random() >> (random() % 31);
        put(&h, all[i]);
    }
    qsort(all, N, sizeof(all[0]), by_value);
    assert_int_equal(trg_hist_count(&h), N);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        uint64_t exact = all[(size_t)(shares[i] * N + 0.5) - 1], told = trg_hist_percentile(&h, shares[i]);

        if (told < exact || told > exact + exact / 8 + 2)
            fail_msg("the %g percentile is %lu, told %lu", shares[i] * 100, (unsigned long)exact,
                     (unsigned long)told);
    }
    assert_int_equal(trg_hist_percentile(&h, 1.0), all[N - 1]);
}

static void test_histogram_of_nothing(void **state)
{
    static const struct hist none;
    char text[256] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    (void)state;
    trg_hist_print(&none, "offcpu>20ms: time off the CPU", to);
    fclose(to);
    assert_string_equal(text, "offcpu>20ms: time off the CPU: 0 measured\n");
    assert_int_equal(trg_hist_percentile(&none, 0.5), 0);
}

static void test_histogram_fits_a_terminal(void **state)
{
    static struct hist h;
    char text[16384] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    (void)state;
    for (int power = 0; power < 46; power++)
        for (int i = 0; i <= power * 100; i++)
            put(&h, 1ull << power);
    trg_hist_print(&h, "offcpu>20ms: time off the CPU", to);
    fclose(to);
    for (const char *p = text; *p; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") < 80);
    assert_non_null(strstr(text, "worst "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_are_checked),
        cmocka_unit_test(test_lines_about_wakers),
        cmocka_unit_test(test_lines_about_states),
        cmocka_unit_test(test_lines_are_safe),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_histogram_of_nothing),
        cmocka_unit_test(test_histogram_fits_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
