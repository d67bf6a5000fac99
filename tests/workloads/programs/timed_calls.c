/* Calls of known functions that take known times, logged by the program itself: to test what samples tell of
 * them. A line a call: NAME START END, in ns of CLOCK_REALTIME; START right before its first statement, END
 * right before its return. No two calls of a function from the same place follow one another: to samples they
 * are one. `timed_calls SECONDS`. */
#include "tree.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct entry {
    const char *name;

    uint64_t start, end;
};

static struct entry entries[100000];

static size_t n;

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static size_t enter(const char *name)
{
    if (n == sizeof(entries) / sizeof(entries[0]))
        exit(2);
    entries[n] = (struct entry){name, now(), 0};
    return n++;
}

static void leave(size_t at)
{
    entries[at].end = now();
}

/* So that nothing is in step with a clock that samples: up to a millisecond more. */
static uint64_t some_more(void)
{
    static uint64_t random = 1;

    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % 1000;
}

OWN void spin(uint64_t us)
{
    size_t at = enter("spin");
    us += some_more();
    while (now() < entries[at].start + us * 1000)
        for (int i = 0; i < 200; i++)
            WORK();
    leave(at);
}

OWN void rest(uint64_t us)
{
    size_t at = enter("rest");
    struct timespec t = {.tv_nsec = (long)us * 1000};

    nanosleep(&t, NULL);
    leave(at);
}

OWN void alpha(void)
{
    size_t at = enter("alpha");

    spin(3000);
    spin(7000);
    leave(at);
}

OWN void beta(void)
{
    size_t at = enter("beta");

    spin(5000);
    rest(6000);
    alpha();
    leave(at);
}

OWN void gamma_(uint64_t depth)
{
    size_t at = enter("gamma_");

    if (depth)
        gamma_(depth - 1);
    else
        spin(4000);
    leave(at);
}

OWN void round_(void)
{
    size_t at = enter("round_");

    alpha();
    rest(2000);
    beta();
    gamma_(4);
    rest(300);
    leave(at);
}

int main(int argc, char **argv)
{
    uint64_t until = now() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000000000;
    size_t at = enter("main");

    while (now() < until) {
        round_();
        round_();
    }
    leave(at);
    for (size_t i = 0; i < n; i++)
        printf("%s %" PRIu64 " %" PRIu64 "\n", entries[i].name, entries[i].start, entries[i].end);
    return 0;
}
