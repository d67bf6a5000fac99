/* Threads that wait in system calls which fail with EINTR when something wakes them. Prints "ready PID", then
 * a line for each wait that ended otherwise than it does when nobody looks on. SIGTERM ends it; its status is
 * 7 when no line was printed. It has the probe st_test:beat, which one of the threads passes with 1.
 *
 *   waits [MS]    each wait is so long (default 5) */
#include "../workloads/probe_note.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static long bad;
static int ms = 5;

static void on_term(int sig)
{
    (void)sig;
    over = 1;
}

static void tell(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    fflush(stdout);
    __atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
}

static void *poller(void *unused)
{
    int e = epoll_create1(0);
    struct epoll_event event;

    (void)unused;
    while (!over)
        if (epoll_wait(e, &event, 1, ms) < 0)
            tell("epoll_wait");
    return NULL;
}

static void *sleeper(void *unused)
{
    (void)unused;
    while (!over)
        if (usleep((unsigned)ms * 1000))
            tell("usleep");
    return NULL;
}

/* A socket with a time-out of its own. */
static void *receiver(void *unused)
{
    const struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    int pair[2];
    char c;

    (void)unused;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
        exit(1);
    while (!over)
        if (recv(pair[0], &c, 1, 0) >= 0 || errno != EAGAIN)
            tell("recv");
    return NULL;
}

static void *taker(void *unused)
{
    struct timespec t;
    sem_t s;

    (void)unused;
    sem_init(&s, 0, 0);
    while (!over) {
        probe(1);
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += ms * 1000000L;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        if (sem_timedwait(&s, &t) == 0 || errno != ETIMEDOUT)
            tell("sem_timedwait");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    void *(*const kinds[])(void *) = {poller, sleeper, receiver, taker};
    pthread_t threads[4];
    sigset_t all, before;

    if (argc > 1)
        ms = atoi(argv[1]);
    signal(SIGTERM, on_term);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, kinds[i], NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (!over)
        pause();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return bad ? 8 : 7;
}
