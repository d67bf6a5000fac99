/* Tracepoints through perf's rings. */
#include "observer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES   256
#define TRACEFS "/sys/kernel/tracing"

bool observer_possible(void)
{
    const char *event = TRACEFS "/events/sched/sched_switch/id";

    /* Who comes first mounts it, as perf does: the order of tests must not decide which of them run. */
    if (!access(event, R_OK) || (!mount("tracefs", TRACEFS, "tracefs", 0, NULL) && !access(event, R_OK)))
        return true;
    print_message("skipped: tracefs is not mounted, and cannot be: %s\n", strerror(errno));
    return false;
}

static uint64_t event_id(const char *event)
{
    char path[128];
    unsigned long id = 0;
    FILE *f;

    snprintf(path, sizeof(path), TRACEFS "/events/%s/id", event);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &id), 1);
    fclose(f);
    return id;
}

static void add(struct observer *o, struct perf_event_attr *attr, const char *filter, int pid)
{
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

    attr->size = sizeof(*attr);
    attr->sample_period = 1;
    attr->sample_type =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
    attr->disabled = 1;

    assert_true(o->events < OBSERVER_EVENTS);
    for (int cpu = 0; cpu < cpus; cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, attr, pid ? pid : -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        void *ring;

        assert_true(fd >= 0);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ID, &o->ids[o->events][cpu]), 0);
        if (filter)
            assert_int_equal(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter), 0);
        ring = mmap(NULL, (size_t)(PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(ring != MAP_FAILED);
        assert_int_equal(st_vec_push(&o->fds, fd), 0);
        assert_int_equal(st_vec_push(&o->rings, ring), 0);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
    }
    o->events++;
}

void observer_add(struct observer *o, const char *event, const char *filter, int pid)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .config = event_id(event)};

    add(o, &attr, filter, pid);
}

/* The kernel's PMU `uprobe`: config1 is the file, config2 the offset in it, bit 0 of config: the returns. */
void observer_add_function(struct observer *o, const void *function, bool returns)
{
    struct perf_event_attr attr = {.config = returns, .config1 = (uintptr_t) "/proc/self/exe"};
    uint64_t address = (uintptr_t)function, start, end, offset;
    FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
    char line[512];

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &attr.type), 1);
    fclose(f);
    f = fopen("/proc/self/maps", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && address >= start && address < end)
            attr.config2 = address - start + offset;
    fclose(f);
    assert_true(attr.config2);
    add(o, &attr, NULL, 0);
}

/* PERF_RECORD_SAMPLE as asked for above. */
struct sample {
    struct perf_event_header header;

    uint64_t identifier;

    uint32_t pid, tid;

    uint64_t time;

    uint32_t cpu, res;

    uint32_t size;
} __attribute__((packed));

static void take(struct observer *o, const char *bytes)
{
    struct observed e = {0};
    struct sample s;

    memcpy(&s, bytes, sizeof(s));
    e.time = s.time;
    e.pid = s.pid;
    e.tid = s.tid;
    e.cpu = s.cpu;
    for (e.event = 0; e.event < o->events && o->ids[e.event][s.cpu] != s.identifier; e.event++)
        ;
    memcpy(e.raw, bytes + sizeof(s), s.size < sizeof(e.raw) ? s.size : sizeof(e.raw));
    assert_int_equal(st_vec_push(&o->seen, e), 0);
}

static void drain(struct observer *o, struct perf_event_mmap_page *page)
{
    const char *data = (const char *)page + 4096;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), size = PAGES * 4096;

    for (uint64_t at = page->data_tail; at < head;) {
        struct perf_event_header header;
        char bytes[1024];

        for (size_t i = 0; i < sizeof(header); i++)
            ((char *)&header)[i] = data[(at + i) % size];
        assert_true(header.size <= sizeof(bytes));
        for (size_t i = 0; i < header.size; i++)
            bytes[i] = data[(at + i) % size];
        if (header.type == PERF_RECORD_SAMPLE)
            take(o, bytes);
        o->lost += header.type == PERF_RECORD_LOST || header.type == PERF_RECORD_THROTTLE;
        at += header.size;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct observed *x = a, *y = b;

    return x->time < y->time ? -1 : x->time > y->time;
}

void observer_end(struct observer *o)
{
    for (size_t i = 0; i < o->fds.n; i++)
        ioctl(o->fds.at[i], PERF_EVENT_IOC_DISABLE, 0);
    for (size_t i = 0; i < o->rings.n; i++)
        drain(o, o->rings.at[i]);
    qsort(o->seen.at, o->seen.n, sizeof(*o->seen.at), by_time);
    assert_int_equal(o->lost, 0);
}

static void stay_busy(int cpu)
{
    const struct sched_param none = {0};
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_IDLE, &none))
        _exit(1);
    for (;;)
        ;
}

void observer_keep_awake(struct observer *o)
{
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
        pid_t pid = fork();

        if (pid == 0)
            stay_busy(cpu);
        assert_true(pid > 0);
        assert_int_equal(st_vec_push(&o->busy, pid), 0);
    }
}

void observer_free(struct observer *o)
{
    for (size_t i = 0; i < o->busy.n; i++) {
        kill(o->busy.at[i], SIGKILL);
        waitpid(o->busy.at[i], NULL, 0);
    }
    st_vec_free(&o->busy);
    for (size_t i = 0; i < o->fds.n; i++) {
        munmap(o->rings.at[i], (size_t)(PAGES + 1) * 4096);
        close(o->fds.at[i]);
    }
    st_vec_free(&o->fds);
    st_vec_free(&o->rings);
    st_vec_free(&o->seen);
}

int32_t observed_int(const struct observed *e, unsigned offset)
{
    int32_t v;

    memcpy(&v, e->raw + offset, sizeof(v));
    return v;
}
