/* mark_target MODE: does what marks tell of.
 * beats: a probe, a line and a gathered line on the standard error, every 10 ms.
 * flood LINES: so many lines on the standard error, as fast as it can, then a sleep of 200 ms; again and
 * again. */
#include "../workloads/probe_note.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void log_line(long i)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "request %ld \033[31mserved\n", i);

    if (write(STDERR_FILENO, line, (size_t)n) != n)
        exit(1);
}

static void log_gathered(long i)
{
    char line[64];
    struct iovec parts[2] = {{line, 0}, {line, 0}};

    parts[1].iov_len = (size_t)snprintf(line, sizeof(line), "gathered %ld\n", i);
    if (writev(STDERR_FILENO, parts, 2) < 0 || write(STDOUT_FILENO, "out\n", 4) != 4)
        exit(1);
}

static void beats(void)
{
    for (long i = 0;; i++) {
        probe(i);
        log_line(i);
        log_gathered(i);
        poll(NULL, 0, 10);
    }
}

static void flood(long lines)
{
    const struct timespec rest = {.tv_nsec = 200000000};

    for (;;) {
        for (long i = 1; i <= lines; i++)
            log_line(i);
        nanosleep(&rest, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "beats"))
        beats();
    if (argc > 2 && !strcmp(argv[1], "flood"))
        flood(atol(argv[2]));
    fprintf(stderr, "usage: mark_target beats | flood LINES\n");
    return 2;
}
