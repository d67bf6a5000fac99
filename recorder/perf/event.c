/* perf_event_open and what its refusals mean. */
#include "recorder/perf/event.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int rec_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return rec_perf_event_in_group(attr, pid, cpu, -1);
}

int rec_perf_event_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

void rec_perf_dummy(struct perf_event_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->size = sizeof(*attr);
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_DUMMY;
    attr->sample_period = 1;
    attr->sample_type = REC_SAMPLE_TYPE;
    attr->sample_id_all = 1;
    attr->exclude_kernel = 1;
    attr->exclude_hv = 1;
    attr->watermark = 1;
}

void rec_perf_use_monotonic(struct perf_event_attr *attr)
{
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
}

int rec_perf_paranoid(void)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level = -2;

    if (!f)
        return -2;
    if (fscanf(f, "%d", &level) != 1)
        level = -2;
    fclose(f);
    return level;
}

int rec_perf_refused(const char *what, struct st_error *err)
{
    int why = errno;

    switch (why) {
    case EACCES:
    case EPERM:
        st_fail(err, ST_ECANNOT, "no permission to %s with perf events", what);
        return st_hint(err,
                       "run as root or with CAP_PERFMON; kernel.perf_event_paranoid is %d "
                       "(your own processes need at most 2)",
                       rec_perf_paranoid());
    case EMFILE:
    case ENFILE:
        st_fail(err, ST_ECANNOT, "too many open files: cannot %s", what);
        return st_hint(
            err, "every thread takes an event a CPU: raise the limit (ulimit -n) or watch fewer threads");
    case ESRCH:
        return st_fail(err, ST_EFAIL, "cannot %s: it has ended", what);
    case ENOSYS:
        return st_fail(err, ST_ECANNOT, "cannot %s: this kernel was built without perf events", what);
    default:
        return st_fail_errno(err, ST_EFAIL, "cannot %s with perf events", what);
    }
}

int rec_perf_id(int fd, uint64_t *id, struct st_error *err)
{
    if (ioctl(fd, PERF_EVENT_IOC_ID, id))
        return st_fail_errno(err, ST_EFAIL, "cannot read a perf event's id");
    return 0;
}

bool rec_perf_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

uint64_t rec_perf_enabled_for(int fd)
{
    struct {
        uint64_t value, enabled;
    } now = {0};

    return read(fd, &now, sizeof(now)) == (ssize_t)sizeof(now) ? now.enabled : 0;
}
