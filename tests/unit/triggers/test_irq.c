/* softirq against what the kernel's tracepoints tell of the same run, and its record. */
#include "observer.h"
#include "spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NET_RX 3

struct handler {
    uint64_t start_ns, end_ns;

    uint32_t tid, cpu;

    int which;
};

/* Entries (event 0) and exits (event 1); the number that tells which is at 8. */
static size_t true_handlers(const struct observer *o, int only, struct handler *out, size_t room)
{
    uint64_t since[64] = {0};
    int which[64] = {0};
    size_t n = 0;

    for (size_t i = 0; i < o->seen.n; i++) {
        const struct observed *e = &o->seen.at[i];
        int now = observed_int(e, 8);

        if (only >= 0 && now != only)
            continue;
        if (e->event == 0) {
            since[e->cpu] = e->time;
            which[e->cpu] = now;
        } else if (since[e->cpu] && which[e->cpu] == now && n < room) {
            out[n++] = (struct handler){since[e->cpu], e->time, e->tid, e->cpu, now};
            since[e->cpu] = 0;
        }
    }
    return n;
}

/* The programs of both run at the same tracepoints, one after the other. */
#define APART_NS 100000

static uint64_t apart(const struct st_stall_record *r, const struct handler *h)
{
    return r->start_ktime > h->start_ns ? r->start_ktime - h->start_ns : h->start_ns - r->start_ktime;
}

/* The record that is nearest in time, on the same CPU, of the same handler. */
static const struct st_stall_record *nearest(const struct watch *w, const struct handler *h, const char *key,
                                             const char *value)
{
    const struct st_stall_record *best = NULL;

    for (size_t i = 0; i < w->records.n; i++) {
        const struct st_stall_record *r = &w->records.at[i].r;

        if (r->cpu == h->cpu && !strcmp(spans_attribute(r, key), value) && apart(r, h) < APART_NS &&
            (!best || apart(r, h) < apart(best, h)))
            best = r;
    }
    return best;
}

/* Each that was clearly over the threshold was told, with its thread, its CPU and its length. Returns how
 * many that are. The two observers read the clock one after the other; where the machine is a guest, its host
 * may stop the CPU in between, and then the lengths differ by any time: few of them may. */
static size_t assert_told(const struct watch *w, const struct handler *all, size_t n, uint64_t threshold,
                          const char *key)
{
    size_t over = 0, differ = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t took = all[i].end_ns - all[i].start_ns;
        const struct st_stall_record *r;
        char number[16];

        if (took < threshold + threshold / 20 + APART_NS)
            continue;
        over++;
        snprintf(number, sizeof(number), "%d", all[i].which);
        r = nearest(w, &all[i], key, *key == 's' ? "NET_RX" : number);
        if (!r)
            fail_msg("a handler of %lu us on CPU %u was not told", (unsigned long)took / 1000, all[i].cpu);
        assert_int_equal(r->tid, all[i].tid);
        differ +=
            r->measured_ns > took + took / 20 + APART_NS || took > r->measured_ns + took / 20 + APART_NS;
    }
    if (differ > 1 + over / 20)
        fail_msg("%zu of %zu lengths are not the kernel's", differ, over);
    return over;
}

/* ---- softirq ---- */

#define SOCKETS 160
#define FILTER  4000

static int sockets[SOCKETS];

/* A filter that computes for long and then refuses the packet. */
static void be_slow(int fd)
{
    static struct sock_filter code[FILTER];
    struct sock_fprog filter = {FILTER, code};

    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0xffffffff);
    for (int i = 1; i < FILTER - 1; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 3);
    code[FILTER - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
        _exit(1);
}

/* A broadcast to all of them is delivered, and filtered, in one softirq, in the sender's thread. */
static void open_sockets(struct sockaddr_in *address)
{
    socklen_t size = sizeof(*address);
    int yes = 1;

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    for (int i = 0; i < SOCKETS; i++) {
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (setsockopt(sockets[i], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
            bind(sockets[i], (void *)address, size) || getsockname(sockets[i], (void *)address, &size))
            _exit(1);
        be_slow(sockets[i]);
    }
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK | 0xffffff); /* 127.255.255.255 */
}

static void broadcast(struct workload *w)
{
    int from = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in all, one;
    socklen_t size = sizeof(one);

    open_sockets(&all);
    one = all;
    one.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* then it is for one of them */
    if (setsockopt(from, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)))
        _exit(1);
    for (int i = 0; i < ABOVE + 100; i++) {
        bool slow = i % 8 == 0 && w->shared->stalls < ABOVE;
        uint64_t start = workload_now();

        if (sendto(from, "x", 1, 0, slow ? (void *)&all : (void *)&one, size) != 1)
            _exit(1);
        if (slow)
            workload_end(w, start);
    }
    w->shared->note[0] = 1;
}

static void test_softirqs_are_the_kernels(void **state)
{
    struct handler *all = calloc(20000, sizeof(*all));
    struct observer o = {.events = 0};
    struct workload work;
    struct watch w;
    char text[512], filter[32];
    size_t n, over;

    (void)state;
    NEEDS_BPF();
    if (!observer_possible())
        skip();
    workload_fork(&work, broadcast);
    watch_start(&w, "softirq:NET_RX>500us", &work.pid, 1, NULL, NULL);
    snprintf(filter, sizeof(filter), "vec==%d", NET_RX);
    observer_add(&o, "irq/softirq_entry", filter, work.pid);
    observer_add(&o, "irq/softirq_exit", filter, work.pid);
    workload_go(&work);
    for (int i = 0; i < 1500 && !work.shared->note[0]; i++)
        watch_collect(&w, SIZE_MAX, 20);
    watch_collect(&w, SIZE_MAX, SETTLE);
    observer_end(&o);
    n = true_handlers(&o, NET_RX, all, 20000);
    over = assert_told(&w, all, n, 500000, "softirq");
    assert_true(over >= ABOVE); /* the injected ones are among them */
    assert_true(n >= ABOVE + 90 && w.records.n >= over && w.records.n <= over + 5);
    for (uint32_t i = 0; i < work.shared->stalls; i++) {
        size_t told = 0;

        for (size_t j = 0; j < w.records.n; j++)
            told += w.records.at[j].r.start_ktime > work.shared->stall[i].start_ns &&
                    w.records.at[j].r.end_ktime < work.shared->stall[i].end_ns;
        assert_int_equal(told, 1);
    }
    told_describe(&w, &w.records.at[0].r, text, sizeof(text));
    assert_non_null(strstr(text, " by softirq NET_RX on CPU "));
    assert_int_equal(w.records.at[0].r.kind, ST_STALL_SOFTIRQ);
    assert_true(w.records.at[0].r.ustack_n > 1);
    watch_stop(&w);
    observer_free(&o);
    workload_wait(&work);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softirqs_are_the_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
