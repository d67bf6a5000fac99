/* What the arm tests record: a program that calls known functions and waits in known ways.
 *
 * Usage: arm_target MODE [MS [TIMES]]
 * - idle: sleeps for MS again and again (an idle wait: no stall)
 * - block: reads from a socket into which another thread writes after MS (a stall of MS), TIMES times, then
 * idles
 * - hang: reads from a socket into which nobody writes
 * - end: calls its functions TIMES times, sleeping MS in between, and exits with status 7
 * - rounds: TIMES times waits of MS, new threads, a child that execs, and a signal, with a line about each;
 * exits with status 9
 * - jit: calls a function that it wrote into anonymous memory and named in /tmp/perf-PID.map, every MS */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static useconds_t pause_us = 10000;
static volatile unsigned sum;

__attribute__((noinline)) void target_leaf(unsigned x)
{
    sum += x;
}

__attribute__((noinline)) void target_work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        target_leaf(i);
}

static void *write_later(void *unused)
{
    for (;;) {
        char go;

        if (read(ends[0], &go, 1) != 1)
            return unused;
        usleep(pause_us);
        if (write(ends[0], "w", 1) != 1)
            return unused;
    }
}

__attribute__((noinline)) void target_block(void)
{
    char byte;

    if (write(ends[1], "g", 1) != 1 || read(ends[1], &byte, 1) != 1)
        exit(1);
}

static void idle(void)
{
    for (;;) {
        target_work(3);
        usleep(pause_us);
    }
}

static void block(unsigned times)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, write_later, NULL))
        exit(1);
    for (unsigned i = 0; i < times; i++) {
        target_work(5);
        target_block();
        usleep(100000);
    }
    idle();
}

static void hang(void)
{
    char byte;

    target_work(5);
    if (read(ends[0], &byte, 1) == 1)
        exit(1);
}

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
    signals += signal == SIGUSR1;
}

static void *count_thread(void *count)
{
    __atomic_fetch_add((unsigned *)count, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static unsigned run_threads(void)
{
    pthread_t threads[4];
    unsigned count = 0;

    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, count_thread, &count))
            exit(1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return count;
}

/* The exit status of this program, run anew. */
static int run_child(void)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        execl("/proc/self/exe", "arm_target", "end", "1", "1", (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* How many waits with a time-out ended in another way than by it. */
static int wait_for_nothing(void)
{
    struct timespec t = {.tv_nsec = pause_us * 1000l};
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    struct timeval v = {.tv_usec = pause_us};
    struct epoll_event event;
    int ep = epoll_create1(0), ms = (int)pause_us / 1000, bad;
    char byte;

    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &v, sizeof(v));
    bad = epoll_wait(ep, &event, 1, ms) != 0;
    bad += poll(&p, 1, ms) != 0;
    bad += nanosleep(&t, NULL) != 0;
    bad += recv(ends[0], &byte, 1, 0) >= 0 || errno != EAGAIN;
    close(ep);
    return bad;
}

static void rounds(unsigned times)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};

    sigaction(SIGUSR1, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned i = 0; i < times; i++) {
        int bad = wait_for_nothing();
        unsigned threads = run_threads();
        int status = run_child();

        raise(SIGUSR1);
        printf("round %u: %d bad waits, %u threads, child's status 0x%x, %d signals\n", i, bad, threads,
               (unsigned)status, (int)signals);
    }
    exit(9);
}

/* As JIT compilers do for perf. */
static void name_jit(void *at)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    f = fopen(path, "w");
    if (!f)
        exit(1);
    fprintf(f, "%lx 4 jitted_successor\n", (unsigned long)at);
    fclose(f);
}

static void jit(void)
{
    static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea eax, [rdi + 1]; ret */
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned (*function)(unsigned);

    if (at == MAP_FAILED)
        exit(1);
    memcpy(at, code, sizeof(code));
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    function = (unsigned (*)(unsigned))(uintptr_t)at;
    name_jit(at);
    printf("jit at %p\n", (void *)at);
    fflush(stdout);
    for (;;) {
        sum += function(sum);
        usleep(pause_us);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "idle";
    unsigned times = argc > 3 ? (unsigned)atoi(argv[3]) : 1;

    if (argc > 2)
        pause_us = (useconds_t)atoi(argv[2]) * 1000;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    if (!strcmp(mode, "block"))
        block(times);
    else if (!strcmp(mode, "hang"))
        hang();
    else if (!strcmp(mode, "rounds"))
        rounds(times);
    else if (!strcmp(mode, "jit"))
        jit();
    else if (!strcmp(mode, "end")) {
        for (unsigned i = 0; i < times; i++) {
            target_work(2);
            usleep(pause_us);
        }
        return 7;
    }
    idle();
}
