/* Naps for 3 ms in a function of its own, in two threads, until SIGTERM; ends with 7, or with 1 when a nap
 * was cut short. It has a page of code that is in no file, for which names may be written down. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
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
    unsigned char *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t other;

    if (code == MAP_FAILED)
        return 2;
    *code = 0xc3; /* ret: a page that was never touched has nothing to copy */
    sigaction(SIGTERM, &end, NULL);
    if (pthread_create(&other, NULL, naps, NULL))
        return 2;
    printf("ready\n");
    fflush(stdout);
    naps(NULL);
    pthread_join(other, NULL);
    return bad ? 1 : 7;
}
