/* The workloads: each stalls so often over the threshold of its kind, and half as often below. */
#include "truth.h"

#include "../../workloads/probe_note.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define MS      1000000ull

int truth_count = 13, truth_scale = 1, truth_sockets = 320;

static void must(bool good)
{
    if (!good)
        _exit(1);
}

/* The lengths in ms: two that are over the threshold, then one that is not. Some last so long that they are
 * told while they go on. */
static int plain_length(int i)
{
    if (i % 3 == 2)
        return TRUTH_BELOW - i % 5 * 2;
    return i % 13 == 6 ? 75 : TRUTH_ABOVE + i % 7 * 2;
}

static int length(int i)
{
    return plain_length(i) * truth_scale;
}

static bool is_long(int i)
{
    return plain_length(i) >= TRUTH_ABOVE;
}

static int stalls(void)
{
    return truth_count + truth_count / 2;
}

static void pin(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(0, &set);
    must(!sched_setaffinity(0, sizeof(set), &set));
}

/* ---- threads that share the stalls ---- */

typedef void one_fn(struct workload *w, int i, void *own);

struct share {
    struct workload *w;

    one_fn *one;

    void *(*begin)(void);

    bool in_turn; /* one thread after the other */

    _Atomic int next;
};

static void *take_share(void *arg)
{
    struct share *s = arg;
    void *own = s->begin ? s->begin() : NULL;
    int most = s->in_turn ? (stalls() + THREADS - 1) / THREADS : stalls();

    for (int done = 0; done < most; done++) {
        int i = s->next++;

        if (i >= stalls())
            break;
        s->one(s->w, i, own);
        workload_sleep_ms(4);
    }
    return NULL;
}

static void share(struct workload *w, one_fn *one, void *(*begin)(void), bool in_turn)
{
    struct share s = {.w = w, .one = one, .begin = begin, .in_turn = in_turn};
    pthread_t thread[THREADS];

    pin(); /* a processor whose idle thread shows what happens in it */
    for (int i = 0; i < THREADS; i++) {
        must(!pthread_create(&thread[i], NULL, take_share, &s));
        if (in_turn)
            pthread_join(thread[i], NULL);
        else
            workload_sleep_ms(1); /* is not away from its work for long */
    }
    for (int i = 0; i < THREADS && !in_turn; i++)
        pthread_join(thread[i], NULL);
}

/* ---- off the CPU, in a system call ---- */

static void *open_pair(void)
{
    int *pair = calloc(2, sizeof(*pair));

    must(pair && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    return pair;
}

/* Nothing comes: it waits for so long. */
static void receive_for(int fd, int ms)
{
    struct timeval limit = {.tv_usec = ms * 1000};
    char byte;

    must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
    must(recv(fd, &byte, 1, 0) < 0);
}

static void receive(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();

    receive_for(*(int *)own, length(i));
    workload_end(w, start);
    if (i % 4 == 0)
        workload_sleep_ms(30); /* for work: no stall */
}

void truth_receive(struct workload *w)
{
    share(w, receive, open_pair, false);
}

/* A wait that no signal ends: for what a vfork() child does, which is that it sleeps. */
static void wait_for_child(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();
    pid_t child = vfork();

    if (!child) {
        workload_sleep_ms(length(i));
        _exit(0);
    }
    workload_end(w, start);
    must(child > 0 && waitpid(child, NULL, 0) == child);
    receive_for(*(int *)own, TRUTH_ABOVE * truth_scale); /* another state */
}

void truth_vfork(struct workload *w)
{
    share(w, wait_for_child, open_pair, false);
}

/* ---- ready to run ---- */

static _Atomic bool enough;

static void *compute(void *arg)
{
    struct workload *w = arg;

    workload_be_ordinary();
    w->shared->note[0] = workload_tid();
    while (!enough)
        ;
    return NULL;
}

/* The first thread, of real-time priority, takes the CPU from the other. */
void truth_lose_cpu(struct workload *w)
{
    pthread_t thread;

    pin();
    must(!pthread_create(&thread, NULL, compute, w));
    while (!w->shared->note[0])
        workload_sleep_ms(1);
    for (int i = 0; i < stalls(); i++) {
        uint64_t start;

        workload_sleep_ms(10);
        start = workload_now();
        while (workload_now() - start < (uint64_t)length(i) * MS)
            ;
        workload_end(w, start);
        w->shared->stall[w->shared->stalls - 1].tid = w->shared->note[0];
    }
    workload_sleep_ms(10);
    enough = true;
    pthread_join(thread, NULL);
}

static int wakes[2];

static void *read_wakes(void *arg)
{
    struct workload *w = arg;
    char byte;

    workload_be_ordinary();
    w->shared->note[0] = workload_tid();
    while (read(wakes[0], &byte, 1) == 1 && byte != 'e')
        ;
    return NULL;
}

/* The first thread, of real-time priority, wakes the other and keeps the CPU. */
void truth_wake(struct workload *w)
{
    pthread_t thread;

    pin();
    must(!pipe(wakes) && !pthread_create(&thread, NULL, read_wakes, w));
    for (int i = 0; i < stalls(); i++) {
        uint64_t start;

        do
            workload_sleep_ms(10);
        while (!w->shared->note[0] || !workload_sleeps(w->shared->note[0]));
        start = workload_now();
        must(write(wakes[1], "x", 1) == 1);
        while (workload_now() - start < (uint64_t)length(i) * MS)
            ;
        workload_end(w, start);
        w->shared->stall[w->shared->stalls - 1].tid = w->shared->note[0];
    }
    workload_sleep_ms(10);
    must(write(wakes[1], "e", 1) == 1);
    pthread_join(thread, NULL);
}

/* ---- event loops ---- */

struct event_loop {
    int epoll, pair[2];
};

static void *open_loop(void)
{
    struct event_loop *loop = calloc(1, sizeof(*loop));

    must(loop && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, loop->pair));
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop;
}

static void be_away(struct workload *w, int i, void *own)
{
    struct event_loop *loop = own;
    struct epoll_event event;
    uint64_t start;

    epoll_wait(loop->epoll, &event, 1, i % 4 ? 1 : 30);
    start = workload_now();
    receive_for(loop->pair[0], length(i));
    workload_end(w, start);
    epoll_wait(loop->epoll, &event, 1, 1);
}

void truth_loop(struct workload *w)
{
    share(w, be_away, open_loop, false);
}

/* ---- a heartbeat ---- */

static void beat_once(void)
{
    syscall(SYS_getpgid, 0);
    truth_called(1);
}

static void pause_beat(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();

    (void)own;
    beat_once();
    workload_sleep_ms(length(i));
    beat_once();
    truth_called(0); /* is none */
    workload_end(w, start);
}

void truth_beat(struct workload *w)
{
    share(w, pause_beat, NULL, true);
}

/* ---- functions ---- */

__attribute__((noinline)) long truth_slow(long ms)
{
    workload_sleep_ms((int)ms);
    return ms * 2;
}

__attribute__((noinline)) long truth_called(long ms)
{
    __asm__ volatile("" ::: "memory");
    return ms;
}

static void call(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();

    (void)own;
    truth_slow(length(i));
    workload_end(w, start);
}

void truth_call(struct workload *w)
{
    share(w, call, NULL, false);
}

static void hit(long ms)
{
    truth_called(ms);
    probe(ms);
    syscall(SYS_getpriority, PRIO_PROCESS, ms);
}

__attribute__((noinline)) void truth_hit_above(long ms)
{
    hit(ms);
    __asm__ volatile("" ::: "memory");
}

static void hit_once(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();

    (void)own;
    if (is_long(i))
        truth_hit_above(plain_length(i));
    else
        hit(plain_length(i));
    workload_end(w, start);
}

void truth_hit(struct workload *w)
{
    share(w, hit_once, NULL, false);
}

/* ---- sockets ---- */

static void *connect_pair(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), *pair = calloc(2, sizeof(*pair));
    socklen_t size = sizeof(address);

    must(pair && !bind(listener, (void *)&address, size) && !listen(listener, 1) &&
         !getsockname(listener, (void *)&address, &size));
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(!connect(pair[0], (void *)&address, size));
    pair[1] = accept(listener, NULL, NULL);
    must(pair[1] >= 0);
    close(listener);
    return pair;
}

static void set(int fd, int option, int value)
{
    must(!setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)));
}

static void send_bytes(int fd, size_t n)
{
    char bytes[512] = "";

    must(send(fd, bytes, n, 0) == (ssize_t)n);
}

static void receive_bytes(int fd, size_t n)
{
    char bytes[1024];

    must(recv(fd, bytes, n, MSG_WAITALL) == (ssize_t)n);
}

static void read_late(struct workload *w, int i, void *own)
{
    int *pair = own;
    uint64_t start = workload_now();

    set(pair[0], TCP_NODELAY, 1);
    send_bytes(pair[0], 23);
    workload_sleep_ms(length(i));
    receive_bytes(pair[1], 23);
    workload_end(w, start);
}

void truth_read_late(struct workload *w)
{
    share(w, read_late, connect_pair, true);
}

/* Two small writes: Nagle's algorithm keeps the second until the first is acknowledged, and the peer delays
 * that: 40 ms. Or one write, which goes at once. */
static void write_twice(struct workload *w, int i, void *own)
{
    bool two = is_long(i);
    uint64_t start = workload_now();
    int *pair = own;

    set(pair[1], TCP_QUICKACK, 0);
    if (two)
        send_bytes(pair[0], 211);
    send_bytes(pair[0], 307);
    receive_bytes(pair[1], two ? 518 : 307);
    workload_end(w, start);
    send_bytes(pair[1], 103); /* the reply acknowledges it */
    receive_bytes(pair[0], 103);
}

void truth_write_twice(struct workload *w)
{
    share(w, write_twice, connect_pair, true);
}

/* ---- handlers ---- */

enum { FILTER = 2000 }; /* no more than older kernels take: net.core.optmem_max */

struct crowd {
    struct sockaddr_in all, one;

    int from;
};

/* A filter that computes for long and then refuses the packet. */
static void be_slow(int fd)
{
    static struct sock_filter code[FILTER];
    struct sock_fprog filter = {FILTER, code};

    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0xffffffff);
    for (int i = 1; i < FILTER - 1; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 3);
    code[FILTER - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    must(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)));
}

/* A broadcast to all of them is delivered, and filtered, in one softirq, in the sender's thread. */
static void *open_crowd(void)
{
    static struct crowd one, *c;
    socklen_t size = sizeof(c->all);
    int yes = 1;

    if (c) /* a thread after the other uses it */
        return c;
    c = &one;
    c->all.sin_family = AF_INET;
    for (int i = 0; i < truth_sockets; i++) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
             !bind(fd, (void *)&c->all, size) && !getsockname(fd, (void *)&c->all, &size));
        be_slow(fd);
    }
    c->one = c->all;
    c->one.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* then it is for one of them */
    c->all.sin_addr.s_addr = htonl(INADDR_LOOPBACK | 0xffffff);
    c->from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(!setsockopt(c->from, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)));
    return c;
}

static void send_packet(struct workload *w, int i, void *own)
{
    uint64_t start = workload_now();
    struct crowd *c = own;
    bool many = is_long(i);

    must(sendto(c->from, "x", 1, 0, (void *)(many ? &c->all : &c->one), sizeof(c->one)) == 1);
    if (many)
        workload_end(w, start);
}

void truth_broadcast(struct workload *w)
{
    share(w, send_packet, open_crowd, true);
}

static _Atomic bool disk_done;

static void *spin(void *cpu)
{
    cpu_set_t set;

    workload_be_ordinary();
    CPU_ZERO(&set);
    CPU_SET((int)(intptr_t)cpu, &set);
    must(!sched_setaffinity(0, sizeof(set), &set));
    while (!disk_done)
        ;
    return NULL;
}

/* Writes to the disk, each at once, while a thread computes on each processor: they are interrupted. */
void truth_use_disk(struct workload *w)
{
    const char *folder = getenv("TRUTH_FOLDER");
    char name[256], block[4096] = "";
    pthread_t thread[2];
    int fd, cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;

    snprintf(name, sizeof(name), "%s/st-test-truth-XXXXXX", folder ? folder : "/var/tmp");
    fd = mkstemp(name);
    must(fd >= 0 && !unlink(name));
    for (int i = 0; i < cpus; i++)
        must(!pthread_create(&thread[i], NULL, spin, (void *)(intptr_t)i));
    for (int i = 0; i < 4 * truth_count; i++)
        must(pwrite(fd, block, sizeof(block), i * 4096L) == sizeof(block) && !fdatasync(fd));
    disk_done = true;
    for (int i = 0; i < cpus; i++)
        pthread_join(thread[i], NULL);
    w->shared->note[0] = 1;
}
