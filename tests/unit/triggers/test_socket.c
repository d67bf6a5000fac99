/* socket against connections whose data lie unread or unsent for a known time. */
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const int lengths[ABOVE + BELOW] = {30, 2,  25, 35, 1, 3,  45, 30, 25, 5,
                                           30, 35, 2,  30, 4, 25, 30, 1,  28, 33};

static void set(int fd, int option, int value)
{
    if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)))
        _exit(1);
}

static int tcp_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 16))
        _exit(1);
    return listener;
}

static int tcp_connect(int listener)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    if (getsockname(listener, (void *)&address, &size) || connect(fd, (void *)&address, size))
        _exit(1);
    return fd;
}

static void tcp_pair(int *pair)
{
    int listener = tcp_listener();

    pair[0] = tcp_connect(listener);
    pair[1] = accept(listener, NULL, NULL);
    if (pair[1] < 0)
        _exit(1);
    close(listener);
}

enum { MOST = 4096 };

static void send_bytes(int fd, size_t n)
{
    char bytes[MOST] = "";

    if (send(fd, bytes, n, 0) != (ssize_t)n)
        _exit(1);
}

static void receive_bytes(int fd, size_t n)
{
    char bytes[MOST];

    if (recv(fd, bytes, n, MSG_WAITALL) != (ssize_t)n)
        _exit(1);
}

static size_t receive_some(int fd, size_t most)
{
    char bytes[MOST];
    ssize_t n = recv(fd, bytes, most < MOST ? most : MOST, 0);

    if (n <= 0)
        _exit(1);
    return (size_t)n;
}

/* ---- unread ---- */

static void read_late(struct workload *w)
{
    int pair[2];

    tcp_pair(pair);
    set(pair[0], TCP_NODELAY, 1);
    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start = workload_now();

        send_bytes(pair[0], 23);
        workload_sleep_ms(lengths[i]);
        receive_bytes(pair[1], 23);
        workload_end(w, start);
    }
}

static void test_unread(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    spans_run(&work, read_late, &w, "socket>20ms", ABOVE + BELOW, ABOVE);
    assert_true(spans_assert(&work, &w, ST_STALL_SOCKET, 20 * MS, 2 * MS) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        assert_string_equal(spans_attribute(r, "side"), "unread");
        assert_string_equal(spans_attribute(r, "bytes"), "23");
        assert_int_equal(strncmp(spans_attribute(r, "peer"), "127.0.0.1:", 10), 0);
        assert_true(atoi(spans_attribute(r, "port")) > 0);
    }
    told_describe(&w, &w.records.at[0].r, text, sizeof(text));
    assert_non_null(strstr(text, " had 23 bytes unread for "));
    watch_stop(&w);
    workload_wait(&work);
}

/* It keeps up: each byte is read after a pause or two, though there is always one that is unread. */
static void keep_pace(struct workload *w, int bytes, unsigned pause)
{
    uint64_t start = workload_now();
    int pair[2];

    tcp_pair(pair);
    set(pair[0], TCP_NODELAY, 1);
    send_bytes(pair[0], 1);
    for (int i = 0; i < bytes; i++) {
        send_bytes(pair[0], 1);
        workload_sleep_ms(pause);
        receive_bytes(pair[1], 1);
    }
    receive_bytes(pair[1], 1);
    workload_end(w, start);
}

static void keep_up(struct workload *w)
{
    keep_pace(w, 100, 1);
}

static void keep_up_slowly(struct workload *w)
{
    keep_pace(w, 40, 8);
}

/* With data that come close together, which share a mark, and with such that do not. */
static void test_steady_reader(void **state)
{
    void (*const readers[])(struct workload *) = {keep_up, keep_up_slowly};

    (void)state;
    NEEDS_BPF();
    for (size_t i = 0; i < 2; i++) {
        struct workload work;
        struct watch w;

        spans_run(&work, readers[i], &w, "socket>50ms", 1, 0);
        assert_int_equal(told_fired(&w, 0, -1), 0);
        watch_stop(&w);
        workload_wait(&work);
    }
}

/* Answers at once, on another CPU, for seconds: data come at any moment, also while what goes on is looked
 * at. */
static void exchange(struct workload *w)
{
    uint64_t start = workload_now();
    char byte = 0;
    int pair[2];

    tcp_pair(pair);
    set(pair[0], TCP_NODELAY, 1);
    set(pair[1], TCP_NODELAY, 1);
    if (!fork()) {
        close(pair[0]);
        while (recv(pair[1], &byte, 1, 0) == 1)
            send_bytes(pair[1], 1);
        _exit(0);
    }
    close(pair[1]);
    while (workload_now() - start < 3000 * MS) {
        send_bytes(pair[0], 1);
        receive_bytes(pair[0], 1);
    }
    close(pair[0]);
    workload_end(w, start);
}

static void test_quick_exchange(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    spans_run(&work, exchange, &w, "socket>50ms", 1, 0);
    for (size_t i = 0; i < w.records.n;
         i++) /* on a busy machine it may really wait; nobody waits for years */
        assert_true(w.records.at[i].r.measured_ns < 3000 * (uint64_t)MS);
    watch_stop(&w);
    workload_wait(&work);
}

/* The peer has ended its data, and that is all there is to be read. */
static void leave_the_end(struct workload *w)
{
    uint64_t start = workload_now();
    int pair[2];

    tcp_pair(pair);
    send_bytes(pair[0], 1);
    receive_bytes(pair[1], 1);
    shutdown(pair[0], SHUT_WR);
    workload_sleep_ms(300);
    workload_end(w, start);
}

/* There is no room for all of it: some is dropped, and comes again after 200 ms or more. Then it is read at
 * once. */
static void drop_some(struct workload *w)
{
    uint64_t start = workload_now();
    int pair[2], little = 1;

    tcp_pair(pair);
    set(pair[0], TCP_NODELAY, 1);
    if (setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)))
        _exit(1);
    for (int i = 0; i < 3; i++)
        send_bytes(pair[0], MOST);
    receive_bytes(pair[1], MOST);
    w->shared->note[0] = recv(pair[1], &little, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
    for (size_t left = 2 * MOST; left;)
        left -= receive_some(pair[1], left);
    workload_end(w, start);
}

static void test_nothing_lies_there(void **state)
{
    void (*const workloads[])(struct workload *) = {leave_the_end, drop_some};

    (void)state;
    NEEDS_BPF();
    for (size_t i = 0; i < 2; i++) {
        struct workload work;
        struct watch w;

        spans_run(&work, workloads[i], &w, "socket>50ms,side=unread", 1, 0);
        assert_true(!i || work.shared->note[0]);
        assert_int_equal(told_fired(&w, 0, -1), 0);
        watch_stop(&w);
        workload_wait(&work);
    }
}

static void never_read(struct workload *w)
{
    int pair[2];

    tcp_pair(pair);
    send_bytes(pair[0], 42);
    w->shared->note[0] = 1;
    while (!w->shared->note[1])
        workload_sleep_ms(1);
    receive_bytes(pair[1], 42);
}

static void test_never_read(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, never_read, &w, "socket>20ms,side=unread");
    assert_true(r->measured_ns >= 60 * MS);
    assert_string_equal(spans_attribute(r, "bytes"), "42");
    assert_true(r->kstack_n > 0); /* where the thread is instead */
    work.shared->note[1] = 1;
    spans_wait_completion(&w, work.pid);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_FIRED, 0), 1);
    watch_stop(&w);
    workload_wait(&work);
}

/* It is stopped while data lie there, which came to a socket of IPv6 by IPv4. */
static void stopped_with_data(struct workload *w)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET6, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), peer;
    socklen_t size = sizeof(address);

    if (bind(listener, (void *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (void *)&address, &size))
        _exit(1);
    to.sin_port = address.sin6_port;
    if (connect(fd, (void *)&to, sizeof(to)) || (peer = accept(listener, NULL, NULL)) < 0)
        _exit(1);
    send_bytes(fd, 7);
    raise(SIGSTOP);
    receive_bytes(peer, 7);
    (void)w;
}

static void test_stopped_with_data(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, stopped_with_data, &w, "socket>20ms,side=unread");
    assert_string_equal(spans_attribute(r, "stop_signal"), "19");
    assert_int_equal(atoi(spans_attribute(r, "stopped_by") + strlen("thread ")), work.pid);
    assert_int_equal(strncmp(spans_attribute(r, "peer"), "127.0.0.1:", 10), 0);
    assert_int_equal(kill(work.pid, SIGCONT), 0);
    spans_wait_completion(&w, work.pid);
    r = watch_first(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED);
    assert_string_equal(spans_attribute(r, "stop_signal"), "19");
    watch_stop(&w);
    workload_wait(&work);
}

/* The data came, and were left, before the trigger was armed. */
static void test_never_read_before_it_is_armed(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, never_read);
    workload_go(&work);
    while (!work.shared->note[0])
        workload_sleep_ms(1);
    watch_start(&w, "socket>20ms", &work.pid, 1, NULL, NULL);
    assert_string_equal(spans_attribute(spans_wait_ongoing(&w, work.pid), "bytes"), "42");
    work.shared->note[1] = 1;
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- unsent ---- */

static int nodelay, one_write;

/* Two small writes: Nagle's algorithm keeps the second until the first is acknowledged, and the peer delays
 * that: 40 ms. */
static void write_twice(struct workload *w)
{
    int pair[2];

    tcp_pair(pair);
    set(pair[0], TCP_NODELAY, nodelay);
    for (int i = 0; i < ABOVE; i++) {
        uint64_t start;

        set(pair[1], TCP_QUICKACK, 0);
        if (!one_write)
            send_bytes(pair[0], 5);
        start = workload_now();
        send_bytes(pair[0], one_write ? 12 : 7);
        receive_bytes(pair[1], 12);
        workload_end(w, start);
        send_bytes(pair[1], 1); /* the reply acknowledges it */
        receive_bytes(pair[0], 1);
    }
}

static void test_delayed_ack(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    size_t named = 0, held = 0;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    nodelay = one_write = 0;
    spans_run(&work, write_twice, &w, "socket>20ms,side=unsent", ABOVE, ABOVE);
    assert_int_equal(spans_assert(&work, &w, ST_STALL_SOCKET, 20 * MS, 2 * MS), ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        assert_string_equal(spans_attribute(r, "side"), "unsent");
        assert_string_equal(spans_attribute(r, "held_by"), "nagle");
        assert_string_equal(spans_attribute(r, "nodelay"), "0");
        held += !strcmp(spans_attribute(r, "bytes"), "7");
        if (r->flags & ST_STALL_ONGOING)
            continue;
        if (r->timer_func)
            assert_string_equal(watch_ksym(NULL, r->timer_func), "tcp_delack_timer");
        named += r->timer_func != 0;
    }
    /* On a busy machine the acknowledgement of the reply comes late, and the first write is held. */
    assert_true(held + 2 >= ABOVE);
    /* Some virtual machines run some softirqs without their tracepoints. */
    assert_true(named + 3 >= ABOVE);
    told_describe(&w, watch_first(&w, work.pid, 0, ST_STALL_ONGOING), text, sizeof(text));
    assert_non_null(strstr(text, ", held by nagle"));
    watch_stop(&w);
    workload_wait(&work);
}

static void test_nothing_is_held(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    for (int i = 0; i < 2; i++) {
        nodelay = !i;
        one_write = i;
        spans_run(&work, write_twice, &w, "socket>20ms", ABOVE, 0);
        assert_int_equal(told_fired(&w, 0, -1), 0);
        watch_stop(&w);
        workload_wait(&work);
    }
}

/* The peer does not read, so its window is shut: what is written lies here until it does. */
static void fill_the_window(struct workload *w)
{
    static char bytes[65536];
    int pair[2];

    tcp_pair(pair);
    while (send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    w->shared->note[0] = 1;
    while (!w->shared->note[1])
        workload_sleep_ms(1);
    while (recv(pair[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        workload_sleep_ms(1); /* the window opens, and the rest comes */
}

static void test_never_sent(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    r = spans_hang(&work, fill_the_window, &w, "socket>20ms,side=unsent");
    assert_string_equal(spans_attribute(r, "side"), "unsent");
    assert_string_equal(spans_attribute(r, "held_by"), "window");
    assert_true(atol(spans_attribute(r, "bytes")) > 0);
    work.shared->note[1] = 1;
    spans_wait_completion(&w, work.pid);
    assert_int_equal(watch_count(&w, work.pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    watch_stop(&w);
    workload_wait(&work);
}

/* ---- unaccepted ---- */

static void accept_late(struct workload *w)
{
    int listener = tcp_listener();

    for (int i = 0; i < ABOVE + BELOW; i++) {
        uint64_t start = workload_now();
        int client = tcp_connect(listener), server;

        workload_sleep_ms(lengths[i]);
        server = accept(listener, NULL, NULL);
        workload_end(w, start);
        close(client);
        close(server);
    }
}

static void test_unaccepted(void **state)
{
    const struct st_stall_record *r;
    struct workload work;
    struct watch w;
    char text[512];

    (void)state;
    NEEDS_BPF();
    spans_run(&work, accept_late, &w, "socket>20ms", ABOVE + BELOW, ABOVE);
    assert_true(spans_assert(&work, &w, ST_STALL_SOCKET, 20 * MS, 2 * MS) >= ABOVE);
    for (size_t i = 0; i < w.records.n; i++) {
        r = &w.records.at[i].r;
        assert_string_equal(spans_attribute(r, "side"), "unaccepted");
        assert_string_equal(spans_attribute(r, "connections"), "1");
        assert_int_equal(strncmp(spans_attribute(r, "local"), "127.0.0.1:", 10), 0);
    }
    told_describe(&w, &w.records.at[0].r, text, sizeof(text));
    assert_non_null(strstr(text, " had 1 connection waiting to be accepted for "));
    assert_non_null(strstr(text, " ms on 127.0.0.1:"));
    watch_stop(&w);
    workload_wait(&work);
}

enum { QUEUED = 3 };

static void never_accept(struct workload *w)
{
    int listener = tcp_listener(), client[QUEUED];

    for (int i = 0; i < QUEUED; i++)
        client[i] = tcp_connect(listener);
    w->shared->note[0] = 1;
    while (!w->shared->note[1])
        workload_sleep_ms(1);
    for (int i = 0; i < QUEUED; i++) {
        close(client[i]);
        close(accept(listener, NULL, NULL));
    }
    w->shared->note[0] = 2;
    while (w->shared->note[1] < 2)
        workload_sleep_ms(1);
}

/* All that wait at a time are one stall. */
static void assert_queue_told(struct workload *work, struct watch *w, const struct st_stall_record *r)
{
    char text[512];

    assert_true(r->measured_ns >= 60 * MS);
    assert_string_equal(spans_attribute(r, "connections"), "3");
    told_describe(w, r, text, sizeof(text));
    assert_non_null(strstr(text, " had 3 connections waiting to be accepted for "));
    work->shared->note[1] = 1;
    spans_wait_completion(w, work->pid);
    while (work->shared->note[0] != 2)
        watch_collect(w, SIZE_MAX, 20);
    watch_collect(w, SIZE_MAX, SETTLE);
    assert_int_equal(watch_count(w, work->pid, ST_STALL_COMPLETION, ST_STALL_FIRED), 1);
    assert_int_equal(w->records.n, 2);
    work->shared->note[1] = 2;
    watch_stop(w);
    workload_wait(work);
}

static void test_never_accepted(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    assert_queue_told(&work, &w, spans_hang(&work, never_accept, &w, "socket>20ms,side=unaccepted"));
}

static void test_never_accepted_before_it_is_armed(void **state)
{
    struct workload work;
    struct watch w;

    (void)state;
    NEEDS_BPF();
    workload_fork(&work, never_accept);
    workload_go(&work);
    while (!work.shared->note[0])
        workload_sleep_ms(1);
    watch_start(&w, "socket>20ms", &work.pid, 1, NULL, NULL);
    assert_queue_told(&work, &w, spans_wait_ongoing(&w, work.pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_exchange),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_steady_reader),
        cmocka_unit_test(test_nothing_lies_there),
        cmocka_unit_test(test_stopped_with_data),
        cmocka_unit_test(test_never_read),
        cmocka_unit_test(test_never_read_before_it_is_armed),
        cmocka_unit_test(test_delayed_ack),
        cmocka_unit_test(test_nothing_is_held),
        cmocka_unit_test(test_never_sent),
        cmocka_unit_test(test_unaccepted),
        cmocka_unit_test(test_never_accepted),
        cmocka_unit_test(test_never_accepted_before_it_is_armed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
