/* Two threads that hand a byte to and fro, off their CPUs some milliseconds each time, or none at all.
 *
 *   sleeper MS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ms, there[2], back[2];

static void pass(int from, int to)
{
    char c = 0;

    for (;;) {
        if (read(from, &c, 1) != 1)
            exit(1);
        if (ms)
            usleep((unsigned)ms * 1000);
        if (write(to, &c, 1) != 1)
            exit(1);
    }
}

static void *other(void *unused)
{
    pass(there[0], back[1]);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;

    ms = argc > 1 ? atoi(argv[1]) : 0;
    if (pipe(there) || pipe(back) || pthread_create(&t, NULL, other, NULL) || write(back[1], "", 1) != 1)
        return 1;
    printf("ready %d\n", getpid());
    fflush(stdout);
    pass(back[0], there[1]);
}
