// threads N [K]: K threads (default 3) call work() N times each, or until SIGTERM if N is 0; the first thread
// then forks a child that executes the same program with one thread, and waits for it. Every thread, the
// child and its new image make calls of their own; those to the clock lead into the vdso.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))

static int rounds;
static volatile sig_atomic_t ended;

static void end(int signal)
{
    ended = signal;
}

NI int leaf(int x)
{
    return x * 3 + 1;
}

NI int work(int x)
{
    return leaf(x) + leaf(x + 1);
}

static void *body(void *arg)
{
    long s = (long)arg;

    for (int i = 0; rounds ? i < rounds : !ended; i++)
        s += work((int)s);
    return (void *)s;
}

NI int stamp(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_MONOTONIC, &t);
}

NI int in_child(void)
{
    return work(1);
}

static int run_child(const char *self)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        if (in_child() == 0)
            _exit(9);
        execl(self, self, "5", "1", (char *)NULL);
        _exit(8);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return status;
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 3;
    pthread_t t[64];

    rounds = argc > 1 ? atoi(argv[1]) : 10;
    if (threads > 64 || signal(SIGTERM, end) == SIG_ERR)
        return 2;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, body, (void *)i))
            return 3;
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    if (stamp())
        return 4;
    return threads > 1 ? run_child(argv[0]) != 0 : 0;
}
