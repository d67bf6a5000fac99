/* causes MODE [ARG]: waits again and again for one reason, each mode for one that is known, in functions with
 * telling names. Modes come in groups: one has the cause that a report is to name, the others nearly have
 * it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_MS 40

static const char *argument;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "causes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void compute(unsigned ms)
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

static void rest(unsigned ms)
{
    poll(NULL, 0, (int)ms);
}

/* ---- TCP: a client and a server on the loopback, the server another process ---- */

static void serve(int listener, unsigned think_ms)
{
    char request[64];
    int fd = accept(listener, NULL, NULL);
    size_t have = 0;
    ssize_t n;

    prctl(PR_SET_NAME, "server");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((n = read(fd, request + have, sizeof(request) - have)) > 0) {
        have += (size_t)n;
        if (have < sizeof(request))
            continue;
        if (think_ms)
            compute(think_ms);
        have = 0;
        if (write(fd, "done", 4) != 4)
            break;
    }
    _exit(0);
}

static int connect_to_server(unsigned think_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork())
        serve(listener, think_ms);
    check(!connect(fd, (struct sockaddr *)&at, size), "connect");
    return fd;
}

static void wait_for_answer(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char answer[4];

    check(ppoll(&wait, 1, NULL, NULL) == 1, "ppoll");
    check(read(fd, answer, sizeof(answer)) == 4, "the answer");
}

static void send_header(int fd)
{
    char header[16] = "header";

    check(write(fd, header, sizeof(header)) == (ssize_t)sizeof(header), "write");
}

static void send_body(int fd)
{
    char body[48] = "body";

    check(write(fd, body, sizeof(body)) == (ssize_t)sizeof(body), "write");
}

/* Two small writes, then a wait: the second one is held until the first is acknowledged. */
static void ask_in_two(void)
{
    int fd = connect_to_server(0), one = 1;

    if (argument)
        check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
    for (;;) {
        send_header(fd);
        send_body(fd);
        wait_for_answer(fd);
        rest(5);
    }
}

static void ask_in_one(unsigned think_ms)
{
    char request[64] = "request";
    int fd = connect_to_server(think_ms);

    for (;;) {
        check(write(fd, request, sizeof(request)) == (ssize_t)sizeof(request), "write");
        wait_for_answer(fd);
        rest(5);
    }
}

/* The other way round: the client is slow to ask. */
static void serve_requests(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        check(!connect(fd, (struct sockaddr *)&at, size), "connect");
        for (;;) {
            rest(LONG_MS);
            check(write(fd, "give", 4) == 4, "write");
        }
    }
    fd = accept(listener, NULL, NULL);
    for (;;) {
        wait_for_answer(fd);
        check(write(fd, "take", 4) == 4, "write");
    }
}

static void ask_slow_server(void)
{
    ask_in_one(LONG_MS);
}

static void ask_fast_server(void)
{
    ask_in_one(0);
}

/* The buffer of the socket is full for most of the time: the other end reads late. */
static void read_late(int listener)
{
    static char block[1 << 16];
    int fd = accept(listener, NULL, NULL);

    prctl(PR_SET_NAME, "server");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t left = 8 * (ssize_t)sizeof(block), n;

        rest(LONG_MS);
        while (left > 0 && (n = recv(fd, block, sizeof(block), MSG_DONTWAIT)) > 0)
            left -= n;
    }
}

static void send_to_slow_reader(void)
{
    static char block[1 << 16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork())
        read_late(listener);
    check(!connect(fd, (struct sockaddr *)&at, size), "connect");
    for (;;)
        check(send(fd, block, sizeof(block), 0) > 0, "send");
}

/* ---- UDP: a name server that takes its time, and another server that does ---- */

static void answer_late(int fd)
{
    char packet[512];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t n;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((n = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size)) > 0) {
        rest(LONG_MS);
        if (n > 3) {
            packet[2] |= (char)0x80;
            packet[3] = (char)((packet[3] & 0xf0) | 3); /* there is no such name */
        }
        sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, size);
    }
    _exit(0);
}

static struct sockaddr_in late_server(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f350035), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    check(!bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
    if (!fork())
        answer_late(fd);
    close(fd);
    return at;
}

static void look_up_names(void)
{
    struct sockaddr_in at = late_server(53);
    struct addrinfo *found;

    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0] = at;
    for (;;) {
        if (!getaddrinfo("no-such-name.invalid.", NULL, NULL, &found))
            freeaddrinfo(found);
        rest(5);
    }
}

static void ask_datagrams(void)
{
    struct sockaddr_in at = late_server(5353);
    struct pollfd wait = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};
    char packet[16] = "question";

    check(!connect(wait.fd, (struct sockaddr *)&at, sizeof(at)), "connect");
    for (;;) {
        send(wait.fd, packet, sizeof(packet), 0);
        poll(&wait, 1, 1000);
        recv(wait.fd, packet, sizeof(packet), 0);
        rest(5);
    }
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
        rest(5);
    }
    return unused;
}

static void wait_for_mutex(void)
{
    pthread_t thread;

    sem_init(&taken, 0, 0);
    pthread_create(&thread, NULL, hold_mutex, NULL);
    for (;;) {
        while (sem_wait(&taken))
            ;
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
    {"nagle", ask_in_two},        {"one-write", ask_fast_server}, {"slow-server", ask_slow_server},
    {"requests", serve_requests}, {"names", look_up_names},       {"datagrams", ask_datagrams},
    {"mutex", wait_for_mutex},    {"barrier", wait_at_barrier},   {"semaphore", wait_for_work},
    {"fsync", sync_file},         {"write-through", write_table}, {"log", write_log},
    {"fault", fault_pages_in},    {"read", read_blocks},          {"pipe", read_pipe},
    {"full-pipe", fill_pipe},     {"hog", lose_the_cpu},          {"compute", compute_for_ever},
    {"cache", fill_the_cache},    {"sleep", wait_for_time},       {"slow-reader", send_to_slow_reader},
    {"packets", take_packets},    {"interrupts", be_interrupted},
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
