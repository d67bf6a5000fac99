/* Which events and rings a target takes. One ring a thread keeps the thread's own history, however busy its
 * siblings are; but a thread that is born later gets its ring a moment late, and an event that children
 * inherit has one ring a CPU at the least (with cpu -1 the kernel lets it be opened and not mapped). */
#include "base/clock.h"
#include "base/log.h"
#include "base/target_threads.h"
#include "base/units.h"
#include "recorder/perf/event.h"
#include "recorder/sources/intel_pt/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int pt_event_switch(const struct pt_event *event, bool on, struct st_error *err)
{
    if (on && !pt_pause_lift(&event->pause))
        st_log_debug("thread %d stays paused", event->tid);
    if (!ioctl(event->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) || errno == ESRCH)
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot %s Intel PT on thread %d", on ? "start" : "stop", event->tid);
}

static int busy(const struct pt_event *e, struct st_error *err)
{
    if (e->tid < 0)
        st_fail(err, ST_ECANNOT, "Intel PT is in use on CPU %d", e->cpu);
    else
        st_fail(err, ST_ECANNOT, "Intel PT is in use on thread %d", e->tid);
    return st_hint(err,
                   "one at a time can record with it: end the other `perf record -e intel_pt//` or recorder");
}

static void drop_last(struct rec_source *s)
{
    pt_ring_unmap(&s->rings.at[--s->rings.n]);
    if (s->total.uses.n > s->rings.n)
        rec_ring_dropped(&s->total, s->rings.n);
}

static int add_ring(struct rec_source *s, struct pt_event *e, struct st_error *err)
{
    struct pt_ring ring = {.bytes = s->ring_bytes, .pid = e->pid, .tid = e->tid, .cpu = e->cpu};
    int rc;

    if (s->per_cpu)
        ring.pid = ring.tid = -1;
    rc = pt_ring_map(&ring, e->fd, err);
    if (rc)
        return rc;
    if (st_vec_push(&s->rings, ring)) {
        pt_ring_unmap(&ring);
        return st_nomem(err, "the list of rings");
    }
    e->ring = s->rings.n - 1;
    if (s->per_cpu || !rec_ring_made(&s->total, e->pid, e->tid, ring.bytes, st_mono_ns()))
        return PT_DONE;
    drop_last(s);
    return st_nomem(err, "the list of rings");
}

/* The ring of the CPU, which an earlier event has mapped. */
static const struct pt_event *owner_of(const struct rec_source *s, int cpu)
{
    for (size_t i = 0; s->per_cpu && i < s->events.n; i++)
        if (s->events.at[i].cpu == cpu)
            return &s->events.at[i];
    return NULL;
}

static int join_ring(const struct pt_event *owner, struct pt_event *e, struct st_error *err)
{
    e->ring = owner->ring;
    if (ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, owner->fd))
        return st_fail_errno(err, ST_EFAIL, "cannot direct Intel PT of thread %d into a ring", e->tid);
    return PT_DONE;
}

/* What cannot be paused from within the kernel is stopped from user space. */
static void add_pause(struct rec_source *s, struct pt_event *e)
{
    if (!s->pausing || !pt_pause_open(&e->pause, e->fd, &s->attr, e->tid, e->cpu))
        return;
    st_log_debug("no freeze in the kernel: %s",
                 errno == EINVAL ? "this kernel has no aux_pause (Linux 6.13)" : strerror(errno));
    s->pausing = false;
}

static void close_event(struct pt_event *e)
{
    pt_pause_close(&e->pause);
    close(e->fd);
}

/* PT_* or a negative code; nothing stays open unless PT_DONE. */
static int add_event(struct rec_source *s, pid_t pid, pid_t tid, int cpu, struct st_error *err)
{
    struct pt_event e = {.pid = pid, .tid = tid, .cpu = cpu, .pause = {.fd = -1, .resume_fd = -1}};
    const struct pt_event *owner = owner_of(s, cpu);
    int rc = pt_event_open(&s->attr, tid, cpu, &e.fd, err);

    if (rc)
        return rc;
    rc = owner ? join_ring(owner, &e, err) : add_ring(s, &e, err);
    if (rc == PT_DONE)
        add_pause(s, &e);
    if (rc == PT_DONE && st_vec_push(&s->events, e)) {
        if (!owner)
            drop_last(s);
        rc = st_nomem(err, "the list of events");
    }
    if (rc)
        close_event(&e);
    return rc;
}

/* A number may be that of a thread that has ended, too. */
static bool has_events(const struct rec_source *s, pid_t pid, pid_t tid)
{
    for (size_t i = 0; i < s->events.n; i++)
        if (s->events.at[i].pid == pid && (tid < 0 || s->events.at[i].tid == tid) &&
            !rec_perf_ended(s->events.at[i].fd))
            return true;
    return false;
}

/* ------------------------------------------------------------------ */
/* The target at arming                                                */

/* `since`: its ring had recorded since then; 0: it had none. */
static int tell_gone(struct rec_source *s, pid_t pid, pid_t tid, uint64_t since, struct st_error *err)
{
    struct rec_ring_gone gone = {.pid = pid, .tid = tid, .since = since};
    int rc = rec_clock_now(&s->clock, &gone.until, err);

    return rc ? rc : rec_ring_tell_gone(&s->total, &gone, err);
}

/* A thread, on each of the CPUs. 1: it is new, 0: it has events (or inherited them), PT_TOO_LARGE. */
static int add_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    bool sibling = has_events(s, pid, -1);

    if (has_events(s, pid, tid))
        return 0;
    if (!s->per_cpu && !rec_ring_has_room(&s->total, s->ring_bytes))
        return rec_ring_is_gone(&s->total, pid, tid) ? 0 : tell_gone(s, pid, tid, 0, err);
    for (size_t i = 0; i < s->cpus.n; i++) {
        struct pt_event e = {.tid = tid, .cpu = s->cpus.at[i]};
        int rc = add_event(s, pid, tid, e.cpu, err);

        if (rc == PT_BUSY && s->per_cpu && sibling)
            return 0; /* born after its parent had the event: inherited */
        if (rc == PT_BUSY)
            return busy(&e, err);
        if (rc == PT_GONE)
            return 0;
        if (rc)
            return rc;
    }
    return 1;
}

static int add_cpus(struct rec_source *s, struct st_error *err)
{
    for (size_t i = 0; i < s->cpus.n; i++) {
        struct pt_event e = {.tid = -1, .cpu = s->cpus.at[i]};
        int rc = add_event(s, -1, -1, e.cpu, err);

        if (rc == PT_BUSY)
            return busy(&e, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The others are told of as they are listed. 0, PT_TOO_LARGE or a negative code. */
static int add_busiest(struct rec_source *s, const struct st_target *target, struct st_error *err)
{
    rec_ring_wishes list = {0};
    int rc = rec_ring_wish(target, &list, err);

    for (size_t i = 0; (rc == 0 || rc == 1) && i < list.n && rec_ring_has_room(&s->total, s->ring_bytes); i++)
        rc = add_thread(s, list.at[i].pid, list.at[i].tid, err);
    st_vec_free(&list);
    return rc == 1 ? 0 : rc;
}

static int add_target(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    int rc = 0;

    if (config->target->kind == ST_TARGET_ALL)
        return add_cpus(s, err);
    if (!s->per_cpu && st_count_threads(config->target) * s->ring_bytes > s->total.most)
        rc = add_busiest(s, config->target, err);
    return rc ? rc : rec_each_thread(config->target, config->command, add_thread, s, NULL, err);
}

static bool halve(struct rec_source *s)
{
    if (s->ring_bytes <= PT_RING_LEAST)
        return false;
    s->ring_bytes /= 2;
    s->attr.config = pt_pmu_config(&s->pmu, s->ring_bytes);
    return true;
}

int pt_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    int rc = 0;

    if (s->per_cpu)
        rc = rec_cpus_online(&s->cpus, err);
    else if (st_vec_push(&s->cpus, -1))
        rc = st_nomem(err, "the list of CPUs");
    while (!rc) {
        rc = add_target(s, config, err);
        if (rc != PT_TOO_LARGE)
            break;
        pt_detach(s);
        rc = halve(s) ? 0 : ST_ECANNOT;
    }
    if (!rc && !s->events.n && !st_target_waits(config->target))
        rc = st_fail(err, ST_EFAIL, "the target ended before it could be recorded");
    return rc;
}

/* ------------------------------------------------------------------ */
/* Threads that are born while armed                                   */

static void drop(struct rec_source *s, size_t event)
{
    size_t ring = s->events.at[event].ring;

    pt_ring_unmap(&s->rings.at[ring]);
    rec_ring_dropped(&s->total, ring);
    close_event(&s->events.at[event]);
    memmove(&s->rings.at[ring], &s->rings.at[ring + 1], (--s->rings.n - ring) * sizeof(*s->rings.at));
    memmove(&s->events.at[event], &s->events.at[event + 1], (--s->events.n - event) * sizeof(*s->events.at));
    for (size_t i = 0; i < s->events.n; i++)
        if (s->events.at[i].ring > ring)
            s->events.at[i].ring--;
}

/* Drops the rings of the threads that ended first until at most `most` of them are kept. Returns how many it
 * dropped. */
static size_t drop_ended(struct rec_source *s, size_t most)
{
    size_t ended = 0, dropped = 0;

    for (size_t i = 0; i < s->events.n; i++)
        ended += rec_perf_ended(s->events.at[i].fd);
    for (size_t i = 0; ended > most && i < s->events.n;)
        if (rec_perf_ended(s->events.at[i].fd)) {
            drop(s, i);
            ended--;
            dropped++;
        } else {
            i++;
        }
    return dropped;
}

static bool drop_first_ended(struct rec_source *s)
{
    for (size_t i = 0; i < s->events.n; i++)
        if (rec_perf_ended(s->events.at[i].fd)) {
            drop(s, i);
            return true;
        }
    return false;
}

/* 1: all are in use. */
static int drop_idlest(struct rec_source *s, struct st_error *err)
{
    size_t idle, event = 0;
    int rc;

    pt_look(s);
    idle = rec_ring_idlest(&s->total, st_mono_ns());
    if (idle == s->rings.n)
        return 1;
    while (s->events.at[event].ring != idle)
        event++;
    rc = tell_gone(s, s->rings.at[idle].pid, s->rings.at[idle].tid, s->rings.at[idle].since, err);
    drop(s, event);
    return rc;
}

/* Drops rings until there is room for one more: those of threads that ended, the first of them first, then
 * those of the longest idle. 1: there is none. */
static int make_room(struct rec_source *s, struct st_error *err)
{
    int rc = 0;

    while (!rc && !rec_ring_has_room(&s->total, s->ring_bytes))
        if (!drop_first_ended(s))
            rc = drop_idlest(s, err);
    return rc;
}

/* The limits may have been used up by threads that have ended meanwhile; else a smaller ring is better than
 * none. */
static int add_born(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err)
{
    size_t bytes = s->ring_bytes;
    int rc = add_event(s, pid, tid, -1, err);

    while (rc == PT_TOO_LARGE) {
        if (!drop_ended(s, 0) && !halve(s))
            break;
        rc = add_event(s, pid, tid, -1, err);
    }
    s->ring_bytes = bytes;
    s->attr.config = pt_pmu_config(&s->pmu, bytes);
    return rc;
}

static void tell_unrecorded(struct rec_source *s, pid_t tid, const char *why)
{
    if (s->told_unrecorded)
        st_log_debug("thread %d is not recorded: %s", tid, why);
    else
        st_log_warn("thread %d is not recorded: %s (told once; --rings cpu records every thread)", tid, why);
    s->told_unrecorded = true;
}

int pt_attach_born(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err)
{
    struct st_error why = {0};
    struct pt_event *e;
    int rc;

    if (has_events(s, pid, tid))
        return 0;
    s->attr.enable_on_exec = 0;
    drop_ended(s, PT_MOST_ENDED);
    rc = make_room(s, err);
    if (rc)
        return rc < 0 ? rc : tell_gone(s, pid, tid, 0, err);
    rc = add_born(s, pid, tid, &why);
    if (rc == PT_GONE)
        return 0;
    if (rc == PT_BUSY || rc == PT_TOO_LARGE || rc == ST_ECANNOT) {
        tell_unrecorded(s, tid, rc == PT_BUSY ? "another event of Intel PT is on it" : why.text);
        return 0;
    }
    if (rc)
        return st_fail(err, rc, "%s", why.text);
    e = &s->events.at[s->events.n - 1];
    rc = s->running ? pt_event_switch(e, true, err) : 0;
    return rc ? rc : rec_clock_now(&s->clock, &s->rings.at[e->ring].since, err);
}

/* ------------------------------------------------------------------ */
/* Processes that come into the target while armed                     */

static int join_alone(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    int rc;

    if (has_events(s, pid, tid) || rec_ring_is_gone(&s->total, pid, tid))
        return 0;
    rc = pt_attach_born(s, pid, tid, err);
    return rc ? rc : has_events(s, pid, tid);
}

static int switch_on(struct rec_source *s, size_t events, size_t rings, struct st_error *err)
{
    int rc = 0;

    for (size_t i = events; !rc && s->running && i < s->events.n; i++)
        rc = pt_event_switch(&s->events.at[i], true, err);
    for (size_t i = rings; !rc && i < s->rings.n; i++)
        rc = rec_clock_now(&s->clock, &s->rings.at[i].since, err);
    return rc;
}

static int join_cpus(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    size_t events = s->events.n, rings = s->rings.n;
    struct st_error why = {0};
    int taken = add_thread(s, pid, tid, &why), rc = switch_on(s, events, rings, err);

    if (rc || taken == 0 || taken == 1)
        return rc ? rc : taken;
    if (taken != PT_TOO_LARGE && taken != ST_ECANNOT)
        return st_fail(err, taken, "%s", why.text);
    tell_unrecorded(s, tid, why.text);
    return 0;
}

/* Not the first of each CPU, whose ring all others of it write into. */
static void sweep(struct rec_source *s)
{
    size_t kept = 0;

    if (s->events.n < 2 * s->swept || s->events.n < PT_LEAST_SWEPT)
        return;
    for (size_t i = 0; i < s->events.n; i++) {
        struct pt_event *e = &s->events.at[i];

        if (owner_of(s, e->cpu) != e && rec_perf_ended(e->fd))
            close_event(e);
        else
            s->events.at[kept++] = *e;
    }
    s->swept = s->events.n = kept;
}

int pt_attach_joined(struct rec_source *s, pid_t pid, struct st_error *err)
{
    if (!s->per_cpu)
        return rec_each_thread_of(pid, join_alone, s, NULL, err);
    sweep(s);
    return rec_each_thread_of(pid, join_cpus, s, NULL, err);
}

void pt_detach(struct rec_source *s)
{
    for (size_t i = 0; i < s->events.n; i++)
        close_event(&s->events.at[i]);
    for (size_t i = 0; i < s->rings.n; i++)
        pt_ring_unmap(&s->rings.at[i]);
    s->events.n = s->rings.n = 0;
    rec_ring_total_clear(&s->total);
}
