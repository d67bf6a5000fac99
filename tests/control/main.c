/* The control for scripts. `control`: prints "ready" once it runs, "none" where it may not; then, for each
 * line on stdin, by how many ns the machine was off since the line before. Ends with stdin. */
#include "control.h"

#include <stdio.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(void)
{
    uint64_t since = now();
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts(control_begin() ? "ready" : "none");
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t to = now();

        printf("%llu\n", (unsigned long long)control_off(since, to));
        since = to;
    }
    control_end();
    return 0;
}
