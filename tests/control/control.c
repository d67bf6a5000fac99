/* How late the machine itself is. */
#include "control.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CPUS = 256,
    NOTES = 4096,       /* a CPU: a power of two */
    SLEEP_NS = 1000000, /* of each thread */
    NOTED_NS = 50000,   /* less is not late */
    LOOK_NS = 10000000, /* at /proc/stat: its unit */
    LOOKS = 1 << 16     /* ten minutes */
};

/* A sleep that ended late; a look at what was stolen since the machine booted. */
struct note {
    uint64_t from, to, off;
};

struct notes {
    _Atomic uint64_t n;

    struct note *at;

    size_t room;
};

static struct {
    bool runs;

    _Atomic bool stop;

    int cpus;

    pthread_t thread[CPUS + 1];

    struct notes late[CPUS], stolen;
} control;

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t time)
{
    struct timespec t = {.tv_sec = (time_t)(time / 1000000000), .tv_nsec = (long)(time % 1000000000)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
        ;
}

static void note(struct notes *notes, struct note what)
{
    notes->at[notes->n % notes->room] = what;
    notes->n++;
}

static void *sleep_by_the_millisecond(void *ctx)
{
    struct notes *notes = ctx;

    while (!control.stop) {
        uint64_t due = now() + SLEEP_NS, woke;

        sleep_until(due);
        woke = now();
        if (woke - due > NOTED_NS)
            note(notes, (struct note){.from = due - SLEEP_NS, .to = woke, .off = woke - due});
    }
    return NULL;
}

/* What was stolen from the one CPU that lost most since the last look, in ns. `before` is by CPU. */
static uint64_t stolen(unsigned long long *before)
{
    const uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    unsigned long long most = 0, steal;
    FILE *f = fopen("/proc/stat", "re");
    char line[512];
    int cpu;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "cpu%d %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &steal) == 2 && cpu < CPUS) {
            most = steal - before[cpu] > most ? steal - before[cpu] : most;
            before[cpu] = steal;
        }
    if (f)
        fclose(f);
    return most * tick;
}

static void *look_at_steal(void *unused)
{
    static unsigned long long before[CPUS];
    uint64_t last = now();

    (void)unused;
    stolen(before);
    while (!control.stop) {
        struct note what = {.from = last};

        sleep_until(last + LOOK_NS);
        what.off = stolen(before);
        what.to = last = now();
        if (what.off)
            note(&control.stolen, what);
    }
    return NULL;
}

static bool start_on(int cpu, struct notes *notes, pthread_t *thread)
{
    struct sched_param param = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    pthread_attr_t attr;
    cpu_set_t one;
    int rc;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &param);
    rc = pthread_create(thread, &attr, sleep_by_the_millisecond, notes);
    pthread_attr_destroy(&attr);
    return !rc;
}

static bool make_room(struct notes *notes, size_t n)
{
    *notes = (struct notes){.at = calloc(n, sizeof(*notes->at)), .room = n};
    return notes->at;
}

bool control_begin(void)
{
    cpu_set_t mine;

    if (control.runs)
        return true;
    memset(&control, 0, sizeof(control));
    control.runs = true;
    if (sched_getaffinity(0, sizeof(mine), &mine) || !make_room(&control.stolen, LOOKS) ||
        pthread_create(&control.thread[CPUS], NULL, look_at_steal, NULL)) {
        free(control.stolen.at);
        return control.runs = false;
    }
    for (int cpu = 0; cpu < CPUS; cpu++)
        if (CPU_ISSET(cpu, &mine)) {
            struct notes *notes = &control.late[control.cpus];

            if (!make_room(notes, NOTES) || !start_on(cpu, notes, &control.thread[control.cpus])) {
                free(notes->at);
                control_end();
                return false;
            }
            control.cpus++;
        }
    return true;
}

void control_end(void)
{
    if (!control.runs)
        return;
    control.stop = true;
    for (int i = 0; i < control.cpus; i++) {
        pthread_join(control.thread[i], NULL);
        free(control.late[i].at);
    }
    pthread_join(control.thread[CPUS], NULL);
    free(control.stolen.at);
    control.runs = false;
}

static bool overlaps(const struct note *note, uint64_t from, uint64_t to)
{
    return note->from < to && note->to > from;
}

/* The most that is noted between two moments, or all of it together. */
static uint64_t noted(const struct notes *notes, uint64_t from, uint64_t to, bool sum)
{
    uint64_t n = notes->n, first = n > notes->room ? n - notes->room : 0, off = 0;

    if (first && notes->at[first % notes->room].from > from)
        return UINT64_MAX;
    for (uint64_t i = first; i < n; i++) {
        const struct note *note = &notes->at[i % notes->room];

        if (overlaps(note, from, to))
            off = sum ? off + note->off : note->off > off ? note->off : off;
    }
    return off;
}

uint64_t control_off(uint64_t from, uint64_t to)
{
    uint64_t off = control.runs ? noted(&control.stolen, from, to, true) : 0;

    for (int i = 0; control.runs && i < control.cpus; i++) {
        uint64_t late = noted(&control.late[i], from, to, false);

        off = late > off ? late : off;
    }
    return off;
}
