/* Stopping Intel PT from within the kernel. */
#include "recorder/sources/intel_pt/pause.h"
#include "recorder/perf/event.h"
#include "recorder/sources/intel_pt/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* perf_event_attr's word `aux_action`, behind aux_sample_size, and its bits (Linux 6.13,
 * include/uapi/linux/perf_event.h); older headers have it as reserved. */
enum { AUX_ACTION = 116, AUX_PAUSE = 2, AUX_RESUME = 4 };

enum { RESUME_AFTER = 10000 /* ns of the thread's own time */ };

static void set_action(struct perf_event_attr *attr, uint32_t action)
{
    memcpy((char *)attr + AUX_ACTION, &action, sizeof(action));
}

static int open_in_group(const struct perf_event_attr *attr, pid_t tid, int cpu, int leader)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

static bool printk_tracepoint(uint64_t *id)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    unsigned long n = 0;

    for (size_t i = 0; !n && i < sizeof(places) / sizeof(places[0]); i++) {
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "%s/events/bpf_trace/bpf_trace_printk/id", places[i]);
        f = fopen(path, "re");
        if (f && fscanf(f, "%lu", &n) != 1)
            n = 0;
        if (f)
            fclose(f);
    }
    *id = n;
    return n != 0;
}

static int open_pausing(const struct perf_event_attr *pt, pid_t tid, int cpu, int leader)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_TRACEPOINT,
        .sample_period = 1,
        .inherit = pt->inherit,
    };
    uint64_t id;
    char filter[64];
    int fd;

    if (!printk_tracepoint(&id)) {
        errno = ENOENT;
        return -1;
    }
    attr.config = id;
    set_action(&attr, AUX_PAUSE);
    fd = open_in_group(&attr, tid, cpu, leader);
    if (fd < 0)
        return -1;
    snprintf(filter, sizeof(filter), "bpf_string ~ \"stalltrap %d: *\"", getpid());
    if (!ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
        return fd;
    close(fd);
    return -1;
}

static int open_resuming(const struct perf_event_attr *pt, pid_t tid, int cpu, int leader)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = RESUME_AFTER,
        .disabled = 1,
        .inherit = pt->inherit,
    };

    set_action(&attr, AUX_RESUME);
    return open_in_group(&attr, tid, cpu, leader);
}

int pt_pause_open(struct pt_pause *pause, int leader, const struct perf_event_attr *attr, pid_t tid, int cpu)
{
    *pause = (struct pt_pause){.fd = open_pausing(attr, tid, cpu, leader), .resume_fd = -1};
    if (pause->fd < 0)
        return -1;
    pause->resume_fd = open_resuming(attr, tid, cpu, leader);
    if (pause->resume_fd >= 0)
        return 0;
    pt_pause_close(pause);
    return -1;
}

int pt_pause_probe(struct st_error *err)
{
    struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 1, .exclude_kernel = 1};
    struct pt_pause pause;
    struct pt_pmu pmu;
    int leader, rc = pt_pmu_read(PT_PMU_FOLDER, &pmu, err);

    if (rc)
        return rc;
    attr.type = pmu.type;
    attr.config = pmu.tsc;
    leader = rec_perf_event(&attr, 0, -1);
    if (leader < 0)
        return rec_perf_refused("record this process itself with Intel PT", err);
    rc = pt_pause_open(&pause, leader, &attr, 0, -1);
    if (rc && errno == EINVAL)
        rc = st_fail(err, ST_ECANNOT, "this kernel has no aux_pause (Linux 6.13)");
    else if (rc && (errno == EACCES || errno == ENOENT))
        rc = st_fail(err, ST_ECANNOT, "the tracepoint bpf_trace:bpf_trace_printk is not there for this user");
    else if (rc)
        rc = st_fail_errno(err, ST_ECANNOT, "cannot open an event with aux_pause");
    else
        pt_pause_close(&pause);
    close(leader);
    return rc;
}

bool pt_pause_happened(struct pt_pause *pause)
{
    uint64_t count, before = pause->seen;

    if (pause->fd < 0 || read(pause->fd, &count, sizeof(count)) != sizeof(count))
        return false;
    pause->seen = count;
    return count != before;
}

bool pt_pause_lift(const struct pt_pause *pause)
{
    return pause->resume_fd < 0 || !ioctl(pause->resume_fd, PERF_EVENT_IOC_REFRESH, 1);
}

void pt_pause_close(struct pt_pause *pause)
{
    int why = errno;

    if (pause->fd >= 0)
        close(pause->fd);
    if (pause->resume_fd >= 0)
        close(pause->resume_fd);
    pause->fd = pause->resume_fd = -1;
    errno = why;
}
