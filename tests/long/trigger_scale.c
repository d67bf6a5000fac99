/* Triggers at scale: 1,000,000 context switches, 10,000 threads, 1,000 births a second. A process is watched
 * by `offcpu`, `runq`, `syscall` and `busy` at once while it does all of that and stalls a known number of
 * times; every stall must be told, and the kernel's memory for the BPF maps must not grow. Prints a line a
 * figure; exit 1 when something was missed, lost without a count, or grew. Usage: trigger_scale [SECONDS] */
#include "base/log.h"
#include "triggers/trigger.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY       10000
#define BIRTHS     1010 /* a second */
#define STALLS     101
#define SWITCHES   1000000
#define CPUS       64
#define RING_PAGES 1024
#define MS         1000000ull

struct shared {
    _Atomic int threads, births, stalls, done;

    _Atomic long switches, birth_ns; /* ns in which there were births */

    _Atomic int go;
};

static struct shared *shared;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nap(long ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    nanosleep(&t, NULL);
}

/* ---- the process that is watched ---- */

static pthread_attr_t small;
static pthread_mutex_t parked = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static void *park(void *unused)
{
    pthread_mutex_lock(&parked);
    shared->threads++;
    while (!shared->done)
        pthread_cond_wait(&ended, &parked);
    pthread_mutex_unlock(&parked);
    return unused;
}

static void *live_shortly(void *unused)
{
    shared->births++;
    return unused;
}

static void *give_birth(void *unused)
{
    uint64_t begun = now_ns(), next = begun;

    while (!shared->done) {
        pthread_t t;

        if (!pthread_create(&t, &small, live_shortly, NULL))
            pthread_detach(t);
        shared->birth_ns = (long)(now_ns() - begun);
        next += 1000000000 / BIRTHS;
        if (now_ns() < next)
            nap((long)(next - now_ns()));
    }
    return unused;
}

static int ping[2], pong[2];

static void *answer(void *unused)
{
    char byte;

    while (read(ping[0], &byte, 1) == 1 && write(pong[1], &byte, 1) == 1)
        ;
    return unused;
}

/* Two threads that wake each other: two switches a turn. */
static void *ask(void *unused)
{
    char byte = 0;

    for (shared->switches = 0; shared->switches < SWITCHES; shared->switches += 2)
        if (write(ping[1], &byte, 1) != 1 || read(pong[0], &byte, 1) != 1)
            break;
    return unused;
}

/* Waits 40 ms in recvfrom of a socket that never gets data: a time-out, 101 times. */
static void *stall(void *unused)
{
    struct timeval limit = {0, 40000};
    int pair[2];
    char byte;

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ||
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
        return unused;
    prctl(PR_SET_NAME, "staller");
    for (int i = 0; i < STALLS; i++) {
        recvfrom(pair[0], &byte, 1, 0, NULL, NULL);
        shared->stalls++;
        nap(20 * (long)MS);
    }
    return unused;
}

static void be_watched(void)
{
    pthread_t t, all[4];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768);
    while (!shared->go)
        nap(10 * (long)MS);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&t, &small, park, NULL))
            break;
    if (pipe(ping) || pipe(pong))
        _exit(1);
    pthread_create(&t, &small, answer, NULL);
    pthread_create(&all[0], NULL, ask, NULL);
    pthread_create(&all[1], NULL, stall, NULL);
    pthread_create(&all[2], NULL, give_birth, NULL);
    pthread_join(all[0], NULL);
    pthread_join(all[1], NULL);
    shared->done = 1;
    pause();
}

/* ---- the watcher ---- */

struct watcher {
    struct trg_set *set;

    int cpus, fd[CPUS];

    struct perf_event_mmap_page *ring[CPUS];

    uint64_t lost, told[16]; /* by kind: of the thread that stalls */
};

static void look_at(struct watcher *w, const char *sample)
{
    _Alignas(8) char raw[sizeof(struct st_stall_record) + 64];
    const struct st_stall_record *r;
    uint32_t size;

    memcpy(&size, sample + 8 + 8 + 8 + 8 + 8, sizeof(size));
    if (size > sizeof(raw))
        return;
    memcpy(raw, sample + 8 + 8 + 8 + 8 + 8 + 4, size);
    if (trg_record(raw, size, &r, NULL) == 1 && r->kind < 16 && !strcmp(r->comm, "staller") &&
        !(r->flags & ST_STALL_COMPLETION))
        w->told[r->kind]++;
}

static void drain(struct watcher *w)
{
    for (int cpu = 0; cpu < w->cpus; cpu++) {
        struct perf_event_mmap_page *page = w->ring[cpu];
        const char *data = (const char *)page + 4096;
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), size = RING_PAGES * 4096ull;
        char bytes[8192];

        for (uint64_t at = page->data_tail; at < head;) {
            struct perf_event_header header;

            for (size_t i = 0; i < sizeof(header); i++)
                ((char *)&header)[i] = data[(at + i) % size];
            for (size_t i = 0; i < header.size && i < sizeof(bytes); i++)
                bytes[i] = data[(at + i) % size];
            if (header.type == PERF_RECORD_SAMPLE)
                look_at(w, bytes);
            if (header.type == PERF_RECORD_LOST)
                w->lost += *(uint64_t *)(void *)(bytes + 16);
            at += header.size;
        }
        __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    }
}

static void die(const struct st_error *err)
{
    fprintf(stderr, "trigger_scale: %s\n", err->text);
    exit(2);
}

static void arm(struct watcher *w, struct st_target *target)
{
    static const char *const texts[] = {"offcpu>30ms,state=sleeping", "runq>10s", "syscall:recvfrom>30ms",
                                        "busy>10s"};
    static struct trg_config config;
    struct perf_event_attr attr;
    struct st_error err = {0};

    config.target = target;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (trg_add(&w->set, texts[i], &err))
            die(&err);
    if (trg_open(w->set, &config, &err))
        die(&err);
    trg_output_attr(&attr);
    w->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < w->cpus && cpu < CPUS; cpu++) {
        w->fd[cpu] = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        w->ring[cpu] =
            mmap(NULL, (RING_PAGES + 1) * 4096ul, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd[cpu], 0);
        if (w->ring[cpu] == MAP_FAILED || trg_set_output(w->set, cpu, w->fd[cpu], &err))
            die(&err);
    }
    if (trg_start(w->set, &err))
        die(&err);
}

/* Memory of this process's BPF maps, in kB: Documentation/filesystems/proc.rst, memlock of /proc/PID/fdinfo.
 */
static long map_memory(void)
{
    long sum = 0;

    for (int fd = 3; fd < 1024; fd++) {
        char path[64], line[128];
        unsigned long bytes;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
            if (sscanf(line, "memlock: %lu", &bytes) == 1)
                sum += (long)(bytes / 1024);
        if (f)
            fclose(f);
    }
    return sum;
}

int main(void)
{
    struct st_target target = {.kind = ST_TARGET_NONE};
    struct watcher w = {.set = NULL};
    struct st_error err = {0};
    uint64_t begun;
    long before = 0, after;
    char text[16];
    pid_t pid;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid = fork();
    if (!pid)
        be_watched();
    snprintf(text, sizeof(text), "%d", pid);
    if (st_target_add_pids(&target, text, &err) || st_target_resolve(&target, &err))
        die(&err);
    arm(&w, &target);
    shared->go = 1;
    begun = now_ns();
    while (!shared->done && now_ns() - begun < 400000 * MS) {
        nap(20 * (long)MS);
        drain(&w);
        if (!before && shared->births > BIRTHS)
            before = map_memory();
    }
    nap(300 * (long)MS);
    drain(&w);
    after = map_memory();
    printf("switches %ld\nthreads_at_once %d\nbirths %d in %.1f s\nstalls %d\n", (long)shared->switches,
           shared->threads, shared->births, (double)shared->birth_ns / 1e9, shared->stalls);
    printf("told_offcpu %lu\ntold_syscall %lu\nlost %lu\nmap_memory_kB %ld then %ld\n",
           (unsigned long)w.told[ST_STALL_OFFCPU], (unsigned long)w.told[ST_STALL_SYSCALL],
           (unsigned long)(w.lost + trg_lost(w.set)), before, after);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    trg_close(w.set);
    return w.told[ST_STALL_OFFCPU] < STALLS || w.told[ST_STALL_SYSCALL] != STALLS ||
           after > before + before / 20;
}
