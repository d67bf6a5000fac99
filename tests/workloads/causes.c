/* causes MODE [ARG]: waits again and again for one reason, each mode for one that is known, in functions with
 * telling names. Modes come in groups: one has the cause that a report is to name, the others nearly have
 * it. */
#include "causes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *argument;

void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "causes: %s: %s\n", what, strerror(errno));
    exit(1);
}

void compute(unsigned ms)
{
    struct timespec now, end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)ms * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

void rest(unsigned ms)
{
    poll(NULL, 0, (int)ms);
}

/* ---- locks, and other things that one waits for by futex ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t taken;

static void sort_the_table(void)
{
    compute(LONG_MS);
}

static void *hold_mutex(void *unused)
{
    prctl(PR_SET_NAME, "holder");
    for (;;) {
        pthread_mutex_lock(&mutex);
        sem_post(&taken);
        sort_the_table();
        pthread_mutex_unlock(&mutex);
        compute(5); /* a rest may last longer than the trigger allows where others have the CPU */
    }
    return unused;
}

static void wait_for_mutex(void)
{
    pthread_t thread;

    sem_init(&taken, 0, 0);
    pthread_create(&thread, NULL, hold_mutex, NULL);
    for (;;) {
        while (sem_trywait(&taken)) /* there is no wait but for the mutex */
            sched_yield();
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *come_late(void *unused)
{
    prctl(PR_SET_NAME, "latecomer");
    for (;;) {
        compute(LONG_MS);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void wait_at_barrier(void)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, come_late, NULL);
    for (;;)
        pthread_barrier_wait(&barrier);
}

static void *post_late(void *unused)
{
    for (;;) {
        compute(LONG_MS);
        sem_post(&taken);
    }
    return unused;
}

static void wait_for_work(void)
{
    pthread_t thread;

    sem_init(&taken, 0, 0);
    pthread_create(&thread, NULL, post_late, NULL);
    for (;;)
        sem_wait(&taken);
}

/* ---- the disk; the argument is a folder ---- */

static int open_file(const char *name, int flags)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", argument ? argument : ".", name);
    fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0, path);
    return fd;
}

static void sync_file(void)
{
    static const char block[65536];
    int fd = open_file("table.dat", O_WRONLY);

    for (;;) {
        check(pwrite(fd, block, sizeof(block), 0) == (ssize_t)sizeof(block), "write");
        fsync(fd);
        rest(5);
    }
}

static void write_through(const char *name)
{
    static const char line[4096];
    int fd = open_file(name, O_WRONLY | O_SYNC);

    for (;;) {
        check(pwrite(fd, line, sizeof(line), 0) == (ssize_t)sizeof(line), "write");
        rest(5);
    }
}

static void write_table(void)
{
    write_through("table.dat");
}

static void write_log(void)
{
    write_through("server.log");
}

enum { FILE_BYTES = 32 << 20, STRIDE = 1 << 20 };

static int cold_file(void)
{
    static char block[STRIDE];
    int fd = open_file("cold.dat", O_RDWR);

    memset(block, 'x', sizeof(block));
    for (int at = 0; at < FILE_BYTES; at += STRIDE)
        check(pwrite(fd, block, sizeof(block), at) == (ssize_t)sizeof(block), "write");
    check(!fsync(fd), "fsync");
    return fd;
}

static void drop(int fd)
{
    check(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "POSIX_FADV_DONTNEED");
}

static unsigned touch_pages(const volatile char *map)
{
    unsigned sum = 0;

    for (int at = 0; at < FILE_BYTES; at += STRIDE)
        sum += (unsigned char)map[at];
    return sum;
}

static void fault_pages_in(void)
{
    int fd = cold_file();

    for (;;) {
        char *map;

        drop(fd);
        map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
        check(map != MAP_FAILED, "mmap");
        check(!madvise(map, FILE_BYTES, MADV_RANDOM), "madvise");
        touch_pages(map);
        munmap(map, FILE_BYTES);
        rest(5);
    }
}

static void read_blocks(void)
{
    static char block[4096];
    int fd = cold_file();

    for (;;) {
        drop(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        for (int at = 0; at < FILE_BYTES; at += STRIDE)
            check(pread(fd, block, sizeof(block), at) == (ssize_t)sizeof(block), "read");
        rest(5);
    }
}

/* Somebody else writes into it, late. */
static void read_pipe(void)
{
    int ends[2];
    char byte;

    check(!pipe(ends), "pipe");
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            rest(LONG_MS);
            check(write(ends[1], "x", 1) == 1, "write");
        }
    }
    for (;;)
        check(read(ends[0], &byte, 1) == 1, "read");
}

/* Its reader is slow: the argument says whether it is the standard error. */
static void fill_pipe(void)
{
    static char text[4096];
    int ends[2], to;

    check(!pipe(ends), "pipe");
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            rest(LONG_MS);
            check(read(ends[0], text, sizeof(text)) > 0, "read");
        }
    }
    to = argument ? dup2(ends[1], STDERR_FILENO) : ends[1];
    for (;;)
        check(write(to, text, sizeof(text)) == (ssize_t)sizeof(text), "write");
}

/* ---- the CPU ---- */

static void stay_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void hog_the_cpu(void)
{
    struct sched_param first = {.sched_priority = 1};

    prctl(PR_SET_NAME, argument ? argument : "hog");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check(!sched_setscheduler(0, SCHED_FIFO, &first), "sched_setscheduler");
    for (;;) {
        rest(100);
        compute(LONG_MS);
    }
}

static void lose_the_cpu(void)
{
    stay_on(1);
    if (!fork())
        hog_the_cpu();
    for (;;)
        compute(1000);
}

/* An event loop, which a child stops in the midst of a request. */
static void be_stopped(void)
{
    pid_t loop = getpid();

    if (!fork()) {
        prctl(PR_SET_NAME, "stopper");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            rest(100);
            kill(loop, SIGSTOP);
            rest(LONG_MS);
            kill(loop, SIGCONT);
        }
    }
    for (;;) {
        rest(1);
        compute(8);
    }
}

/* ---- packets: each goes to very many sockets, which takes its softirq a while. They are handled on CPU 1
 * ---- */

enum { LISTENERS = 4000, PACKETS = 100 };

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(fd);
}

/* A network of its own, whose loopback hands its packets to CPU 1. */
static void make_network(void)
{
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_MULTICAST};
    int fd;

    check(!unshare(CLONE_NEWNET | CLONE_NEWNS), "unshare");
    check(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && !mount("s", "/sys", "sysfs", 0, NULL),
          "/sys");
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    check(!ioctl(fd, SIOCSIFFLAGS, &up), "the loopback");
    close(fd);
    write_file("/sys/class/net/lo/queues/rx-0/rps_cpus", "2");
}

static void send_packets(const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct in_addr lo = {htonl(INADDR_LOOPBACK)};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(0);
    check(!setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)), "IP_MULTICAST_IF");
    for (;;) {
        for (int i = 0; i < PACKETS; i++)
            sendto(fd, "x", 1, 0, (const struct sockaddr *)to, sizeof(*to));
        rest(100);
    }
}

static void take_packets(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(5000)};
    struct ip_mreq group = {.imr_interface.s_addr = htonl(INADDR_LOOPBACK)};
    struct rlimit files = {LISTENERS + 64, LISTENERS + 64};
    int one = 1, least = 1;

    check(!setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
    make_network();
    at.sin_addr.s_addr = group.imr_multiaddr.s_addr = htonl(0xef010203);
    for (int i = 0; i < LISTENERS; i++) {
        int fd = socket(AF_INET, SOCK_DGRAM, 0);

        check(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "SO_REUSEADDR");
        check(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), "SO_RCVBUF");
        check(!bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
        if (!i)
            check(!setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)), "IP_ADD_MEMBERSHIP");
    }
    if (!fork())
        send_packets(&at);
    stay_on(1);
    for (;;)
        compute(1000);
}

static void *compute_on(void *cpu)
{
    stay_on((int)(intptr_t)cpu);
    for (;;)
        compute(1000);
    return NULL;
}

/* Has a thread on each processor while the disk interrupts them: another process writes to it. */
static void be_interrupted(void)
{
    pthread_t thread;

    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_table();
    }
    for (long cpu = 1; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
        check(!pthread_create(&thread, NULL, compute_on, (void *)cpu), "pthread_create");
    compute_on(NULL);
}

/* In a control group with a quota, or alone. */
static void compute_for_ever(void)
{
    for (;;)
        compute(1000);
}

/* ---- memory: in a control group with a limit that its page cache outgrows ---- */

static void fill_the_cache(void)
{
    static char block[STRIDE];
    int fd = open_file("big.dat", O_RDWR);

    for (;;) {
        check(!ftruncate(fd, 0), "ftruncate");
        for (int at = 0; at < 4 * FILE_BYTES; at += STRIDE)
            check(pwrite(fd, block, sizeof(block), at) == (ssize_t)sizeof(block), "write");
    }
}

/* ---- no stall at all ---- */

static void wait_for_time(void)
{
    for (;;)
        rest(LONG_MS);
}

static const struct {
    const char *name;

    void (*run)(void);
} modes[] = {
    {"nagle", ask_in_two},
    {"one-write", ask_fast_server},
    {"slow-server", ask_slow_server},
    {"requests", serve_requests},
    {"names", look_up_names},
    {"datagrams", ask_datagrams},
    {"mutex", wait_for_mutex},
    {"barrier", wait_at_barrier},
    {"semaphore", wait_for_work},
    {"fsync", sync_file},
    {"write-through", write_table},
    {"log", write_log},
    {"fault", fault_pages_in},
    {"read", read_blocks},
    {"pipe", read_pipe},
    {"stopped", be_stopped},
    {"full-pipe", fill_pipe},
    {"hog", lose_the_cpu},
    {"compute", compute_for_ever},
    {"cache", fill_the_cache},
    {"sleep", wait_for_time},
    {"slow-reader", send_to_slow_reader},
    {"packets", take_packets},
    {"interrupts", be_interrupted},
};

int main(int argc, char **argv)
{
    argument = argc > 2 ? argv[2] : NULL;
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (!strcmp(argv[1], modes[i].name))
            modes[i].run();
    fprintf(stderr, "usage: causes MODE [ARG]\n");
    return 2;
}
