/* One kind of perf event on many threads and CPUs. */
#include "recorder/perf/event_group.h"
#include "recorder/perf/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MOST_PAST = 65536 };

static int open_ring(struct rec_group *group, int cpu, size_t bytes, size_t wake, struct st_error *err)
{
    struct rec_group_ring r = {.cpu = cpu};
    struct perf_event_attr attr;
    int rc;

    rec_perf_dummy(&attr);
    attr.use_clockid = group->attr.use_clockid; /* of one ring all events have one clock */
    attr.clockid = group->attr.clockid;
    attr.wakeup_watermark = (uint32_t)wake;
    r.anchor = rec_perf_event(&attr, 0, cpu);
    if (r.anchor < 0)
        return rec_perf_refused("watch this process itself", err);
    rc = rec_perf_ring_map(&r.ring, r.anchor, bytes, err);
    if (!rc && st_vec_push(&group->rings, r)) {
        rec_perf_ring_unmap(&r.ring);
        rc = st_nomem(err, "the rings of perf events");
    }
    if (rc)
        close(r.anchor);
    return rc;
}

int rec_group_open(struct rec_group *group, const struct perf_event_attr *attr, const rec_cpu_list *cpus,
                   size_t bytes, size_t wake, struct st_error *err)
{
    int rc = 0;

    *group = (struct rec_group){.attr = *attr};
    for (size_t i = 0; !rc && i < cpus->n; i++)
        rc = open_ring(group, cpus->at[i], bytes, wake, err);
    if (rc)
        rec_group_close(group, -1);
    return rc;
}

static int add_on_cpu(struct rec_group *group, const struct rec_group_ring *ring, pid_t tid, const char *what,
                      struct st_error *err)
{
    struct rec_group_event e = {.tid = tid, .fd = rec_perf_event(&group->attr, tid, ring->cpu)};
    int rc;

    if (e.fd < 0)
        return errno == ESRCH ? 1 : rec_perf_refused(what, err);
    rc = rec_perf_id(e.fd, &e.id, err);
    if (!rc && ioctl(e.fd, PERF_EVENT_IOC_SET_OUTPUT, ring->anchor))
        rc = st_fail_errno(err, ST_EFAIL, "cannot direct perf events into a ring");
    if (!rc && st_vec_push(&group->events, e))
        rc = st_nomem(err, "the list of perf events");
    if (rc)
        close(e.fd);
    return rc;
}

int rec_group_add(struct rec_group *group, pid_t tid, const char *what, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < group->rings.n; i++)
        rc = add_on_cpu(group, &group->rings.at[i], tid, what, err);
    return rc < 0 ? rc : 0;
}

void rec_group_remove(struct rec_group *group, pid_t tid)
{
    size_t kept = 0;

    for (size_t i = 0; i < group->events.n; i++) {
        if (group->events.at[i].tid == tid)
            close(group->events.at[i].fd);
        else
            group->events.at[kept++] = group->events.at[i];
    }
    group->events.n = kept;
}

/* Of a long recording the oldest ids are given up: so are the records, which have no endless room. */
static void keep_id(struct rec_group *group, uint64_t id)
{
    if (group->past.n == MOST_PAST)
        memmove(group->past.at, group->past.at + MOST_PAST / 2, (group->past.n /= 2) * sizeof(id));
    (void)!st_vec_push(&group->past, id);
}

void rec_group_drop_ended(struct rec_group *group)
{
    size_t kept = 0;

    for (size_t i = 0; i < group->events.n; i++) {
        if (!rec_perf_ended(group->events.at[i].fd)) {
            group->events.at[kept++] = group->events.at[i];
            continue;
        }
        close(group->events.at[i].fd);
        keep_id(group, group->events.at[i].id);
    }
    group->events.n = kept;
}

int rec_group_drain(struct rec_group *group, rec_perf_record_fn *fn, void *ctx, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < group->rings.n; i++)
        rc = rec_perf_ring_drain(&group->rings.at[i].ring, fn, ctx, err);
    return rc;
}

int rec_group_watch(struct rec_group *group, int loop, int (*ready)(void *ctx, struct st_error *err),
                    void *ctx, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < group->rings.n; i++) {
        struct rec_group_ring *r = &group->rings.at[i];

        r->watch = (struct rec_watch){.fd = r->anchor, .ready = ready, .ctx = ctx};
        rc = rec_loop_add(loop, &r->watch, err);
    }
    return rc;
}

void rec_group_close(struct rec_group *group, int loop)
{
    for (size_t i = 0; i < group->events.n; i++)
        close(group->events.at[i].fd);
    for (size_t i = 0; i < group->rings.n; i++) {
        struct rec_group_ring *r = &group->rings.at[i];

        if (loop >= 0 && r->watch.ready)
            rec_loop_remove(loop, &r->watch);
        rec_perf_ring_unmap(&r->ring);
        close(r->anchor);
    }
    st_vec_free(&group->events);
    st_vec_free(&group->past);
    st_vec_free(&group->rings);
}
