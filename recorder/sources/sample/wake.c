/* Wake-ups of the target's threads. The tracepoint sched_waking tells of them where the waker is: in another
 * thread, or in whatever an interrupt came upon. So there is an event a CPU for all threads, with a filter on
 * who is woken. */
#include "base/log.h"
#include "base/target_threads.h"
#include "recorder/perf/event.h"
#include "recorder/perf/tracefs.h"
#include "recorder/sources/sample/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_LISTED = 32,   /* threads in a filter; of more, all from the lowest number on are taken */
    FILTER_BYTES = 1024 /* the kernel takes up to a page */
};

static const char tracepoint[] = "sched:sched_waking";

static int refused(struct rec_source *s, const char *why)
{
    snprintf(s->no_wakes, sizeof(s->no_wakes), "%s", why);
    return ST_ECANNOT;
}

/* Tracepoints have the machine's own numbers of threads (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
static bool in_namespace(void)
{
    char name[64] = "";

    return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 && strcmp(name, "pid:[4026531836]");
}

static int wake_attr(struct rec_source *s, bool kernel)
{
    struct smp_attr *kind = &s->kinds[SMP_WAKINGS];
    struct st_error why = {0};
    uint64_t id;

    if (in_namespace())
        return refused(s, "in a namespace of process numbers");
    if (rec_tracepoint_id(tracepoint, &id, &why)) {
        st_log_debug("no wake-ups: %s", why.text);
        return refused(s, "tracefs is not readable");
    }
    kind->attr = (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .type = PERF_TYPE_TRACEPOINT,
        .config = id,
        .sample_period = 1,
        .sample_type = REC_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
        .sample_id_all = 1,
        .write_backward = 1,
        .exclude_hv = 1,
        .exclude_callchain_user = 1,
        .exclude_callchain_kernel = !kernel,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
        .disabled = 1,
    };
    if (s->select)
        rec_perf_use_monotonic(&kind->attr);
    kind->name = tracepoint;
    return 0;
}

/* ------------------------------------------------------------------ */
/* The filter                                                           */

static int take_tid(void *ctx, pid_t pid, pid_t tid, struct st_error *err)
{
    struct rec_source *s = ctx;

    (void)pid;
    for (size_t i = 0; i < s->woken.n; i++)
        if (s->woken.at[i] == tid)
            return 0;
    return st_vec_push(&s->woken, tid) ? st_nomem(err, "the list of threads") : 1;
}

/* The last number that was given to a process or thread: those born later have higher ones, until they begin
 * anew. */
static pid_t last_number(void)
{
    FILE *f = fopen("/proc/loadavg", "re");
    int last = 0;

    if (f && fscanf(f, "%*f %*f %*f %*d/%*d %d", &last) != 1)
        last = 0;
    if (f)
        fclose(f);
    return last;
}

static pid_t lowest(const struct rec_source *s)
{
    pid_t least = s->woken.at[0];

    for (size_t i = 1; i < s->woken.n; i++)
        if (s->woken.at[i] < least)
            least = s->woken.at[i];
    return least;
}

static void make_filter(struct rec_source *s, char *text, size_t size)
{
    size_t n;

    if (s->woken.n > MOST_LISTED) {
        s->woken_from = lowest(s);
        s->woken.n = 0;
    }
    n = (size_t)snprintf(text, size, "pid >= %d", s->woken_from);
    for (size_t i = 0; i < s->woken.n; i++)
        n += (size_t)snprintf(text + n, size - n, " || pid == %d", s->woken.at[i]);
}

static int set_filter(const struct rec_source *s, const char *filter)
{
    for (size_t i = 0; i < s->wakes.n; i++)
        if (ioctl(s->wakes.at[i].fd, PERF_EVENT_IOC_SET_FILTER, filter))
            return -1;
    return 0;
}

static int set_outputs(const struct rec_source *s, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->wakes.n; i++)
        rc = trg_select_set_output(s->select, TRG_SELECT_WAKE_MARKS, s->wake_rings.at[i].cpu,
                                   s->wakes.at[i].fd, err);
    return rc;
}

static int filter_target(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    char filter[FILTER_BYTES];
    int rc;

    if (config->target->kind == ST_TARGET_ALL)
        return 0;
    if (s->select)
        return set_outputs(s, err);
    s->woken_from = last_number() + 1;
    rc = rec_each_thread(config->target, config->command, take_tid, s, NULL, err);
    if (rc)
        return rc;
    make_filter(s, filter, sizeof(filter));
    return set_filter(s, filter) ? refused(s, "the kernel takes no filter") : 0;
}

void smp_wake_born(struct rec_source *s, pid_t tid)
{
    char filter[FILTER_BYTES];

    if (!s->wakes.n || !s->woken_from || tid >= s->woken_from || take_tid(s, tid, tid, NULL) != 1)
        return;
    make_filter(s, filter, sizeof(filter));
    if (set_filter(s, filter))
        st_log_debug("the wake-ups of thread %d are not recorded: %s", tid, strerror(errno));
}

/* ------------------------------------------------------------------ */

static int add_cpu(struct rec_source *s, int cpu)
{
    struct perf_event_attr attr = s->kinds[SMP_WAKINGS].attr;
    struct smp_wake wake;
    struct smp_ring ring = {.pid = -1, .tid = -1, .cpu = cpu, .bytes = SMP_WAKE_BYTES};
    int rc;

    if (s->select)
        smp_event_by_program(&attr);
    wake = (struct smp_wake){.fd = rec_perf_event(&attr, -1, cpu)};
    ring.fd = wake.fd;

    if (wake.fd < 0)
        return refused(s, errno == EMFILE || errno == ENFILE ? "too many open files" : "no permission");
    while ((rc = smp_ring_map(&ring, NULL)) == ST_ECANNOT && ring.bytes > SMP_RING_LEAST)
        ring.bytes /= 2;
    if (rc || rec_perf_id(wake.fd, &wake.id, NULL)) {
        smp_ring_unmap(&ring);
        close(wake.fd);
        return refused(s, "the limits of memory allow no ring for them");
    }
    if (st_vec_reserve(&s->wakes, 1) || st_vec_reserve(&s->wake_rings, 1)) {
        smp_ring_unmap(&ring);
        close(wake.fd);
        return ST_ENOMEM;
    }
    s->wakes.at[s->wakes.n++] = wake;
    s->wake_rings.at[s->wake_rings.n++] = ring;
    return 0;
}

int smp_wake_attach(struct rec_source *s, const struct rec_source_config *config, struct st_error *err)
{
    rec_cpu_list cpus = {0};
    int rc = wake_attr(s, config->kernel);

    if (!rc)
        rc = rec_cpus_online(&cpus, err);
    for (size_t i = 0; i < cpus.n && !rc; i++)
        rc = add_cpu(s, cpus.at[i]);
    st_vec_free(&cpus);
    if (!rc)
        rc = filter_target(s, config, err);
    if (!rc)
        return 0;
    smp_wake_detach(s);
    s->kinds[SMP_WAKINGS].name = NULL;
    return rc == ST_ENOMEM ? st_nomem(err, "the events of wake-ups") : rc == ST_ECANNOT ? 0 : rc;
}

int smp_wake_start(struct rec_source *s, struct st_error *err)
{
    for (size_t i = 0; i < s->wakes.n; i++)
        if (ioctl(s->wakes.at[i].fd, PERF_EVENT_IOC_ENABLE, 0))
            return st_fail_errno(err, ST_EFAIL, "cannot begin to record wake-ups");
    return 0;
}

int smp_wake_alive(const struct rec_source *s, rec_cpu_list *cpus)
{
    const struct timespec moment = {.tv_nsec = 1000 * 1000};
    ST_VEC(uint64_t) before = {0};
    int rc = st_vec_reserve(&before, s->wakes.n + 1);

    for (size_t i = 0; i < s->wakes.n && !rc; i++)
        before.at[before.n++] = rec_perf_enabled_for(s->wakes.at[i].fd);
    nanosleep(&moment, NULL);
    for (size_t i = 0; i < before.n && !rc; i++)
        if (rec_perf_enabled_for(s->wakes.at[i].fd) > before.at[i])
            rc = st_vec_push(cpus, s->wake_rings.at[i].cpu);
    st_vec_free(&before);
    return rc;
}

void smp_wake_detach(struct rec_source *s)
{
    for (size_t i = 0; i < s->wake_rings.n; i++)
        smp_ring_unmap(&s->wake_rings.at[i]);
    for (size_t i = 0; i < s->wakes.n; i++)
        close(s->wakes.at[i].fd);
    st_vec_free(&s->wake_rings);
    st_vec_free(&s->wakes);
    st_vec_free(&s->woken);
}
