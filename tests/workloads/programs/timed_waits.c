/* Waits of known lengths in read(2), each asked of a child that sleeps for so long: to test what samples tell
 * of them. `timed_waits N`: a line a call of ask(), NAME START END SWITCHES: what it read in took from START
 * to END, in ns of CLOCK_REALTIME, and the thread gave its CPU away so often in it. */
#include "tree.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LONG_US = 34000 };

struct wait {
    uint64_t start, end;

    long switches;
};

static int to_child[2], from_child[2];

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static long switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

OWN void answer_all(void)
{
    useconds_t us;
    char c = 0;

    while (read(to_child[0], &us, sizeof(us)) == sizeof(us)) {
        usleep(us);
        if (write(from_child[1], &c, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

/* The reads of nearly all calls come from the same place, and so do the calls. */
OWN void ask(useconds_t us, struct wait *w)
{
    char c;

    if (write(to_child[1], &us, sizeof(us)) != sizeof(us))
        exit(1);
    w->switches = switches();
    w->start = now();
    if (read(from_child[0], &c, 1) != 1)
        exit(1);
    w->end = now();
    w->switches = switches() - w->switches;
    if (us == LONG_US)
        WORK();
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    struct wait *waits = calloc(n, sizeof(*waits));
    uint64_t random = 1;

    if (!waits || pipe(to_child) || pipe(from_child))
        return 1;
    if (!fork()) {
        close(to_child[1]);
        answer_all();
    }
    for (size_t i = 0; i < n; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        ask(i == n / 2 ? LONG_US : 200 + (random >> 33) % 1800, &waits[i]);
    }
    for (size_t i = 0; i < n; i++)
        printf("read %" PRIu64 " %" PRIu64 " %ld\n", waits[i].start, waits[i].end, waits[i].switches);
    return 0;
}
