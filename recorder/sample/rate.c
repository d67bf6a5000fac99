/* How often to sample: as often as costs a busy thread one part in a hundred. What a sample costs depends on
 * the machine (in a virtual one an interrupt is dear), so it is measured: the same work with samples and
 * without, several times, the least of each. */
#include "base/log.h"
#include "recorder/perf_event.h"
#include "recorder/perf_ring.h"
#include "recorder/sample/state.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PAIRS = 6,
    DEEP = 24,         /* frames below the work */
    WORK = 400 * 1000, /* turns of a loop: about a millisecond */
    RING = 256 * 1024,
    LEAST_COST = 1000, /* ns: what is less was not measured well */
    MOST_COST = 40 * 1000,
    USUAL_COST = 2500, /* where it cannot be measured */
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

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int count(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    (void)err;
    *(unsigned *)ctx += record->type == PERF_RECORD_SAMPLE;
    return 0;
}

/* What one sample costs, ns; 0: not to be found out. */
static uint64_t measure(int fd, struct rec_perf_ring *ring)
{
    uint64_t without = UINT64_MAX, with = UINT64_MAX;
    unsigned samples = 0, most = 0;

    timed_work();
    for (int i = 0; i < PAIRS; i++) {
        without = least(without, timed_work());
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
        with = least(with, timed_work());
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        samples = 0;
        rec_perf_ring_drain(ring, count, &samples, NULL);
        most = samples > most ? samples : most;
    }
    return most && with > without ? (with - without) / most : 0;
}

unsigned smp_rate_default(const struct perf_event_attr *attr)
{
    struct perf_event_attr own = *attr;
    struct rec_perf_ring ring = {0};
    uint64_t cost = 0;
    unsigned rate, most = smp_rate_most();
    int fd;

    own.write_backward = own.inherit = own.enable_on_exec = own.freq = 0;
    own.sample_period = own.type == PERF_TYPE_HARDWARE ? 150000 : 50000; /* some twenty thousand a second */
    fd = rec_perf_event(&own, 0, -1);
    if (fd >= 0 && !rec_perf_ring_map(&ring, fd, RING, NULL))
        cost = measure(fd, &ring);
    rec_perf_ring_unmap(&ring);
    if (fd >= 0)
        close(fd);
    st_log_debug("a sample takes %llu ns", (unsigned long long)cost);
    if (!cost)
        cost = USUAL_COST;
    cost = cost < LEAST_COST ? LEAST_COST : cost > MOST_COST ? MOST_COST : cost;
    rate = (unsigned)(1000000000 / 100 / cost);
    rate = rate > most / 2 ? most / 2 : rate;
    /* Nothing that happens a round number of times a second is to keep step with it. */
    return rate < 100 ? rate : rate / 100 * 100 - 1;
}
