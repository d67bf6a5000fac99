// quiet BUSY [MS]: BUSY + 1 threads. One is quiet: it calls tick() and tock() in turn, 1500 times in all,
// waits idly for a second and then stalls: MS (40) in a read() of a pipe. All others, the first thread among
// them, call spin() by a pointer (so that each call takes room in a trace) all the time. Runs until SIGUSR1
// has begun this, the stall is over, and somebody ends it.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NI __attribute__((noinline))

static volatile int sink, begin, waiting;
static int pipe_fds[2];

NI int spin(int x)
{
    return sink += x;
}

NI int tick(int x)
{
    return sink + x;
}

NI int tock(int x)
{
    return sink - x;
}

static int (*volatile by_pointer)(int) = spin;

static void on_signal(int signal)
{
    begin = signal;
}

static void *busy(void *arg)
{
    for (;;)
        by_pointer((int)(long)arg);
    return NULL;
}

static void *be_quiet(void *arg)
{
    char byte;

    while (!begin)
        poll(NULL, 0, 10);
    for (int i = 0; i < 1500; i++)
        i & 1 ? tock(i) : tick(i);
    poll(NULL, 0, 300);
    waiting = 1;
    if (read(pipe_fds[0], &byte, 1) != 1)
        exit(1);
    for (;;)
        pause();
    return arg;
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 7, stall = argc > 2 ? atol(argv[2]) : 40;
    pthread_t t;

    signal(SIGUSR1, on_signal);
    /* Who watches comes first. */
    if (nice(19) < 0 || pipe(pipe_fds) || pthread_create(&t, NULL, be_quiet, NULL))
        return 1;
    for (long i = 1; i < n; i++)
        if (pthread_create(&t, NULL, busy, (void *)i))
            return 1;
    puts("ready");
    fflush(stdout);
    for (long since = 0;;) {
        by_pointer(1);
        if (waiting == 1 && !since)
            since = now_ms();
        if (since && waiting == 1 && now_ms() - since >= stall) {
            waiting = 2;
            if (write(pipe_fds[1], "", 1) != 1)
                return 1;
        }
    }
}
