/* Two threads on one CPU hand a byte to each other: each turn is a context switch of either. */
#include "recorder/sources/sample/cost.h"
#include "base/log.h"
#include "recorder/perf/event.h"
#include "recorder/perf/ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 4,
    TURNS = 300,
    RING = 256 * 1024,
    USUAL_TIMER = 2000, /* ns, where they cannot be measured */
    USUAL_SLOW = 500,
    USUAL_MARK = 1500,
    LEAST = 100,
    MOST = 50 * 1000,
};

/* What is measured, in turns. */
enum way { WITHOUT, TIMER, SLOW, MARK, WAYS };

struct pair {
    int there[2], back[2];

    pthread_t partner;

    cpu_set_t own; /* the caller's CPUs before */
};

/* When it ends early, the other one does not wait for its answer. */
static void *answer(void *ctx)
{
    struct pair *p = ctx;
    char byte;

    while (read(p->there[0], &byte, 1) == 1 && write(p->back[1], &byte, 1) == 1)
        ;
    close(p->back[1]);
    p->back[1] = -1;
    return NULL;
}

static void close_pair(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* The partner inherits the caller's only CPU. */
static bool open_pair(struct pair *p)
{
    cpu_set_t here;
    bool made;

    *p = (struct pair){.there = {-1, -1}, .back = {-1, -1}};
    if (sched_getaffinity(0, sizeof(p->own), &p->own))
        return false;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    made = !pipe2(p->there, O_CLOEXEC) && !pipe2(p->back, O_CLOEXEC) &&
           !sched_setaffinity(0, sizeof(here), &here);
    if (made && !pthread_create(&p->partner, NULL, answer, p))
        return true;
    sched_setaffinity(0, sizeof(p->own), &p->own);
    close_pair(p->there);
    close_pair(p->back);
    return false;
}

static void end_pair(struct pair *p)
{
    close(p->there[1]);
    p->there[1] = -1;
    pthread_join(p->partner, NULL);
    sched_setaffinity(0, sizeof(p->own), &p->own);
    close_pair(p->there);
    close_pair(p->back);
}

/* Of both threads: what a switch takes is counted as the time of one of them. */
static uint64_t cpu_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ns a turn; 0: it failed. */
static uint64_t take_turns(const struct pair *p)
{
    uint64_t begun = cpu_time();
    char byte = 0;

    for (int i = 0; i < TURNS; i++)
        if (write(p->there[1], &byte, 1) != 1 || read(p->back[0], &byte, 1) != 1)
            return 0;
    return (cpu_time() - begun) / TURNS;
}

struct probe {
    int fd; /* -1: this user may have no such event */

    struct rec_perf_ring ring;
};

static void open_probe(struct probe *p, const struct perf_event_attr *attr, unsigned slow)
{
    struct perf_event_attr own = *attr;

    own.write_backward = own.inherit = own.enable_on_exec = 0;
    own.disabled = 1;
    if (slow) {
        own.freq = 1;
        own.sample_freq = slow;
    }
    p->fd = rec_perf_event(&own, 0, -1);
    if (p->fd >= 0)
        rec_perf_ring_map(&p->ring, p->fd, RING, NULL);
}

static void close_probe(struct probe *p)
{
    rec_perf_ring_unmap(&p->ring);
    if (p->fd >= 0)
        close(p->fd);
}

static int skip(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    (void)ctx;
    (void)record;
    (void)err;
    return 0;
}

/* The shortest of some tries, ns a turn: what else runs on the machine makes them longer. */
static void measure(const struct pair *pair, struct probe probes[WAYS], uint64_t best[WAYS])
{
    for (int i = 0; i < ROUNDS * WAYS; i++) {
        struct probe *p = &probes[i % WAYS];
        uint64_t time;

        if (p->fd >= 0)
            ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0);
        time = take_turns(pair);
        if (p->fd >= 0)
            ioctl(p->fd, PERF_EVENT_IOC_DISABLE, 0);
        if (p->ring.page)
            rec_perf_ring_drain(&p->ring, skip, NULL, NULL);
        if (time && (!best[i % WAYS] || time < best[i % WAYS]))
            best[i % WAYS] = time;
    }
}

static uint64_t added(const uint64_t best[WAYS], const struct probe probes[WAYS], enum way way,
                      uint64_t usual)
{
    uint64_t cost;

    if (probes[way].fd < 0 || !best[WITHOUT] || best[way] <= best[WITHOUT])
        return best[WITHOUT] && best[way] && probes[way].fd >= 0 ? LEAST : usual;
    cost = best[way] - best[WITHOUT];
    return cost < LEAST ? LEAST : cost > MOST ? usual : cost;
}

struct smp_cost smp_cost_measure(const struct perf_event_attr *sample, unsigned slow,
                                 const struct perf_event_attr *mark)
{
    struct smp_cost cost = {USUAL_TIMER, USUAL_SLOW, USUAL_MARK};
    struct probe probes[WAYS] = {{.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}};
    uint64_t best[WAYS] = {0};
    struct pair pair;

    if (!open_pair(&pair))
        return cost;
    open_probe(&probes[TIMER], sample, 0);
    open_probe(&probes[SLOW], sample, slow);
    open_probe(&probes[MARK], mark, 0);
    measure(&pair, probes, best);
    cost = (struct smp_cost){.timer = added(best, probes, TIMER, USUAL_TIMER),
                             .slow_timer = added(best, probes, SLOW, USUAL_SLOW),
                             .mark = added(best, probes, MARK, USUAL_MARK)};
    for (int i = 0; i < WAYS; i++)
        close_probe(&probes[i]);
    end_pair(&pair);
    st_log_debug("a context switch takes %llu ns more with samples, %llu with %u a second, and %llu for a "
                 "sample there",
                 (unsigned long long)cost.timer, (unsigned long long)cost.slow_timer, slow,
                 (unsigned long long)cost.mark);
    return cost;
}
