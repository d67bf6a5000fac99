/* Which events and rings a target takes. As with every overwritten ring: one a thread keeps the thread's own
 * history, however busy its siblings are, but a thread that is born later gets it a moment late; and an event
 * that children inherit has one ring a CPU at the least. */
#include "base/clock.h"
#include "base/log.h"
#include "base/target_threads.h"
#include "recorder/perf/event.h"
#include "recorder/sources/sample/state.h"

#include <stdlib.h>
#include <string.h>

/* The ring of the CPU, which an earlier event has mapped. */
static const struct smp_event *owner_of(const struct rec_source *s, int cpu)
{
    for (size_t i = 0; s->per_cpu && i < s->events.n; i++)
        if (s->events.at[i].cpu == cpu)
            return &s->events.at[i];
    return NULL;
}

static void drop_last(struct rec_source *s)
{
    smp_ring_unmap(&s->rings.at[--s->rings.n]);
    if (s->total.uses.n > s->rings.n)
        rec_ring_dropped(&s->total, s->rings.n);
}

static int add_ring(struct rec_source *s, struct smp_event *e, struct st_error *err)
{
    struct smp_ring ring = {
        .bytes = s->ring_bytes, .fd = e->fd[SMP_SAMPLES], .pid = e->pid, .tid = e->tid, .cpu = e->cpu};
    int rc;

    if (s->per_cpu)
        ring.pid = ring.tid = -1;
    rc = smp_ring_map(&ring, err);
    s->too_large = rc == ST_ECANNOT;
    if (rc)
        return rc;
    e->ring = s->rings.n;
    if (st_vec_push(&s->rings, ring)) {
        smp_ring_unmap(&ring);
        return st_nomem(err, "the list of rings");
    }
    if (s->per_cpu || !rec_ring_made(&s->total, e->pid, e->tid, ring.bytes, st_mono_ns()))
        return 0;
    drop_last(s);
    return st_nomem(err, "the list of rings");
}

/* 0, 1 (the thread has ended) or a negative code; nothing stays open unless 0. */
static int add_event(struct rec_source *s, struct smp_event *e, struct st_error *err)
{
    const struct smp_event *owner = owner_of(s, e->cpu);
    size_t rings = s->rings.n;
    int rc = smp_event_open(s, e, err);

    if (rc)
        return rc;
    e->ring = owner ? owner->ring : 0;
    if (!owner)
        rc = add_ring(s, e, err);
    if (!rc)
        rc = smp_event_join(e, s->rings.at[e->ring].fd, err);
    if (!rc && st_vec_push(&s->events, *e))
        rc = st_nomem(err, "the list of events");
    if (rc && s->rings.n > rings)
        drop_last(s);
    if (rc)
        smp_event_close(e);
    return rc;
}

/* A number may be that of a thread that has ended, too. */
static bool has_events(const struct rec_source *s, pid_t tid)
{
    for (size_t i = 0; i < s->events.n; i++)
        if (s->events.at[i].tid == tid && !rec_perf_ended(s->events.at[i].fd[SMP_SAMPLES]))
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

static int take_thread(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;

    if (has_events(s, tid))
        return 0;
    if (!s->per_cpu && !rec_ring_has_room(&s->total, s->ring_bytes))
        return rec_ring_is_gone(&s->total, pid, tid) ? 0 : tell_gone(s, pid, tid, 0, err);
    for (size_t i = 0; i < s->cpus.n; i++) {
        struct smp_event e = {
            .pid = pid, .tid = tid, .cpu = s->cpus.at[i], .late = s->per_cpu && s->rounds > 0};
        int rc = add_event(s, &e, err);

        if (rc)
            return rc < 0 ? rc : 0;
        s->any_late = s->any_late || e.late;
    }
    return 1;
}

static int add_cpus(struct rec_source *s, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->cpus.n; i++) {
        struct smp_event e = {.pid = -1, .tid = -1, .cpu = s->cpus.at[i]};

        rc = add_event(s, &e, err);
    }
    return rc;
}

static bool halve(struct rec_source *s)
{
    if (s->ring_bytes <= SMP_RING_LEAST)
        return false;
    s->ring_bytes /= 2;
    return true;
}

/* The others are told of as they are listed. */
static int add_busiest(struct rec_source *s, const struct st_target *target, struct st_error *err)
{
    rec_ring_wishes list = {0};
    int rc = rec_ring_wish(target, &list, err);

    for (size_t i = 0; rc >= 0 && i < list.n && rec_ring_has_room(&s->total, s->ring_bytes); i++)
        rc = take_thread(s, list.at[i].pid, list.at[i].tid, err);
    st_vec_free(&list);
    return rc < 0 ? rc : 0;
}

static int add_target(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    int rc = 0;

    if (config->target->kind == ST_TARGET_ALL || s->select)
        return add_cpus(s, err);
    if (!s->per_cpu && st_count_threads(config->target) * s->ring_bytes > s->total.most)
        rc = add_busiest(s, config->target, err);
    return rc ? rc : rec_each_thread(config->target, config->command, take_thread, s, &s->rounds, err);
}

int smp_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    int rc = s->per_cpu ? rec_cpus_online(&s->cpus, err) : st_vec_push(&s->cpus, -1) ? ST_ENOMEM : 0;

    if (rc)
        return rc;
    /* Not where a privilege lacks. */
    while ((rc = add_target(s, config, err)) == ST_ECANNOT && s->too_large && halve(s)) {
        smp_detach(s);
        s->too_large = false;
        *err = (struct st_error){0};
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

    smp_ring_unmap(&s->rings.at[ring]);
    rec_ring_dropped(&s->total, ring);
    smp_event_close(&s->events.at[event]);
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
        ended += rec_perf_ended(s->events.at[i].fd[SMP_SAMPLES]);
    for (size_t i = 0; ended > most && i < s->events.n;)
        if (rec_perf_ended(s->events.at[i].fd[SMP_SAMPLES])) {
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
        if (rec_perf_ended(s->events.at[i].fd[SMP_SAMPLES])) {
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

    smp_look(s);
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
static int add_born(struct rec_source *s, struct smp_event *e, struct st_error *err)
{
    size_t bytes = s->ring_bytes;
    int rc = add_event(s, e, err);

    while (rc == ST_ECANNOT && (drop_ended(s, 0) || halve(s)))
        rc = add_event(s, e, err);
    s->ring_bytes = bytes;
    return rc;
}

static int refused(struct rec_source *s, pid_t tid, int rc, const struct st_error *why, struct st_error *err)
{
    if (rc != ST_ECANNOT)
        return st_fail(err, rc, "%s", why->text);
    if (!s->told_unrecorded)
        st_log_warn("thread %d is not recorded: %s (told once%s)", tid, why->text,
                    s->per_cpu ? "" : "; --rings cpu records every thread");
    s->told_unrecorded = true;
    return 0;
}

int smp_attach_born(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err)
{
    struct smp_event e = {.pid = pid, .tid = tid, .cpu = -1};
    struct st_error why = {0};
    int rc;

    if (has_events(s, tid))
        return 0;
    s->kinds[SMP_SAMPLES].attr.enable_on_exec = 0;
    drop_ended(s, SMP_MOST_ENDED);
    rc = make_room(s, err);
    if (rc)
        return rc < 0 ? rc : tell_gone(s, pid, tid, 0, err);
    rc = add_born(s, &e, &why);
    if (rc == 1)
        return 0;
    if (rc)
        return refused(s, tid, rc, &why, err);
    rc = s->running ? smp_event_switch(&e, true, err) : 0;
    return rc ? rc : rec_clock_now(&s->clock, &s->rings.at[e.ring].since, err);
}

/* ------------------------------------------------------------------ */
/* Processes that come into the target while armed                     */

static int join_alone(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    int rc;

    if (has_events(s, tid) || rec_ring_is_gone(&s->total, pid, tid))
        return 0;
    smp_wake_born(s, tid);
    rc = smp_attach_born(s, pid, tid, err);
    return rc ? rc : has_events(s, tid);
}

static int switch_on(struct rec_source *s, size_t events, size_t rings, struct st_error *err)
{
    int rc = 0;

    for (size_t i = events; !rc && s->running && i < s->events.n; i++)
        rc = smp_event_switch(&s->events.at[i], true, err);
    for (size_t i = rings; !rc && i < s->rings.n; i++)
        rc = rec_clock_now(&s->clock, &s->rings.at[i].since, err);
    return rc;
}

static int join_cpus(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;
    size_t events = s->events.n, rings = s->rings.n;
    struct st_error why = {0};
    int taken, rc;

    smp_wake_born(s, tid);
    taken = take_thread(s, pid, tid, &why);
    rc = switch_on(s, events, rings, err);
    if (rc)
        return rc;
    return taken < 0 ? refused(s, tid, taken, &why, err) : taken;
}

int smp_attach_joined(struct rec_source *s, pid_t pid, struct st_error *err)
{
    if (!s->per_cpu)
        return rec_each_thread_of(pid, join_alone, s, NULL, err);
    return rec_each_thread_of(pid, join_cpus, s, &s->rounds, err);
}

void smp_detach(struct rec_source *s)
{
    for (size_t i = 0; i < s->events.n; i++)
        smp_event_close(&s->events.at[i]);
    for (size_t i = 0; i < s->rings.n; i++)
        smp_ring_unmap(&s->rings.at[i]);
    s->events.n = s->rings.n = 0;
    rec_ring_total_clear(&s->total);
    s->any_late = false;
}
