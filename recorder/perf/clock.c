/* The perf clock, by the time of a COMM record that naming our own thread anew makes. */
#include "recorder/perf/clock.h"
#include "base/clock.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"

#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

int rec_clock_open(struct rec_clock *clock, struct st_error *err)
{
    struct perf_event_attr attr;
    int rc;

    rec_perf_dummy(&attr);
    attr.comm = 1;
    attr.wakeup_watermark = 1u << 30;
    *clock = (struct rec_clock){0};
    clock->fd = rec_perf_event(&attr, 0, -1);
    if (clock->fd < 0)
        return rec_perf_refused("watch this process itself", err);
    rc = rec_perf_ring_map(&clock->ring, clock->fd, (size_t)sysconf(_SC_PAGESIZE), err);
    if (rc)
        rec_clock_close(clock);
    return rc;
}

int rec_clock_open_as(struct rec_clock *clock, bool monotonic, struct st_error *err)
{
    if (!monotonic)
        return rec_clock_open(clock, err);
    *clock = (struct rec_clock){.monotonic = true, .fd = -1};
    return 0;
}

static int take_time(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    (void)err;
    if (record->type == PERF_RECORD_COMM)
        *(uint64_t *)ctx = rec_record_time(record);
    return 0;
}

int rec_clock_now(struct rec_clock *clock, uint64_t *ns, struct st_error *err)
{
    uint64_t time = 0;
    char name[16];
    int rc;

    if (clock->monotonic) {
        *ns = st_kernel_ns();
        return 0;
    }
    if (prctl(PR_GET_NAME, name) || prctl(PR_SET_NAME, name))
        return st_fail_errno(err, ST_EFAIL, "cannot read the perf clock");
    rc = rec_perf_ring_drain(&clock->ring, take_time, &time, err);
    if (rc)
        return rc;
    if (!time)
        return st_fail(err, ST_EFAIL, "cannot read the perf clock: the kernel wrote no record");
    *ns = time;
    return 0;
}

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int rec_clock_moment(struct rec_clock *clock, struct rec_moment *moment, struct st_error *err)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 5; i++) {
        int64_t before = read_clock(CLOCK_MONOTONIC), after, wall;
        uint64_t perf;
        int rc = rec_clock_now(clock, &perf, err);

        if (rc)
            return rc;
        wall = read_clock(CLOCK_REALTIME);
        after = read_clock(CLOCK_MONOTONIC);
        if (after - before >= best)
            continue;
        best = after - before;
        moment->perf = perf;
        moment->mono = before + best / 2;
        moment->wall = wall - best / 2;
    }
    return 0;
}

void rec_clock_close(struct rec_clock *clock)
{
    rec_perf_ring_unmap(&clock->ring);
    if (clock->fd >= 0)
        close(clock->fd);
    clock->fd = -1;
}
