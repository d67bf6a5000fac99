/* CPUs whose events have died: the time for which they were enabled stands still. */
#include "recorder/perf/cpu_watch.h"
#include "recorder/perf/event.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int watch_cpu(struct rec_cpu_watch *w, int cpu)
{
    struct perf_event_attr attr;
    int fd;

    rec_perf_dummy(&attr);
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    fd = rec_perf_event(&attr, -1, cpu);
    if (fd < 0)
        return 0;
    if (!st_vec_push(&w->fds, fd) && !st_vec_push(&w->cpus, cpu))
        return 0;
    close(fd);
    return -1;
}

int rec_cpu_watch_open(struct rec_cpu_watch *w, const rec_cpu_list *cpus, struct st_error *err)
{
    int rc = 0;

    *w = (struct rec_cpu_watch){0};
    if (st_vec_reserve(&w->fds, cpus->n) || st_vec_reserve(&w->cpus, cpus->n))
        rc = -1;
    for (size_t i = 0; !rc && i < cpus->n; i++)
        rc = watch_cpu(w, cpus->at[i]);
    if (!rc)
        return 0;
    rec_cpu_watch_close(w);
    return st_nomem(err, "the list of CPUs");
}

const char *rec_cpu_watch_dead(const struct rec_cpu_watch *w, char *text, size_t size)
{
    const struct timespec moment = {.tv_nsec = 1000 * 1000};
    ST_VEC(uint64_t) before = {0};
    rec_cpu_list alive = {0};
    int rc = st_vec_reserve(&before, w->fds.n + 1);

    text[0] = '\0';
    for (size_t i = 0; !rc && i < w->fds.n; i++)
        before.at[before.n++] = rec_perf_enabled_for(w->fds.at[i]);
    nanosleep(&moment, NULL);
    for (size_t i = 0; !rc && i < before.n; i++)
        if (rec_perf_enabled_for(w->fds.at[i]) > before.at[i])
            rc = st_vec_push(&alive, w->cpus.at[i]);
    if (!rc)
        rec_cpus_differ(&w->cpus, &alive, text, size);
    st_vec_free(&before);
    st_vec_free(&alive);
    return text;
}

void rec_cpu_watch_close(struct rec_cpu_watch *w)
{
    for (size_t i = 0; i < w->fds.n; i++)
        close(w->fds.at[i]);
    st_vec_free(&w->fds);
    st_vec_free(&w->cpus);
}
