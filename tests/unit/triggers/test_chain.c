/* offcpu: the chain timer -> softirq -> thread. */
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMES 10

#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45 /* include/uapi/linux/tcp.h, from 6.15 */
#endif

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

static void delay_ack(int fd)
{
    int off = 0;

    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
}

enum { OTHERS = 24 };

static bool others;

/* Connections whose one byte is not acknowledged for 40 ms, and is sent again after 32 to 48 ms: their timers
 * go off with the one of the connection under test. The kernel runs the timers that were started last first.
 */
static void start_others(void)
{
    static int pairs[OTHERS][2];

    for (int i = 0; i < OTHERS; i++) {
        int resend_us = 32000 + i % 5 * 4000;

        if (pairs[i][0]) {
            close(pairs[i][0]);
            close(pairs[i][1]);
        }
        if (tcp_pair(pairs[i]) ||
            setsockopt(pairs[i][0], IPPROTO_TCP, TCP_RTO_MIN_US, &resend_us, sizeof(resend_us)))
            _exit(1);
        delay_ack(pairs[i][1]);
        if (send(pairs[i][0], "x", 1, 0) != 1)
            _exit(1);
    }
}

/* Nagle's algorithm keeps the second small write until the first is acknowledged, and the peer delays that
 * ACK: 40 ms. */
static void meet_delayed_ack(struct workload *w)
{
    int pair[2];
    char bytes[2];

    if (tcp_pair(pair))
        _exit(1);
    for (int i = 0; i < TIMES; i++) {
        uint64_t start;

        delay_ack(pair[1]);
        if (send(pair[0], "a", 1, 0) != 1 || send(pair[0], "b", 1, 0) != 1)
            _exit(1);
        if (others)
            start_others();
        start = workload_now();
        if (recv(pair[1], bytes, 2, MSG_WAITALL) != 2)
            _exit(1);
        workload_end(w, start);
    }
}

#define RESENT_NS (190 * MS) /* the kernel's shortest time until it sends again */

/* Where the kernel traced neither the wake-up nor the switch the record says so, and no more is known. */
static void assert_names_delayed_ack(const struct watch *w)
{
    size_t named = 0;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        assert_int_equal(r->syscall, SYS_recvfrom);
        if (r->flags & ST_STALL_ONGOING || r->measured_ns > RESENT_NS ||
            (r->flags & ST_STALL_UNTRACED && !r->waker_ctx))
            continue;
        named++;
        assert_int_equal(r->waker_ctx, ST_WAKER_SOFTIRQ);
        assert_int_equal(r->waker_vec, 3); /* NET_RX_SOFTIRQ */
        assert_string_equal(watch_ksym(NULL, r->timer_func), "tcp_delack_timer");
        assert_true(r->timer_ktime <= r->wake_ktime && r->wake_ktime - r->timer_ktime < 20 * MS);
        assert_true(told_has_frame(r->wstack, r->wstack_n, "sock_def_readable"));
    }
    assert_true(named > 0);
}

static void test_delayed_ack_names_its_timer(void **state)
{
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    told_run(&work, meet_delayed_ack, &w, BLOCKS, TIMES, TIMES);
    told_assert_each_once(&work, &w, TIMES);
    assert_names_delayed_ack(&w);
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, "in recvfrom, woken by softirq NET_RX after timer tcp_"));
    watch_stop(&w);
    workload_wait(&work);
}

/* Other connections' timers run in the same softirq, before it and after it, and raise NET_RX too. */
static void test_timer_of_its_own_connection(void **state)
{
    int pair[2], resend_us = 40000;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_int_equal(tcp_pair(pair), 0);
    if (setsockopt(pair[0], IPPROTO_TCP, TCP_RTO_MIN_US, &resend_us, sizeof(resend_us))) {
        print_message("skipped: before Linux 6.15 no socket sends again as early as a delayed ACK comes\n");
        skip();
    }
    others = true;
    told_run(&work, meet_delayed_ack, &w, BLOCKS, TIMES, TIMES);
    others = false;
    assert_names_delayed_ack(&w);
    watch_stop(&w);
    workload_wait(&work);
    close(pair[0]);
    close(pair[1]);
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
    told_run(&work, time_out_in_recv, &w, BLOCKS, 1, 1);
    r = watch_first(&w, work.pid, ST_STALL_FIRED, 0);
    if (r->flags & ST_STALL_ONGOING) /* a late tick: past the grace */
        r = watch_first(&w, work.pid, ST_STALL_COMPLETION, 0);
    assert_int_equal(r->waker_ctx, ST_WAKER_SOFTIRQ);
    assert_int_equal(r->waker_vec, 1); /* TIMER_SOFTIRQ */
    assert_string_equal(watch_ksym(NULL, r->timer_func), "process_timeout");
    watch_stop(&w);
    workload_wait(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delayed_ack_names_its_timer),
        cmocka_unit_test(test_timer_of_its_own_connection),
        cmocka_unit_test(test_receive_time_out_names_its_timer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
