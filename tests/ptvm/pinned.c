// pinned N: threads of which each has its CPU and its own function and system call, and makes N of them in
// turns with the others there. Three take CPU 0 from each other, one is alone on the last. Each says what it
// did: "TID FUNCTION CALLS".
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))

static int rounds;

static pthread_barrier_t begin;

static volatile int sum;

NI void first_work(void)
{
    sum++;
}

NI void second_work(void)
{
    sum += 2;
}

NI void third_work(void)
{
    sum += 3;
}

NI void lonely_work(void)
{
    sum += 4;
}

static const struct kind {
    const char *function, *call;

    void (*work)(void);

    long number;

    int last; // of the CPUs, else the first
} kinds[] = {{"first_work", "__x64_sys_umask", first_work, SYS_umask, 0},
             {"second_work", "__x64_sys_getpgid", second_work, SYS_getpgid, 0},
             {"third_work", "__x64_sys_getsid", third_work, SYS_getsid, 0},
             {"lonely_work", "__x64_sys_getpriority", lonely_work, SYS_getpriority, 1}};

static void *run(void *of)
{
    const struct kind *kind = of;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(kind->last ? sysconf(_SC_NPROCESSORS_ONLN) - 1 : 0, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        abort();
    pthread_barrier_wait(&begin);
    for (int i = 0; i < rounds; i++) {
        kind->work();
        syscall(kind->number, 0, 0);
        sched_yield();
    }
    printf("%ld %s %d\n%ld %s %d\n", (long)gettid(), kind->function, rounds, (long)gettid(), kind->call,
           rounds);
    return NULL;
}

int main(int argc, char **argv)
{
    enum { N = sizeof(kinds) / sizeof(kinds[0]) };
    pthread_t threads[N];

    rounds = argc > 1 ? atoi(argv[1]) : 100;
    pthread_barrier_init(&begin, NULL, N);
    for (int i = 0; i < N; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)&kinds[i]))
            abort();
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
