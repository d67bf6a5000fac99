/* `kinds MODE`: one stall of a known kind and of at least 300 ms again and again, until it is ended. A line a
 * stall: TID START LENGTH, in ns: START on CLOCK_REALTIME, LENGTH on CLOCK_MONOTONIC. What a trigger measures
 * of the stall lies within it: it is never longer, on any machine, and what other work adds is in both. */
#include "probe_note.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STALL_MS = 300, GAP_MS = 50 };

static int pair[2], listener;
static struct sockaddr_in address; /* it listens at */

static int64_t now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void spin_ms(int ms)
{
    int64_t end = now(CLOCK_MONOTONIC) + ms * (int64_t)1000000;

    while (now(CLOCK_MONOTONIC) < end)
        ;
}

/* Between two stalls: waits for work that comes at once, so that an event loop comes by. */
static void rest(void)
{
    int64_t end = now(CLOCK_MONOTONIC) + GAP_MS * (int64_t)1000000;

    while (now(CLOCK_MONOTONIC) < end)
        poll(NULL, 0, 1);
}

__attribute__((noinline)) void slow_function(long which)
{
    usleep(STALL_MS * 1000);
    __asm__ volatile("" ::"r"(which)); /* no tail call */
}

__attribute__((noinline)) void beat(void)
{
    __asm__ volatile("");
}

static void sleep_long(void)
{
    slow_function(12);
}

/* Out of a wait for work, and late for the next. */
static void compute_long(void)
{
    poll(NULL, 0, 1);
    spin_ms(STALL_MS);
    poll(NULL, 0, 1);
}

static void leave_unread(void)
{
    char byte = 1;

    if (send(pair[0], &byte, 1, 0) != 1)
        exit(1);
    usleep(STALL_MS * 1000);
    if (recv(pair[1], &byte, 1, 0) != 1)
        exit(1);
}

/* More than the other end takes before it reads: what is over waits for its window. On a connection that is
 * new each time: an old one's window is as large as all that is written. */
static void leave_unsent(void)
{
    static char data[65536];
    int room = 2 * (int)sizeof(data); /* little: it is to be gone soon when it is read at last */
    int from = socket(AF_INET, SOCK_STREAM, 0), to;
    size_t there = 0;
    ssize_t n;

    if (connect(from, (struct sockaddr *)&address, sizeof(address)) ||
        (to = accept(listener, NULL, NULL)) < 0)
        exit(1);
    setsockopt(from, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    while ((n = send(from, data, sizeof(data), MSG_DONTWAIT)) > 0)
        there += (size_t)n;
    usleep(STALL_MS * 1000);
    while (there && (n = recv(to, data, sizeof(data), 0)) > 0)
        there -= (size_t)n;
    if (there)
        exit(1);
    close(from);
    close(to);
}

/* A connection that is made, and accepted late. */
static void leave_unaccepted(void)
{
    int client = socket(AF_INET, SOCK_STREAM, 0), server;

    if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof(address)))
        exit(1);
    usleep(STALL_MS * 1000);
    server = accept(listener, NULL, NULL);
    if (server < 0)
        exit(1);
    close(client);
    close(server);
}

static void stop_beating(void)
{
    beat();
    usleep(STALL_MS * 1000);
    beat();
}

static void hit(void)
{
    probe(3);
    syscall(SYS_getppid);
    sched_yield();
    usleep(STALL_MS * 1000);
}

static void make_pair(void)
{
    socklen_t size = sizeof(address);
    int on = 1;

    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size) ||
        connect(pair[0], (struct sockaddr *)&address, size) || (pair[1] = accept(listener, NULL, NULL)) < 0)
        exit(1);
    setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Packets through the loopback device, each handled in a softirq of this CPU. */
static void send_much(void)
{
    static char data[65536];
    int64_t end = now(CLOCK_MONOTONIC) + STALL_MS * (int64_t)1000000;

    while (now(CLOCK_MONOTONIC) < end)
        if (send(pair[0], data, sizeof(data), 0) <= 0 || recv(pair[1], data, sizeof(data), 0) <= 0)
            exit(1);
}

/* One CPU for this thread and for a child that takes it for as long as a stall; the gap is seen from within.
 */
static void lose_the_cpu(void)
{
    cpu_set_t one;
    int64_t last = now(CLOCK_MONOTONIC), at;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one))
        exit(1);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "hog");
        if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
            _exit(77);
        for (;;) {
            usleep(2 * STALL_MS * 1000);
            spin_ms(STALL_MS);
        }
    }
    for (;;) {
        at = now(CLOCK_MONOTONIC);
        if (at - last > GAP_MS * (int64_t)1000000)
            printf("%d %" PRId64 " %" PRId64 "\n", getpid(), now(CLOCK_REALTIME) - (at - last), at - last);
        last = at;
    }
}

static const struct {
    const char *name;

    void (*stall)(void);
} modes[] = {
    {"sleep", sleep_long},
    {"compute", compute_long},
    {"unread", leave_unread},
    {"silence", stop_beating},
    {"hit", hit},
    {"packets", send_much},
    {"unaccepted", leave_unaccepted},
    {"unsent", leave_unsent},
};

int main(int argc, char **argv)
{
    void (*stall)(void) = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (!strcmp(argv[1], modes[i].name))
            stall = modes[i].stall;
    if (argc == 2 && !strcmp(argv[1], "hog"))
        lose_the_cpu();
    if (!stall)
        return 2;
    make_pair();
    for (;;) {
        int64_t wall, start;

        rest();
        wall = now(CLOCK_REALTIME);
        start = now(CLOCK_MONOTONIC);
        stall();
        printf("%d %" PRId64 " %" PRId64 "\n", getpid(), wall, now(CLOCK_MONOTONIC) - start);
    }
}
