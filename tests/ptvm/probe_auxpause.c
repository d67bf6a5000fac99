// Whether a BPF predicate can stop Intel PT in the kernel, and where it has to fire: a child makes 3000
// calls, sleeps 40 ms and makes 2000 calls; "off its CPU for over 20 ms" pauses PT through aux_pause on
// bpf_trace:bpf_trace_printk. For each place and for rings of a thread and of the CPUs it prints how many of
// the calls are in the ring. `probe_auxpause needed` tries those only that recording uses. Exit 0, or 1 where
// one of these fails.
#include "probe_auxpause.h"
#include "probe.h"

#include "probe_auxpause.skel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define NI     __attribute__((noinline, noclone))
#define BEFORE 3000u
#define AFTER  2000u
#define RING   (4u << 20)
#define CPU    1 /* the child's own; everything else is kept on CPU 0 */

static const char *const place_names[PLACES] = {"sched_switch", "kprobe:finish_task_switch", "fexit:schedule",
                                                "sys_exit", "timer of 0 ns"};

static volatile unsigned sink;

NI void call_before(void)
{
    sink++;
}

NI void call_after(void)
{
    sink += 2;
}

enum rings {
    RING_THREAD,  /* one thread, any CPU */
    RING_CPU,     /* all that runs on a CPU */
    RING_INHERIT, /* a process and what it starts, on one CPU */
    RINGS
};

static const char *const ring_names[RINGS] = {"a thread", "a CPU", "inherit"};

struct trial {
    enum place place;

    enum rings rings;

    bool kernel;

    /* results */
    unsigned before;

    unsigned after;

    uint64_t kernel_after; /* kernel calls behind bpf_trace_printk's entry */

    uint64_t kernel_enabled; /* and since the thread was switched in */

    int hits;

    long fired_us; /* from the predicate to the tracepoint */

    bool on_target; /* the target was current there */

    unsigned errors;
};

static void stay_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    probe_must(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

struct child {
    struct probe_auxpause_bpf *bpf; /* its variables are in memory shared with the child */

    pid_t pid;

    pid_t worker;

    int to[2];

    int from[2];
};

static void *work(void *arg)
{
    struct child *child = arg;
    pid_t tid = gettid();
    char c;

    if (write(child->from[1], &tid, sizeof tid) != sizeof tid || read(child->to[0], &c, 1) != 1)
        _exit(1);
    for (unsigned i = 0; i < BEFORE; i++)
        call_before();
    child->bpf->bss->target = tid;
    usleep(40000);
    child->bpf->bss->target = 0; // other waits, of a slow machine, do not count
    for (unsigned i = 0; i < AFTER; i++)
        call_after();
    return NULL;
}

/* A process that creates its working thread when told, which goes to work when told. */
static void start_child(struct child *child)
{
    pthread_t thread;
    char c;

    probe_must(!pipe(child->to) && !pipe(child->from), "pipe");
    fflush(stdout);
    child->pid = fork();
    if (child->pid)
        return;
    stay_on(CPU);
    close(child->to[1]);
    if (read(child->to[0], &c, 1) != 1 || pthread_create(&thread, NULL, work, child))
        _exit(1);
    pthread_join(thread, NULL);
    _exit(0);
}

static void tell(struct child *child)
{
    probe_must(write(child->to[1], "g", 1) == 1, "pipe");
}

static void create_worker(struct child *child)
{
    tell(child);
    probe_must(read(child->from[0], &child->worker, sizeof child->worker) == sizeof child->worker, "pipe");
}

static void end_child(struct child *child)
{
    for (int i = 0; i < 2; i++) {
        close(child->to[i]);
        close(child->from[i]);
    }
    waitpid(child->pid, NULL, 0);
}

/* The PT event and, as its group's second, the one that pauses it. Returns the latter, or -errno. */
static int open_pair(struct probe_ring *ring, const struct trial *t, pid_t pid)
{
    int cpu = t->rings == RING_THREAD ? -1 : CPU;
    struct perf_event_attr attr;
    int fd, pause_fd;

    if (t->rings == RING_CPU)
        pid = -1;
    probe_pt_attr(&attr, t->kernel);
    attr.inherit = t->rings == RING_INHERIT;
    fd = probe_open(&attr, pid, cpu, -1);
    probe_must(fd >= 0 && probe_map(ring, fd, RING, true) == 0, "the intel_pt event");
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = probe_tracepoint("bpf_trace/bpf_trace_printk");
    attr.sample_period = 1;
    attr.inherit = t->rings == RING_INHERIT;
    attr.__reserved_3 = PROBE_AUX_PAUSE;
    pause_fd = probe_open(&attr, pid, cpu, fd);
    if (pause_fd < 0) {
        pause_fd = -errno;
        probe_unmap(ring);
        return pause_fd;
    }
    probe_must(!ioctl(pause_fd, PERF_EVENT_IOC_SET_FILTER, "bpf_string ~ \"stalltrap*\""),
               "the event's filter");
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    return pause_fd;
}

/* NULL when the kernel refuses the programs of a place. */
static struct probe_auxpause_bpf *load(enum place place)
{
    struct probe_auxpause_bpf *bpf = probe_auxpause_bpf__open();

    probe_must(bpf != NULL, "the BPF object");
    bpf->rodata->threshold_ns = 20000000;
    bpf->rodata->place = place;
    bpf_program__set_autoload(bpf->progs.on_sys_exit, place == AT_SYS_EXIT);
    bpf_program__set_autoload(bpf->progs.on_schedule, place == AT_SCHEDULE);
    bpf_program__set_autoload(bpf->progs.on_finish, place == AT_FINISH);
    if (probe_auxpause_bpf__load(bpf) || probe_auxpause_bpf__attach(bpf)) {
        probe_auxpause_bpf__destroy(bpf);
        return NULL;
    }
    return bpf;
}

/* Which programs this kernel takes, also where it has no aux_pause. */
static int show_programs(void)
{
    int bad = 0;

    for (int place = 0; place < PLACES; place++) {
        struct probe_auxpause_bpf *bpf = load((enum place)place);

        probe_fact(place_names[place], "%s", bpf ? "loads and attaches" : "refused");
        bad |= !bpf;
        probe_auxpause_bpf__destroy(bpf);
    }
    return bad;
}

static void decode_into(struct trial *t, const struct probe_ring *ring)
{
    struct probe_count c[2] = {{.address = (uint64_t)(uintptr_t)call_before},
                               {.address = (uint64_t)(uintptr_t)call_after}};
    struct probe_decode d = {.counts = c, .n = 2, .after = t->kernel ? probe_ksym("bpf_trace_printk") : 0};
    unsigned char *trace;
    size_t size;

    trace = probe_copy(ring, &size);
    probe_decode(trace, size, &d);
    free(trace);
    t->before += c[0].entered;
    t->after += c[1].entered;
    t->kernel_after = d.kernel_calls_after;
    t->kernel_enabled = d.kernel_calls_enabled;
    t->errors += d.errors;
}

/* Returns 0, or -errno where the kernel has no aux_pause. */
static int run(struct trial *t)
{
    // The programs first of all: they change the kernel's code, and what is traced is decoded with the code
    // of the end.
    struct child child = {.bpf = load(t->place)};
    struct probe_auxpause_bpf__bss *result;
    struct probe_ring ring;
    int pause_fd = 0;

    probe_must(child.bpf != NULL, place_names[t->place]);
    result = child.bpf->bss;
    start_child(&child);
    if (t->rings != RING_THREAD)
        pause_fd = open_pair(&ring, t, child.pid);
    create_worker(&child);
    if (t->rings == RING_THREAD)
        pause_fd = open_pair(&ring, t, child.worker);
    tell(&child);
    end_child(&child);
    if (pause_fd < 0) {
        probe_auxpause_bpf__destroy(child.bpf);
        return pause_fd;
    }
    ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    t->hits = result->hits;
    t->on_target = result->fired_on == child.worker;
    t->fired_us = result->fired_ns ? (long)(result->fired_ns - result->hit_ns) / 1000 : -1;
    decode_into(t, &ring);
    close(pause_fd);
    probe_unmap(&ring);
    probe_auxpause_bpf__destroy(child.bpf);
    return 0;
}

/* Ways that recording relies on: at the end of the system call, as schedule() returns, by a timer, with a
 * ring a thread. */
static bool needed(const struct trial *t)
{
    return t->place != AT_SWITCH && t->place != AT_FINISH && t->place != AT_TIMER && t->rings != RING_CPU;
}

/* aux_pause is in Linux since 6.13. */
static bool kernel_has_it(void)
{
    struct utsname name;
    int major = 0, minor = 0;

    probe_must(!uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2, "uname");
    return major > 6 || (major == 6 && minor >= 13);
}

static int show(struct trial *t)
{
    int error = run(t);
    bool stopped;

    if (error) {
        probe_fact("aux_pause", "no (%s)", strerror(-error));
        return 2;
    }
    stopped = t->before == BEFORE && t->after == 0;
    printf("%-26s %-9s %-11s %6u %6u %6s %8ld %s", place_names[t->place], ring_names[t->rings],
           t->kernel ? "user+kernel" : "user", t->before, t->after, stopped ? "yes" : "NO", t->fired_us,
           t->on_target ? "target" : "other");
    if (t->kernel)
        printf("  %llu kernel calls after firing, %llu since switched in",
               (unsigned long long)t->kernel_after, (unsigned long long)t->kernel_enabled);
    printf("  %d hits, %u errors\n", t->hits, t->errors);
    fflush(stdout);
    return !t->hits || (needed(t) && !stopped);
}

int main(int argc, char **argv)
{
    bool all = argc < 2 || strcmp(argv[1], "needed") != 0;
    int bad;

    stay_on(0);
    bad = show_programs();
    printf("%-26s %-9s %-11s %6s %6s %6s %8s %s\n", "fired at", "ring", "traced", "before", "after", "paused",
           "us later", "on");
    for (int kernel = 0; kernel < 2; kernel++)
        for (int rings = 0; rings < RINGS; rings++) {
            // User and kernel of a CPU hold other processes' code too, which is not followed here.
            if (kernel && rings == RING_CPU)
                continue;
            for (int place = 0; place < PLACES; place++) {
                struct trial t = {.place = (enum place)place, .rings = (enum rings)rings, .kernel = kernel};
                int result = all || needed(&t) ? show(&t) : 0;

                if (result == 2)
                    return bad || kernel_has_it();
                bad |= result;
            }
        }
    return bad;
}
