// What the kernel's AUX rings do, as far as recording builds on it: overwrite mode, DISABLE, threads,
// inherit, limits, pause. Prints facts and ends with 1 where one is not as a recorder needs it. Runs in the
// machine (or on a computer with Intel PT), as root.
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NI   __attribute__((noinline, noclone))
#define RING (64 * 1024u)

static volatile unsigned sink;

NI void step_a(void)
{
    sink++;
}

NI void step_b(void)
{
    sink += 2;
}

static void loop(void (*step)(void), unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        step();
}

static int check(bool ok, const char *what)
{
    if (!ok)
        printf("NOT AS NEEDED: %s\n", what);
    return !ok;
}

static struct probe_ring open_ring(pid_t pid, size_t aux_size)
{
    struct perf_event_attr attr;
    struct probe_ring ring;
    int fd, error;

    probe_pt_attr(&attr, false);
    fd = probe_open(&attr, pid, -1, -1);
    probe_must(fd >= 0, "perf_event_open(intel_pt, one thread)");
    error = probe_map(&ring, fd, aux_size, true);
    errno = -error;
    probe_must(error == 0, "mmap of the AUX area");
    return ring;
}

/* Records n calls of each step, in their order, and decodes what the ring has. */
static void count_steps(struct probe_ring *ring, struct probe_decode *d, struct probe_count counts[2])
{
    unsigned char *trace;
    size_t size;

    counts[0] = (struct probe_count){.address = (uint64_t)(uintptr_t)step_a};
    counts[1] = (struct probe_count){.address = (uint64_t)(uintptr_t)step_b};
    *d = (struct probe_decode){.counts = counts, .n = 2};
    trace = probe_copy(ring, &size);
    probe_decode(trace, size, d);
    free(trace);
}

/* A ring that did not wrap: aux_head, what DISABLE leaves, and a second recording behind the first. */
static int one_lap(void)
{
    struct probe_ring ring = open_ring(0, RING);
    struct probe_count c[2];
    struct probe_decode d;
    uint64_t before, first, second;
    int bad = 0;

    ioctl(ring.fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(step_a, 1000);
    before = ring.page->aux_head;
    ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    first = ring.page->aux_head;
    count_steps(&ring, &d, c);
    probe_fact("aux_head while running, after DISABLE", "%llu, %llu", (unsigned long long)before,
               (unsigned long long)first);
    probe_fact("1000 calls, ring not wrapped", "%u decoded, %u errors", c[0].entered, d.errors);
    bad |= check(c[0].entered == 1000 && !d.errors, "all calls after DISABLE");
    ioctl(ring.fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(step_b, 500);
    ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    second = ring.page->aux_head;
    count_steps(&ring, &d, c);
    probe_fact("ENABLE again, 500 calls more", "aux_head %llu; %u and %u decoded, %u errors",
               (unsigned long long)second, c[0].entered, c[1].entered, d.errors);
    bad |= check(second > first && c[0].entered == 1000 && c[1].entered == 500, "resumed behind the first");
    probe_unmap(&ring);
    return bad;
}

/* Many laps: aux_head is a place in the ring, and the last calls are all there. */
static int many_laps(void)
{
    struct probe_ring ring = open_ring(0, RING);
    const struct {
        uint64_t offset, size, flags;
    } *aux = NULL;
    struct probe_count c[2];
    struct probe_decode d;
    unsigned n;
    int bad = 0;

    ioctl(ring.fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(step_a, 200000);
    loop(step_b, 1000);
    ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    count_steps(&ring, &d, c);
    n = probe_records(&ring, PERF_RECORD_AUX, (const void **)&aux);
    probe_fact("ring of 64 KiB, wrapped",
               "aux_head %llu; last step's calls %u of 1000, the older's %u, %u errors",
               (unsigned long long)ring.page->aux_head, c[1].entered, c[0].entered, d.errors);
    if (n)
        probe_fact("PERF_RECORD_AUX after DISABLE", "%u; offset %llu size %llu flags %llx", n,
                   (unsigned long long)aux->offset, (unsigned long long)aux->size,
                   (unsigned long long)aux->flags);
    else
        probe_fact("PERF_RECORD_AUX after DISABLE", "none");
    bad |= check(ring.page->aux_head < RING, "aux_head is a place in the ring");
    bad |= check(c[1].entered == 1000, "the last 1000 calls");
    bad |= check(c[0].entered > 1000 && c[0].entered < 200000, "the ring wrapped");
    // The bytes at the seam are the tail of a packet whose head was overwritten: libipt skips to the first
    // PSB.
    bad |= check(d.errors == 0, "no decode error behind the first PSB");
    probe_unmap(&ring);
    return bad;
}

/* Records that pile up while the thread is switched and nobody reads. */
static int records_a_switch(void)
{
    struct probe_ring ring = open_ring(0, RING);
    unsigned aux, start, lost;

    ioctl(ring.fd, PERF_EVENT_IOC_ENABLE, 0);
    for (int i = 0; i < 50; i++)
        usleep(1000);
    ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    aux = probe_records(&ring, PERF_RECORD_AUX, NULL);
    start = probe_records(&ring, PERF_RECORD_ITRACE_START, NULL);
    lost = probe_records(&ring, PERF_RECORD_LOST, NULL);
    probe_fact("50 sleeps", "%u AUX, %u ITRACE_START, %u LOST records", aux, start, lost);
    probe_unmap(&ring);
    return 0;
}

struct worker {
    pthread_t thread;

    pid_t tid;

    int go[2];

    int done[2];
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    char c;

    w->tid = gettid();
    probe_must(write(w->done[1], "r", 1) == 1, "pipe");
    while (read(w->go[0], &c, 1) == 1 && c != 'q') {
        loop(c == 'a' ? step_a : step_b, 3000);
        probe_must(write(w->done[1], "d", 1) == 1, "pipe");
    }
    return NULL;
}

static void tell(struct worker *w, char c)
{
    char r;

    if (c)
        probe_must(write(w->go[1], &c, 1) == 1, "pipe");
    probe_must(c == 'q' || read(w->done[0], &r, 1) == 1, "pipe");
}

/* One ring a thread: a busy sibling leaves the quiet thread's history alone. DISABLE while the thread is
 * blocked. */
static int ring_a_thread(void)
{
    struct worker w[2] = {0};
    struct probe_ring ring[2];
    struct probe_count c[2];
    struct probe_decode d;
    uint64_t start, took;
    int bad = 0;

    for (int i = 0; i < 2; i++) {
        probe_must(!pipe(w[i].go) && !pipe(w[i].done), "pipe");
        pthread_create(&w[i].thread, NULL, worker_main, &w[i]);
        tell(&w[i], 0);
        ring[i] = open_ring(w[i].tid, RING);
        ioctl(ring[i].fd, PERF_EVENT_IOC_ENABLE, 0);
    }
    tell(&w[0], 'a');
    for (int i = 0; i < 100; i++)
        tell(&w[1], 'b');
    start = probe_now();
    for (int i = 0; i < 2; i++)
        ioctl(ring[i].fd, PERF_EVENT_IOC_DISABLE, 0);
    took = probe_now() - start;
    count_steps(&ring[0], &d, c);
    probe_fact("ring a thread, sibling made 300000 calls",
               "quiet thread %u of 3000, sibling's in it %u, %u errors", c[0].entered, c[1].entered,
               d.errors);
    probe_fact("DISABLE of two blocked threads' rings", "%llu us", (unsigned long long)took / 1000);
    bad |= check(c[0].entered == 3000 && c[1].entered == 0, "quiet thread's calls");
    for (int i = 0; i < 2; i++) {
        tell(&w[i], 'q');
        pthread_join(w[i].thread, NULL);
        probe_unmap(&ring[i]);
    }
    return bad;
}

/* Which ways of watching all threads can be mapped. */
static int inherit(void)
{
    struct perf_event_attr attr;
    struct probe_ring ring;
    int fd, any, cpu0;

    probe_pt_attr(&attr, false);
    attr.inherit = 1;
    fd = probe_open(&attr, 0, -1, -1);
    any = fd < 0 ? -errno : probe_map(&ring, fd, RING, true);
    if (any == 0)
        probe_unmap(&ring);
    else
        close(fd);
    fd = probe_open(&attr, 0, 0, -1);
    cpu0 = fd < 0 ? -errno : probe_map(&ring, fd, RING, true);
    if (cpu0 == 0)
        probe_unmap(&ring);
    probe_fact("mmap with inherit", "any CPU: %s; one CPU: %s", strerror(-any), strerror(-cpu0));
    return check(cpu0 == 0, "inherit on one CPU");
}

/* A second intel_pt event beside the first: exclusive or not. */
static int exclusive(void)
{
    struct perf_event_attr attr;
    struct probe_ring a = open_ring(0, RING);
    int thread_again, cpu_wide;

    probe_pt_attr(&attr, false);
    thread_again = probe_open(&attr, 0, -1, -1);
    probe_fact("second event on the same thread", "%s", thread_again < 0 ? strerror(errno) : "opens");
    cpu_wide = probe_open(&attr, -1, 0, -1);
    probe_fact("CPU-wide event beside a thread's", "%s", cpu_wide < 0 ? strerror(errno) : "opens");
    close(thread_again);
    close(cpu_wide);
    probe_unmap(&a);
    return 0;
}

static void set_paranoid(int level)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "w");

    probe_must(f && fprintf(f, "%d", level) > 0 && !fclose(f), "perf_event_paranoid");
}

/* The largest ring a user without privilege gets, with the default limits. */
static int unprivileged(int paranoid)
{
    struct rlimit limit = {8u << 20, 8u << 20};
    pid_t pid;
    int status;

    set_paranoid(paranoid);
    pid = fork();
    if (pid == 0) {
        struct perf_event_attr attr;
        struct probe_ring ring;
        char text[256] = "";

        probe_must(!setrlimit(RLIMIT_MEMLOCK, &limit) && !setgid(65534) && !setuid(65534), "dropping root");
        for (size_t size = 64u << 20; size >= 4096 && strlen(text) < 200; size /= 2) {
            int fd, error;

            probe_pt_attr(&attr, false);
            fd = probe_open(&attr, 0, -1, -1);
            error = fd < 0 ? -errno : probe_map(&ring, fd, size, true);
            snprintf(text + strlen(text), sizeof text - strlen(text), " %zuK %s;", size >> 10,
                     strerror(-error));
            if (error == 0)
                break;
            close(fd);
        }
        probe_fact("user nobody, RLIMIT_MEMLOCK 8 MiB", "paranoid %d:%s", paranoid, text);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    set_paranoid(-1);
    return check(pid > 0 && status == 0, "the child that dropped root");
}

/* An event in the group of a PT event whose overflow pauses or resumes it. */
static int open_action(int type, uint64_t config, uint64_t period, uint32_t action, int group)
{
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = (uint32_t)type;
    attr.config = config;
    attr.sample_period = period;
    attr.disabled = action == PROBE_AUX_RESUME;
    attr.__reserved_3 = action;
    return probe_open(&attr, 0, -1, group);
}

/* Calls before a pause, the pause by a system call's tracepoint, calls after it; then DISABLE. */
static int pause_by_syscall(struct probe_ring *ring)
{
    struct probe_count c[2];
    struct probe_decode d;

    ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(step_a, 1000);
    syscall(SYS_getpid);
    loop(step_b, 1000);
    ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
    count_steps(ring, &d, c);
    probe_fact("aux_pause", "yes; calls before the pause %u of 1000, after it %u, %u errors", c[0].entered,
               c[1].entered, d.errors);
    return check(c[0].entered == 1000 && c[1].entered == 0 && !d.errors, "paused at once");
}

/* After a pause: how many of 700 calls come into the ring when `resume` (or nothing) was tried. In a resume
 * by the clock the event is armed while the PT event is off: ENABLE of the leader then schedules the whole
 * group. */
static unsigned calls_after(struct probe_ring *ring, int resume_fd, bool while_on)
{
    struct probe_count c[2];
    struct probe_decode d;

    if (resume_fd >= 0 && !while_on)
        ioctl(resume_fd, PERF_EVENT_IOC_REFRESH, 1);
    ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
    if (resume_fd >= 0 && while_on)
        ioctl(resume_fd, PERF_EVENT_IOC_REFRESH, 1);
    loop(step_a, 2000000);
    loop(step_b, 700);
    ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
    count_steps(ring, &d, c);
    return c[1].entered;
}

/* aux_pause: whether the kernel knows it, whether DISABLE and ENABLE end a pause, and what does. */
static int pause_resume(void)
{
    struct probe_ring ring = open_ring(0, RING);
    int pause_fd, resume_fd, bad = 0;
    unsigned on, off;

    pause_fd = open_action(PERF_TYPE_TRACEPOINT, probe_tracepoint("syscalls/sys_enter_getpid"), 1,
                           PROBE_AUX_PAUSE, ring.fd);
    if (pause_fd < 0) {
        probe_fact("aux_pause", "no (%s)", strerror(errno));
        probe_unmap(&ring);
        return 0;
    }
    resume_fd = open_action(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 10000, PROBE_AUX_RESUME, ring.fd);
    probe_must(resume_fd >= 0, "perf_event_open(cpu-clock, aux_resume)");
    bad |= pause_by_syscall(&ring);
    probe_fact("DISABLE and ENABLE end a pause", "%s", calls_after(&ring, -1, false) ? "yes" : "no");
    on = calls_after(&ring, resume_fd, true);
    probe_fact("resumed by a cpu-clock event, REFRESH behind ENABLE", "%u of 700 calls", on);
    if (!on) {
        off = calls_after(&ring, resume_fd, false);
        probe_fact("resumed by a cpu-clock event, REFRESH before ENABLE", "%u of 700 calls", off);
        bad |= check(off == 700, "resumed");
    }
    close(resume_fd);
    close(pause_fd);
    probe_unmap(&ring);
    return bad;
}

/* The file of this program and step_b's offset in it, as address filters and uprobes want them. */
static uint64_t step_b_in_file(char *path, size_t size)
{
    unsigned long long low, high, offset, at = (uintptr_t)step_b;
    FILE *maps = fopen("/proc/self/maps", "r");
    uint64_t found = 0;
    char line[512];

    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%llx %*s %llx", &low, &high, &offset) == 3 && at >= low && at < high)
            found = at - low + offset;
    if (maps)
        fclose(maps);
    probe_must(found && readlink("/proc/self/exe", path, size - 1) > 0, "this program in /proc/self/maps");
    return found;
}

/* Calls of a, one of b, calls of a with a sleep among them; what the ring has of them, beside `what`. */
static int stopped_by(struct probe_ring *ring, const char *what)
{
    struct probe_count c[2];
    struct probe_decode d;

    ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
    loop(step_a, 1000);
    step_b();
    loop(step_a, 500);
    usleep(1000);
    loop(step_a, 200);
    ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
    count_steps(ring, &d, c);
    probe_fact(what, "%u of 1000 calls before, 500 after, 200 after a switch; %u errors", c[0].entered,
               d.errors);
    return check(c[0].entered == 1000 || c[0].entered == 1200, what);
}

/* Without BPF: the function itself stops PT, by hardware TraceStop, or by a breakpoint or a uprobe with
 * aux_pause. */
static int stop_at_function(void)
{
    char path[512] = "", filter[600];
    uint64_t offset = step_b_in_file(path, sizeof path);
    struct probe_ring ring = open_ring(0, RING);
    struct perf_event_attr attr;
    int fd, bad;

    snprintf(filter, sizeof filter, "stop 0x%llx/4@%s", (unsigned long long)offset, path);
    probe_must(!ioctl(ring.fd, PERF_EVENT_IOC_SET_FILTER, filter), "address filter stop");
    bad = stopped_by(&ring, "TraceStop at a function");
    probe_unmap(&ring);

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.bp_type = 4; // HW_BREAKPOINT_X
    attr.bp_addr = (uintptr_t)step_b;
    attr.bp_len = sizeof(long);
    attr.sample_period = 1;
    attr.exclude_kernel = 1;
    attr.__reserved_3 = PROBE_AUX_PAUSE;
    ring = open_ring(0, RING);
    fd = probe_open(&attr, 0, -1, ring.fd);
    if (fd < 0 && errno == EINVAL) {
        probe_unmap(&ring);
        return bad;
    }
    probe_must(fd >= 0, "a breakpoint with aux_pause");
    bad |= stopped_by(&ring, "breakpoint with aux_pause at a function");
    close(fd);
    probe_unmap(&ring);

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = probe_pmu_type("uprobe");
    attr.config1 = (uintptr_t)path;
    attr.config2 = offset;
    attr.sample_period = 1;
    attr.__reserved_3 = PROBE_AUX_PAUSE;
    ring = open_ring(0, RING);
    fd = probe_open(&attr, 0, -1, ring.fd);
    probe_must(fd >= 0, "a uprobe with aux_pause");
    bad |= stopped_by(&ring, "uprobe with aux_pause at a function");
    close(fd);
    probe_unmap(&ring);
    return bad;
}

int main(void)
{
    int bad = 0;

    bad |= one_lap();
    bad |= many_laps();
    bad |= records_a_switch();
    bad |= ring_a_thread();
    bad |= inherit();
    bad |= exclusive();
    bad |= unprivileged(2);
    bad |= unprivileged(3);
    bad |= pause_resume();
    bad |= stop_at_function();
    return bad;
}
