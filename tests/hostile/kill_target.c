/* Naps for 3 ms in a function of its own, in two threads, until SIGTERM; ends with 7, or with 1 when a nap
 * was cut short. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t over;

static volatile int bad;

static void on_term(int sig)
{
    (void)sig;
    over = 1;
}

__attribute__((noinline)) void nap(void)
{
    struct timespec t = {.tv_nsec = 3000000};

    if (nanosleep(&t, NULL) && !over)
        bad = 1;
}

static void *naps(void *unused)
{
    while (!over)
        nap();
    return unused;
}

int main(void)
{
    struct sigaction end = {.sa_handler = on_term};
    pthread_t other;

    sigaction(SIGTERM, &end, NULL);
    if (pthread_create(&other, NULL, naps, NULL))
        return 2;
    printf("ready\n");
    fflush(stdout);
    naps(NULL);
    pthread_join(other, NULL);
    return bad ? 1 : 7;
}
