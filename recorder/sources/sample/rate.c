/* How often to sample: as often as costs a busy thread one part in a hundred. What a sample costs depends on
 * the machine (in a virtual one an interrupt is dear), so it is measured: the same work with samples and
 * without, in turns, and the shortest time of each, as what else runs on the machine makes it longer, and by
 * more than samples do; and at a rate at which they cost a good part of the time, so that they show. */
#include "base/log.h"
#include "recorder/perf/event.h"
#include "recorder/perf/ring.h"
#include "recorder/sources/sample/state.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 5,
    PAIRS = 4,
    DEEP = 24,          /* frames below the work */
    WORK = 1000 * 1000, /* turns of a loop: some milliseconds */
    RING = 256 * 1024,
    PERIOD = 100 * 1000, /* ns of the CPU's clock, */
    CYCLES = 300 * 1000, /* or of its cycles */
    LEAST_COST = 1000,   /* ns: what is less was not measured well */
    MOST_COST = 100 * 1000,
    USUAL_COST = 10 * 1000, /* where it cannot be measured */
};

unsigned smp_rate_most(void)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
    unsigned most = 100000;

    if (f && fscanf(f, "%u", &most) != 1)
        most = 100000;
    if (f)
        fclose(f);
    return most;
}

static uint64_t cpu_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The calls are not to be made into a loop. */
__attribute__((noinline)) static uint64_t work(unsigned depth)
{
    volatile uint64_t sum = 0;

    if (depth) {
        sum = work(depth - 1);
        return sum + depth;
    }
    for (int i = 0; i < WORK; i++)
        sum += (uint64_t)i;
    return sum;
}

static uint64_t timed_work(void)
{
    uint64_t begun = cpu_time();

    work(DEEP);
    return cpu_time() - begun;
}

static int count(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    (void)err;
    *(unsigned *)ctx += record->type == PERF_RECORD_SAMPLE;
    return 0;
}

/* What one sample costs, ns; 0 or less: not to be found out. */
static int64_t measure_once(int fd, struct rec_perf_ring *ring)
{
    int64_t without = INT64_MAX, with = INT64_MAX, samples = 0;

    timed_work();
    for (int i = 0; i < PAIRS; i++) {
        int64_t time = (int64_t)timed_work();
        unsigned n = 0;

        if (time < without)
            without = time;
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
        time = (int64_t)timed_work();
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        rec_perf_ring_drain(ring, count, &n, NULL);
        if (n && time < with) {
            with = time;
            samples = n;
        }
    }
    return samples ? (with - without) / samples : 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The median: a disturbed measurement can tell anything. */
static int64_t measure(int fd, struct rec_perf_ring *ring)
{
    int64_t costs[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        costs[i] = measure_once(fd, ring);
    qsort(costs, ROUNDS, sizeof(costs[0]), by_value);
    return costs[ROUNDS / 2];
}

unsigned smp_rate_default(const struct perf_event_attr *attr)
{
    struct perf_event_attr own = *attr;
    struct rec_perf_ring ring = {0};
    int64_t cost = 0;
    unsigned rate, most = smp_rate_most();
    int fd;

    own.write_backward = own.inherit = own.enable_on_exec = own.freq = 0;
    own.sample_period = own.type == PERF_TYPE_HARDWARE ? CYCLES : PERIOD;
    fd = rec_perf_event(&own, 0, -1);
    if (fd >= 0 && !rec_perf_ring_map(&ring, fd, RING, NULL))
        cost = measure(fd, &ring);
    rec_perf_ring_unmap(&ring);
    if (fd >= 0)
        close(fd);
    st_log_debug("a sample takes %lld ns", (long long)cost);
    if (cost <= 0)
        cost = USUAL_COST;
    cost = cost < LEAST_COST ? LEAST_COST : cost > MOST_COST ? MOST_COST : cost;
    rate = (unsigned)(1000000000 / 100 / cost);
    rate = rate > most / 2 ? most / 2 : rate;
    /* Nothing that happens a round number of times a second is to keep step with it. */
    return rate < 100 ? rate : rate / 100 * 100 - 1;
}
