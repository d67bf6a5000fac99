/* The kernel's clock, and this process's own. */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static int64_t offset;

/* A process stays in its time namespace. Where there is no such file there are no such namespaces. */
static void read_offset(void)
{
    FILE *f = fopen("/proc/self/timens_offsets", "re");
    long long s, ns;

    if (f && fscanf(f, "monotonic %lld %lld", &s, &ns) == 2)
        offset = s * 1000000000 + ns;
    if (f)
        fclose(f);
}

uint64_t st_mono_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t st_kernel_ns(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_offset);
    return st_mono_ns() - (uint64_t)offset;
}
