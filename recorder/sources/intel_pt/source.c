/* The source `intel-pt`, as arm sees it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/target_threads.h"
#include "base/units.h"
#include "perfdata/format.h"
#include "recorder/code/kcore.h"
#include "recorder/perf/event.h"
#include "recorder/sources/intel_pt/intel_pt.h"
#include "recorder/sources/intel_pt/missing.h"
#include "recorder/sources/intel_pt/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
    /* What a command starts is recorded from its first instruction only where it inherits the event. */
    if (t->kind == ST_TARGET_COMMAND)
        return true;
    return st_count_threads(t) > PT_FEW_THREADS;
}

static void set_attr(struct rec_source *s, const struct rec_source_config *config)
{
    s->attr = (struct perf_event_attr){
        .size = sizeof(s->attr),
        .type = s->pmu.type,
        .config = pt_pmu_config(&s->pmu, s->ring_bytes),
        .sample_period = 1,
        .sample_type = REC_SAMPLE_TYPE,
        .sample_id_all = 1,
        .disabled = 1,
        .exclude_kernel = !config->kernel,
        .exclude_hv = 1,
        .inherit = s->per_cpu && config->target->kind != ST_TARGET_ALL,
        .enable_on_exec = config->command != 0,
    };
}

/* Adds the cause and what to do to the word that there is no such PMU. */
static int tell_missing(struct st_error *err)
{
    struct pt_cpu cpu = pt_cpu_read("/proc/cpuinfo");
    struct pt_missing m = pt_why_missing(&cpu);

    st_hint(err, "%s", m.why);
    return st_hint(err, "%s (`stalltrap doctor` tells more)", m.advice);
}

static int pt_probe(const struct rec_source_config *config, struct st_error *err)
{
    bool all = config->target->kind == ST_TARGET_ALL;
    struct rec_source s = {.ring_bytes = PT_RING_BYTES};
    int fd, rc = pt_pmu_read(PT_PMU_FOLDER, &s.pmu, err);

    if (rc)
        return tell_missing(err);
    if (config->kernel && config->kernel_demanded && rec_kcore_probe(err))
        return st_prefix(err, "--kernel: ");
    if (all && config->rings == REC_RINGS_THREAD)
        return st_fail(err, ST_EUSAGE, "-a records whoever runs: its rings are of CPUs, not of threads");
    set_attr(&s, config);
    rc = pt_event_open(&s.attr, all ? -1 : 0, all ? 0 : -1, &fd, err);
    if (rc == PT_DONE)
        close(fd);
    /* Somebody else's recording is in the way of this one only where it has the same target: open() tells. */
    return rc < 0 ? rc : 0;
}

/* ------------------------------------------------------------------ */
/* Opening                                                             */

static size_t power_of_two(uint64_t bytes)
{
    size_t size = PT_RING_LEAST;

    while (size * 2 <= bytes && size < (1ull << 36))
        size *= 2;
    return size;
}

/* A size that was asked for is kept, and who is idle has no ring; but a ring of a CPU cannot be spared. */
static void choose_size(struct rec_source *s, const struct rec_source_config *config)
{
    size_t threads = config->ring_bytes ? 1 : st_count_threads(config->target), size, least;

    rec_ring_total_open(&s->total, config->ring_total);
    size = s->wanted = power_of_two(config->ring_bytes ? config->ring_bytes : PT_RING_BYTES);
    least = s->wanted / PT_PART_LEAST;
    if (!s->per_cpu)
        size = rec_ring_fit(size, least > PT_RING_LEAST ? least : PT_RING_LEAST, threads, s->total.most);
    s->asked = s->ring_bytes = rec_ring_fit(
        size, PT_RING_LEAST, s->per_cpu ? (size_t)sysconf(_SC_NPROCESSORS_ONLN) : 1, s->total.most);
}

static void pt_close(struct rec_source *s)
{
    if (!s)
        return;
    if (s->ran)
        rec_ring_total_end(&s->total);
    pt_detach(s);
    rec_ring_total_close(&s->total);
    st_vec_free(&s->events);
    st_vec_free(&s->rings);
    st_vec_free(&s->told);
    st_vec_free(&s->cpus);
    rec_cpu_watch_close(&s->cpu_watch);
    rec_clock_close(&s->clock);
    free(s);
}

/* Kernel code that nobody can read tells nothing. */
static void leave_out_kernel(struct rec_source *s)
{
    struct st_error why = {0};

    if (s->attr.exclude_kernel || !rec_kcore_probe(&why))
        return;
    st_log_warn("only user code is recorded: %s", why.text);
    s->attr.exclude_kernel = 1;
}

static int pt_open(const struct rec_source_config *config, struct rec_source **source, struct st_error *err)
{
    struct rec_source *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return st_nomem(err, "the source intel-pt");
    s->clock.fd = -1;
    s->per_cpu = wants_cpus(config);
    choose_size(s, config);
    /* An inherited pause cannot be lifted. */
    s->pausing =
        config->freeze_on_trigger && (config->once || !s->per_cpu || config->target->kind == ST_TARGET_ALL);
    rc = pt_pmu_read(PT_PMU_FOLDER, &s->pmu, err);
    if (!rc)
        rc = rec_clock_open(&s->clock, err);
    if (!rc) {
        set_attr(s, config);
        leave_out_kernel(s);
        rc = pt_attach(s, config, err);
    }
    if (!rc && config->target->kind == ST_TARGET_ALL)
        rc = rec_cpu_watch_open(&s->cpu_watch, &s->cpus, err);
    if (rc)
        pt_close(s);
    else
        *source = s;
    return rc;
}

static int switch_all(struct rec_source *s, bool on, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->events.n; i++)
        rc = pt_event_switch(&s->events.at[i], on, err);
    s->running = on && !rc;
    return rc;
}

/* A command's events wait for its exec. */
static int pt_start(struct rec_source *s, struct st_error *err)
{
    uint64_t now;
    int rc = s->attr.enable_on_exec ? 0 : switch_all(s, true, err);

    s->running = !rc;
    s->ran = s->running;
    if (!rc)
        rc = rec_clock_now(&s->clock, &now, err);
    for (size_t i = 0; !rc && i < s->rings.n; i++)
        s->rings.at[i].since = now;
    return rc;
}

/* ------------------------------------------------------------------ */
/* Freezing                                                            */

/* Of several events that write into one ring the last one's time stands. It is one of CLOCK_MONOTONIC, which
 * is read at once, where the perf clock takes a system call. */
static int stop(struct rec_source *s, struct rec_first first, bool is_first, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->events.n; i++) {
        struct pt_ring *ring = &s->rings.at[s->events.at[i].ring];

        if (rec_is_first(first, ring->tid, ring->cpu) != is_first)
            continue;
        rc = pt_event_switch(&s->events.at[i], false, err);
        ring->stopped = st_mono_ns();
    }
    return rc;
}

static int stop_all(struct rec_source *s, struct rec_first first, struct st_error *err)
{
    int rc;

    s->running = false;
    rc = stop(s, first, true, err);
    return rc ? rc : stop(s, first, false, err);
}

/* Which rings the kernel had stopped, and the time of each on the perf clock. */
static void account(struct rec_source *s, struct rec_freeze *how, uint64_t done)
{
    for (size_t i = 0; i < s->rings.n; i++) {
        s->rings.at[i].stopped += how->done_time - done;
        s->rings.at[i].in_kernel = false;
    }
    for (size_t i = 0; i < s->events.n; i++)
        if (pt_pause_happened(&s->events.at[i].pause))
            s->rings.at[s->events.at[i].ring].in_kernel = how->in_kernel = true;
}

static int pt_freeze(struct rec_source *s, struct rec_first first, struct rec_freeze *how,
                     struct st_error *err)
{
    struct st_error late = {0};
    uint64_t done;
    int rc;

    *how = (struct rec_freeze){0};
    rc = rec_clock_now(&s->clock, &how->asked_time, err);
    if (!rc)
        rc = stop_all(s, first, err);
    done = st_mono_ns();
    if (!rc)
        rc = rec_clock_now(&s->clock, &how->done_time, err);
    if (rc)
        switch_all(s, true, &late);
    else
        account(s, how, done);
    return rc;
}

static int pt_rings(struct rec_source *s, const struct rec_ring **rings, size_t *n, struct st_error *err)
{
    s->told.n = 0;
    if (st_vec_reserve(&s->told, s->rings.n))
        return st_nomem(err, "the list of rings");
    for (size_t i = 0; i < s->rings.n; i++) {
        const struct pt_ring *ring = &s->rings.at[i];
        struct rec_ring *to = &s->told.at[s->told.n++];

        *to = (struct rec_ring){.idx = (uint32_t)i,
                                .pid = ring->pid,
                                .tid = ring->tid,
                                .cpu = ring->cpu,
                                .first_time = ring->since,
                                .in_kernel = ring->in_kernel,
                                .stopped = ring->stopped};
        pt_ring_parts(ring, to);
    }
    *rings = s->told.at;
    *n = s->told.n;
    return 0;
}

static int pt_resume(struct rec_source *s, struct st_error *err)
{
    return switch_all(s, true, err);
}

/* ------------------------------------------------------------------ */
/* Watching, and what it says of itself                                */

static int pt_poll_fd(struct rec_source *s)
{
    (void)s;
    return -1;
}

static int pt_service(struct rec_source *s, struct st_error *err)
{
    (void)s;
    (void)err;
    return 0;
}

static int pt_thread_started(struct rec_source *s, pid_t pid, pid_t tid, struct st_error *err)
{
    return s->per_cpu ? 0 : pt_attach_born(s, pid, tid, err);
}

static void pt_pt_event(struct rec_source *s, struct perf_event_attr *attr, const char **name, uint64_t *priv,
                        size_t npriv)
{
    uint64_t words[PD_PT_PRIV_MAX] = {
        [PD_PT_PMU_TYPE] = s->pmu.type,
        [PD_PT_TSC_BIT] = s->pmu.tsc,
        [PD_PT_NORETCOMP_BIT] = s->pmu.noretcomp,
        [PD_PT_SNAPSHOT_MODE] = 1,
        [PD_PT_PER_CPU_MMAPS] = s->per_cpu,
        [PD_PT_MTC_BIT] = s->pmu.mtc,
        [PD_PT_MTC_FREQ_BITS] = s->pmu.mtc_period,
        [PD_PT_TSC_CTC_N] = s->pmu.tsc_ctc_n,
        [PD_PT_TSC_CTC_D] = s->pmu.tsc_ctc_d,
        [PD_PT_CYC_BIT] = s->pmu.cyc,
        [PD_PT_MAX_NONTURBO_RATIO] = s->pmu.max_nonturbo_ratio,
    };

    if (s->rings.n)
        words[PD_PT_CAP_USER_TIME_ZERO] = pt_ring_clock(&s->rings.at[0], &words[PD_PT_TIME_MULT],
                                                        &words[PD_PT_TIME_SHIFT], &words[PD_PT_TIME_ZERO]);
    *attr = s->attr;
    *name = attr->exclude_kernel ? "intel_pt//u" : "intel_pt//";
    memset(priv, 0, npriv * sizeof(*priv));
    memcpy(priv, words, (npriv < PD_PT_PRIV_MAX ? npriv : PD_PT_PRIV_MAX) * sizeof(*priv));
}

/* The head is a place in the ring: one that went round to the very byte is taken for one that stood still. */
bool pt_look(struct rec_source *s)
{
    uint64_t now = st_mono_ns();

    for (size_t i = 0; !s->per_cpu && i < s->rings.n; i++)
        rec_ring_look(&s->total, i, pt_ring_place(&s->rings.at[i]), now);
    return !s->per_cpu;
}

static const struct rec_ring_total *pt_ring_total(struct rec_source *s)
{
    return &s->total;
}

static bool pt_stops_in_kernel(struct rec_source *s)
{
    return s->pausing;
}

static void pt_describe(struct rec_source *s, char *text, size_t size)
{
    char ring[24], asked[24], less[96] = "", total[96] = "";
    size_t threads = s->per_cpu ? 0 : s->events.n;

    st_format_size(s->ring_bytes, ring, sizeof(ring));
    if (s->ring_bytes < s->asked)
        snprintf(less, sizeof(less), " (the memory limits allow no %s)",
                 st_format_size(s->asked, asked, sizeof(asked)));
    if (!s->per_cpu || s->asked < s->wanted)
        rec_ring_total_describe(&s->total, total, sizeof(total));
    if (s->per_cpu)
        snprintf(text, size, "%s, %s a CPU%s, %zu CPUs%s", s->attr.exclude_kernel ? "user" : "user+kernel",
                 ring, less, s->rings.n, total);
    else
        snprintf(text, size, "%s, %s a thread%s, %zu thread%s%s",
                 s->attr.exclude_kernel ? "user" : "user+kernel", ring, less, threads,
                 threads == 1 ? "" : "s", total);
}

static void pt_unseen_cpus(struct rec_source *s, char *text, size_t size)
{
    text[0] = '\0';
    if (s->per_cpu)
        rec_cpus_changed(&s->cpus, text, size);
    if (!*text)
        rec_cpu_watch_dead(&s->cpu_watch, text, size);
}

const struct rec_source_ops rec_source_intel_pt = {
    .name = "intel-pt",
    .summary = "every branch, user and kernel, by the processor's Intel Processor Trace",
    .probe = pt_probe,
    .open = pt_open,
    .start = pt_start,
    .freeze = pt_freeze,
    .rings = pt_rings,
    .resume = pt_resume,
    .poll_fd = pt_poll_fd,
    .service = pt_service,
    .inherits = wants_cpus,
    .misses_while_frozen = true,
    .thread_started = pt_thread_started,
    .joined = pt_attach_joined,
    .trace_event = pt_pt_event,
    .stops_in_kernel = pt_stops_in_kernel,
    .look = pt_look,
    .ring_total = pt_ring_total,
    .unseen_cpus = pt_unseen_cpus,
    .describe = pt_describe,
    .close = pt_close,
};
