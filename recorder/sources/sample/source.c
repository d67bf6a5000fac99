/* The source `sample`, as arm sees it. */
#include "base/clock.h"
#include "base/target_threads.h"
#include "base/units.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"
#include "recorder/sources/sample/sample.h"
#include "recorder/sources/sample/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ */
/* Whether it can                                                      */

static bool wants_cpus(const struct rec_source_config *config)
{
    const struct st_target *t = config->target;

    if (t->kind == ST_TARGET_ALL || config->rings == REC_RINGS_CPU)
        return true;
    if (config->rings == REC_RINGS_THREAD)
        return false;
    if (config->select)
        return true;
    /* What a command starts is recorded from its first instruction only where it inherits the event. */
    return t->kind == ST_TARGET_COMMAND || st_count_threads(t) > SMP_FEW_THREADS;
}

/* Not the stack of branches, which the kernel keeps for a thread, not for a CPU; and not system calls, of
 * which there would be those of all processes. A command is not there yet. */
static bool smp_selects(const struct rec_source_config *config)
{
    return (config->target->npids || st_target_waits(config->target)) &&
           config->target->kind != ST_TARGET_ALL && config->target->kind != ST_TARGET_COMMAND &&
           config->rings != REC_RINGS_THREAD && config->callgraph != REC_CALLGRAPH_LBR && !config->syscalls;
}

static int smp_probe(const struct rec_source_config *config, struct st_error *err)
{
    struct rec_source s = {.callgraph = config->callgraph, .per_cpu = wants_cpus(config)};
    int rc;

    if (config->target->kind == ST_TARGET_ALL && config->rings == REC_RINGS_THREAD)
        return st_fail(err, ST_EUSAGE, "-a records whoever runs: its rings are of CPUs, not of threads");
    rc = smp_cores_read(SMP_CORES_FOLDER, &s.cores, err);
    if (!rc)
        rc = smp_event_attr(&s, config, err);
    smp_cores_close(&s.cores);
    return rc;
}

/* ------------------------------------------------------------------ */
/* Opening                                                             */

/* A power of two that is no more than what was asked for, or by default. */
static size_t wanted_size(const struct rec_source *s, uint64_t asked)
{
    uint64_t bytes = asked ? asked : s->per_cpu ? SMP_CPU_BYTES : SMP_THREAD_BYTES;
    size_t size = SMP_RING_LEAST;

    if (!asked && s->callgraph == REC_CALLGRAPH_DWARF)
        bytes *= SMP_DUMP_FACTOR;
    while (size * 2 <= bytes && size < (1ull << 36))
        size *= 2;
    return size;
}

/* Where a target may use some CPUs of many, and nobody said how much, all their rings together take less. */
static size_t cpu_size(struct rec_source *s, uint64_t asked)
{
    size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN), least = cpus * SMP_CPU_LEAST;

    if (s->select && !asked && !s->total.asked && s->total.most > SMP_CPUS_BYTES)
        s->total.most = least > SMP_CPUS_BYTES ? least : SMP_CPUS_BYTES;
    return rec_ring_fit(s->wanted, SMP_RING_LEAST, cpus, s->total.most);
}

/* A size that was asked for is kept, and who is idle has no ring. */
static void choose_size(struct rec_source *s, const struct rec_source_config *config)
{
    size_t threads = config->ring_bytes ? 1 : st_count_threads(config->target);

    rec_ring_total_open(&s->total, config->ring_total);
    s->wanted = wanted_size(s, config->ring_bytes);
    if (s->per_cpu)
        s->asked = cpu_size(s, config->ring_bytes);
    else
        s->asked = rec_ring_fit(rec_ring_fit(s->wanted, s->wanted / SMP_PART_LEAST, threads, s->total.most),
                                SMP_RING_LEAST, 1, s->total.most);
    s->ring_bytes = s->asked;
}

static void smp_close(struct rec_source *s)
{
    if (!s)
        return;
    if (s->running)
        rec_ring_total_end(&s->total);
    smp_detach(s);
    rec_ring_total_close(&s->total);
    st_vec_free(&s->events);
    st_vec_free(&s->rings);
    st_vec_free(&s->told);
    st_vec_free(&s->ids);
    st_vec_free(&s->cpus);
    smp_cores_close(&s->cores);
    smp_wake_detach(s);
    smp_pace_close(s);
    rec_clock_close(&s->clock);
    free(s);
}

static int choose_rate(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    unsigned most = smp_rate_most();

    if (config->frequency > most) {
        st_fail(err, ST_EUSAGE, "--freq %u: this kernel allows %u samples a second", config->frequency, most);
        return st_hint(err, "sysctl kernel.perf_event_max_sample_rate=%u allows more", config->frequency);
    }
    s->frequency = config->frequency ? config->frequency : smp_rate_default(&s->kinds[SMP_SAMPLES].attr);
    s->kinds[SMP_SAMPLES].attr.sample_freq = s->frequency;
    return 0;
}

static int smp_open(const struct rec_source_config *config, struct rec_source **source, struct st_error *err)
{
    struct rec_source *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return st_nomem(err, "the source sample");
    s->clock.fd = s->budget.timer = -1;
    s->per_cpu = wants_cpus(config);
    s->select = config->select;
    s->by_name = config->target->kind == ST_TARGET_COMM;
    s->callgraph = config->callgraph;
    choose_size(s, config);
    rc = rec_clock_open_as(&s->clock, s->select, err);
    if (!rc)
        rc = smp_cores_read(SMP_CORES_FOLDER, &s->cores, err);
    if (!rc)
        rc = smp_event_attr(s, config, err);
    if (!rc)
        rc = choose_rate(s, config, err);
    if (!rc)
        rc = smp_pace_open(s, config, err);
    if (!rc)
        rc = smp_attach(s, config, err);
    if (!rc)
        rc = smp_wake_attach(s, config, err);
    if (rc)
        smp_close(s);
    else
        *source = s;
    return rc;
}

/* A command's events wait for its exec. What selects comes last: it writes into the events. */
static int smp_start(struct rec_source *s, struct st_error *err)
{
    uint64_t now;
    int rc = 0;

    for (size_t i = 0; !rc && !s->kinds[SMP_SAMPLES].attr.enable_on_exec && i < s->events.n; i++)
        rc = smp_event_switch(&s->events.at[i], true, err);
    s->running = !rc;
    if (!rc)
        rc = smp_wake_start(s, err);
    if (!rc && s->select)
        rc = trg_select_start(s->select, err);
    smp_pace_begin(s);
    if (!rc)
        rc = rec_clock_now(&s->clock, &now, err);
    for (size_t i = 0; !rc && i < s->rings.n; i++)
        s->rings.at[i].since = now;
    for (size_t i = 0; !rc && i < s->wake_rings.n; i++)
        s->wake_rings.at[i].since = now;
    return rc;
}

/* ------------------------------------------------------------------ */
/* Freezing: the events count on, what they would write is dropped      */

/* The time is one of CLOCK_MONOTONIC, which is read at once, where the perf clock takes a system call. */
static int pause_ring(struct smp_ring *ring, bool on, struct st_error *err)
{
    int rc = smp_ring_pause(ring, on, err);

    ring->stopped = on ? st_mono_ns() : 0;
    return rc;
}

static int pause_rings(struct rec_source *s, bool on, struct rec_first first, bool is_first,
                       struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->rings.n; i++)
        if (rec_is_first(first, s->rings.at[i].tid, s->rings.at[i].cpu) == is_first)
            rc = pause_ring(&s->rings.at[i], on, err);
    return rc;
}

static int pause_all(struct rec_source *s, bool on, struct rec_first first, struct st_error *err)
{
    int rc = pause_rings(s, on, first, true, err);

    if (!rc)
        rc = pause_rings(s, on, first, false, err);
    for (size_t i = 0; !rc && i < s->wake_rings.n; i++)
        rc = pause_ring(&s->wake_rings.at[i], on, err);
    return rc;
}

static int resume_all(struct rec_source *s, struct st_error *err)
{
    return pause_all(s, false, (struct rec_first){.tid = -1, .cpu = -1}, err);
}

/* Makes times of the rings those of the perf clock, which was `perf` at `mono`. */
static void tell_stops(struct rec_source *s, uint64_t perf, uint64_t mono)
{
    for (size_t i = 0; i < s->rings.n; i++)
        s->rings.at[i].stopped += perf - mono;
    for (size_t i = 0; i < s->wake_rings.n; i++)
        s->wake_rings.at[i].stopped += perf - mono;
}

static int smp_freeze(struct rec_source *s, struct rec_first first, struct rec_freeze *how,
                      struct st_error *err)
{
    uint64_t done;
    int rc;

    *how = (struct rec_freeze){0};
    s->budget.paused_at = s->select ? trg_select_lost(s->select) : 0;
    rc = rec_clock_now(&s->clock, &how->asked_time, err);
    if (!rc)
        rc = pause_all(s, true, first, err);
    done = st_mono_ns();
    if (!rc)
        rc = rec_clock_now(&s->clock, &how->done_time, err);
    if (rc)
        resume_all(s, NULL);
    else
        tell_stops(s, how->done_time, done);
    return rc;
}

static void tell_ring(struct rec_source *s, const struct smp_ring *ring, bool of_cpu, bool marks)
{
    struct rec_ring *to = &s->told.at[s->told.n];

    *to = (struct rec_ring){.idx = (uint32_t)s->told.n++,
                            .pid = ring->pid,
                            .tid = ring->tid,
                            .cpu = of_cpu ? ring->cpu : -1,
                            .marks = marks,
                            .first_time = ring->since,
                            .stopped = ring->stopped};
    smp_ring_parts(ring, to);
}

static int smp_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    s->told.n = 0;
    if (st_vec_reserve(&s->told, s->rings.n + s->wake_rings.n))
        return st_nomem(err, "the list of rings");
    for (size_t i = 0; i < s->rings.n; i++)
        tell_ring(s, &s->rings.at[i], s->per_cpu, false);
    for (size_t i = 0; i < s->wake_rings.n; i++)
        tell_ring(s, &s->wake_rings.at[i], true, true);
    *rings = s->told.at;
    *n = s->told.n;
    return 0;
}

/* What the rings did not take meanwhile is in the pause that the snapshot tells of. */
static int smp_resume(struct rec_source *s, struct st_error *err)
{
    int rc = resume_all(s, err);

    if (!rc && s->select)
        s->budget.paused += trg_select_lost(s->select) - s->budget.paused_at;
    return rc;
}

/* ------------------------------------------------------------------ */
/* Watching, and what it says of itself                                */

static int smp_poll_fd(struct rec_source *s)
{
    return s->budget.timer;
}

static int smp_service(struct rec_source *s, struct st_error *err)
{
    (void)err;
    smp_pace_look(s);
    return 0;
}

static int smp_thread_started(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err)
{
    smp_wake_born(s, tid);
    return s->per_cpu ? 0 : smp_attach_born(s, pid, tid, err);
}

static int smp_joined(struct rec_source *s, pid_t pid, struct st_error *err)
{
    /* The program itself follows all but the other threads of a process that has renamed itself. */
    if (s->select)
        return s->by_name && st_target_has_threads(pid) ? trg_select_adopt(s->select, err) : 0;
    return smp_attach_joined(s, pid, err);
}

bool smp_look(struct rec_source *s)
{
    uint64_t now = st_mono_ns();

    for (size_t i = 0; !s->per_cpu && i < s->rings.n; i++)
        rec_ring_look(&s->total, i, smp_ring_written(&s->rings.at[i]), now);
    return !s->per_cpu;
}

static const struct rec_ring_total *smp_ring_total(struct rec_source *s)
{
    return &s->total;
}

static void smp_mark(struct rec_source *s)
{
    for (size_t i = 0; i < s->rings.n; i++)
        smp_ring_mark(&s->rings.at[i]);
    for (size_t i = 0; i < s->wake_rings.n; i++)
        smp_ring_mark(&s->wake_rings.at[i]);
}

static bool smp_has_room(struct rec_source *s)
{
    bool room = true;

    for (size_t i = 0; i < s->rings.n; i++)
        room = room && smp_ring_has_room(&s->rings.at[i]);
    for (size_t i = 0; i < s->wake_rings.n; i++)
        room = room && smp_ring_has_room(&s->wake_rings.at[i]);
    return room;
}

static void smp_trace_event(struct rec_source *s, struct perf_event_attr *attr, const char **name,
                            uint64_t *priv, size_t npriv)
{
    *attr = s->kinds[SMP_SAMPLES].attr;
    *name = s->kinds[SMP_SAMPLES].name;
    memset(priv, 0, npriv * sizeof(*priv));
}

static bool smp_record_event(struct rec_source *s, size_t n, struct rec_record_event *event)
{
    s->ids.n = 0;
    if (n >= SMP_KINDS || st_vec_reserve(&s->ids, s->events.n + s->wakes.n + 1))
        return false;
    for (size_t i = 0; n < SMP_OF_THREAD && i < s->events.n; i++)
        if (s->events.at[i].fd[n] >= 0)
            s->ids.at[s->ids.n++] = s->events.at[i].id[n];
    for (size_t i = 0; n == SMP_WAKINGS && i < s->wakes.n; i++)
        s->ids.at[s->ids.n++] = s->wakes.at[i].id;
    *event = (struct rec_record_event){
        .attr = s->kinds[n].attr, .name = s->kinds[n].name, .ids = s->ids.at, .nids = s->ids.n};
    return true;
}

static int filter_late(const struct smp_event *e, struct rec_filter *filter)
{
    int rc = st_vec_push(&filter->late, e->tid);

    for (int k = 0; !rc && k < SMP_OF_THREAD; k++)
        if (e->fd[k] >= 0)
            rc = st_vec_push(&filter->own, (struct rec_filter_own){.tid = e->tid, .id = e->id[k]});
    return rc;
}

static int smp_filter(struct rec_source *s, struct rec_filter *filter)
{
    int rc = 0;

    if (!s->any_late)
        return 0;
    for (size_t i = 0; !rc && i < s->wakes.n; i++)
        rc = st_vec_push(&filter->any, s->wakes.at[i].id);
    for (size_t i = 0; !rc && i < s->events.n; i++)
        if (s->events.at[i].late)
            rc = filter_late(&s->events.at[i], filter);
    rec_filter_sort(filter);
    return rc;
}

/* CPUs that came or went since `opened`. An event of a CPU (not of a thread) is dead once its CPU has gone,
 * also when it has come back: then `alive` lacks it. */
static void tell_cpus(const rec_cpu_list *opened, const rec_cpu_list *alive, char *text, size_t size)
{
    rec_cpus_changed(opened, text, size);
    if (!*text && alive)
        rec_cpus_differ(opened, alive, text, size);
}

static void smp_unseen_cpus(struct rec_source *s, char *text, size_t size)
{
    rec_cpu_list alive = {0};
    bool of_cpus = s->events.n && s->events.at[0].tid < 0;

    text[0] = '\0';
    if (s->per_cpu && of_cpus && smp_wake_alive(s, &alive))
        of_cpus = false;
    if (s->per_cpu)
        tell_cpus(&s->cpus, of_cpus && s->wakes.n ? &alive : NULL, text, size);
    st_vec_free(&alive);
}

static void smp_unmarked_cpus(struct rec_source *s, char *text, size_t size)
{
    rec_cpu_list opened = {0}, alive = {0};
    bool known = s->wakes.n && !smp_wake_alive(s, &alive);

    text[0] = '\0';
    for (size_t i = 0; known && i < s->wake_rings.n; i++)
        known = !st_vec_push(&opened, s->wake_rings.at[i].cpu);
    if (known)
        tell_cpus(&opened, &alive, text, size);
    st_vec_free(&opened);
    st_vec_free(&alive);
}

static void smp_describe(struct rec_source *s, char *text, size_t size)
{
    static const char *const ways[] = {"frame pointers", "DWARF", "LBR"};
    const struct perf_event_attr *attr = &s->kinds[SMP_SAMPLES].attr;
    const char *whose = attr->exclude_kernel ? "user" : "user+kernel";
    const char *event = attr->type == PERF_TYPE_HARDWARE ? "cycles" : "CPU clock";
    char ring[24], asked[24], less[96] = "", total[96] = "", many[40], wakes[96] = "", left[96];
    size_t n = s->rings.n;

    st_format_size(s->ring_bytes, ring, sizeof(ring));
    if (s->ring_bytes < s->asked)
        snprintf(less, sizeof(less), " (the memory limits allow no %s)",
                 st_format_size(s->asked, asked, sizeof(asked)));
    if (!s->per_cpu || s->asked < s->wanted)
        rec_ring_total_describe(&s->total, total, sizeof(total));
    snprintf(many, sizeof(many), "%zu %s%s", n, s->per_cpu ? "CPU" : "thread", n == 1 ? "" : "s");
    if (s->select)
        snprintf(many, sizeof(many), "%zu CPU%s, %u thread%s", n, n == 1 ? "" : "s",
                 trg_select_threads(s->select), trg_select_threads(s->select) == 1 ? "" : "s");
    if (*s->no_wakes)
        snprintf(wakes, sizeof(wakes), ", no wake-ups (%s)", s->no_wakes);
    smp_pace_describe(s, left, sizeof(left));
    snprintf(text, size, "%s, %u samples a second by %s and %s%s, %s a %s%s, %s%s%s", whose, s->frequency,
             event, ways[s->callgraph], left, ring, s->per_cpu ? "CPU" : "thread", less, many, total, wakes);
}

const struct rec_source_ops rec_source_sample = {
    .name = "sample",
    .summary = "call chains of user and kernel, some thousand a second: calls are approximate",
    .probe = smp_probe,
    .open = smp_open,
    .start = smp_start,
    .freeze = smp_freeze,
    .rings = smp_rings,
    .resume = smp_resume,
    .poll_fd = smp_poll_fd,
    .service = smp_service,
    .inherits = wants_cpus,
    .selects = smp_selects,
    .thread_started = smp_thread_started,
    .joined = smp_joined,
    .mark = smp_mark,
    .has_room = smp_has_room,
    .trace_event = smp_trace_event,
    .records = true,
    .record_event = smp_record_event,
    .filter = smp_filter,
    .unseen_cpus = smp_unseen_cpus,
    .unmarked_cpus = smp_unmarked_cpus,
    .left_out = smp_pace_meta,
    .look = smp_look,
    .ring_total = smp_ring_total,
    .describe = smp_describe,
    .close = smp_close,
};
