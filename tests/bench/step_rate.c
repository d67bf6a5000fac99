/* The step rate of the source `step` beside that of a bare loop of PTRACE_SINGLESTEP, wait and
 * PTRACE_GETREGS, taken in turns on the same program. */
#include "recorder/sources/step/step.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 7,
    ROUND_MS = 700,
};

static const double GOAL = 0.7;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ------------------------------------------------------------------ */
/* The program: calls, returns, loops and comparisons, as programs have them.  */

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static __attribute__((noinline)) unsigned hash(const char *text)
{
    unsigned h = 5381;

    while (*text)
        h = h * 33 + (unsigned char)*text++;
    return h;
}

static void program(void)
{
    int numbers[100];
    char text[64];

    for (unsigned round = 0;; round++) {
        for (int i = 0; i < 100; i++) {
            snprintf(text, sizeof(text), "number %u of %d", round, i);
            numbers[i] = (int)hash(text);
        }
        qsort(numbers, 100, sizeof(numbers[0]), compare);
    }
}

static pid_t start_program(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    program();
    _exit(0);
}

static void end_program(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ------------------------------------------------------------------ */

static double bare_rate(void)
{
    pid_t pid = start_program();
    struct user_regs_struct regs;
    double begin, end;
    unsigned long n = 0;
    int status;

    if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
        waitpid(pid, &status, __WALL) != pid)
        return -1;
    begin = now();
    end = begin + ROUND_MS / 1e3;
    do {
        for (int i = 0; i < 100; i++, n++) {
            ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
            waitpid(pid, &status, __WALL);
            ptrace(PTRACE_GETREGS, pid, 0, &regs);
        }
    } while (now() < end);
    end = now();
    end_program(pid);
    return (double)n / (end - begin);
}

static double our_rate(void)
{
    const struct rec_source_ops *ops = &rec_source_step;
    pid_t pid = start_program();
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = &pid, .npids = 1};
    struct rec_source_config config = {.target = &target};
    struct rec_source *source;
    struct st_error err = {0};
    double begin, rate;
    uint64_t n;

    if (ops->open(&config, &source, &err) || ops->start(source, &err)) {
        fprintf(stderr, "step_rate: %s\n", err.text);
        end_program(pid);
        return -1;
    }
    usleep(50000); /* the code is decoded */
    begin = now();
    n = step_count(source);
    usleep(ROUND_MS * 1000);
    rate = (double)(step_count(source) - n) / (now() - begin);
    ops->close(source);
    end_program(pid);
    return rate;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), by_value);
    return values[ROUNDS / 2];
}

int main(void)
{
    double bare[ROUNDS], ours[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = bare_rate();
        ours[i] = our_rate();
        if (bare[i] <= 0 || ours[i] <= 0)
            return 1;
        ratio[i] = ours[i] / bare[i];
    }
    printf("step_rate_bare %.0f steps/s vs nothing: PTRACE_SINGLESTEP, wait, PTRACE_GETREGS\n", median(bare));
    printf("step_rate %.0f steps/s vs the bare loop\n", median(ours));
    printf("step_rate_ratio %.2f x vs the bare loop (goal: at least %.1f)\n", median(ratio), GOAL);
    return median(ratio) < GOAL;
}
