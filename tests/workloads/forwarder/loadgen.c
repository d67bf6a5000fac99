/* loadgen: sends numbered streams of pseudo-random bytes through a forwarder and checks every byte at the far
 * end.
 *
 * Both ends are in this process: the senders connect to the forwarder, the forwarder connects to our
 * listener. A stream begins with its seed; the receiver makes the same bytes and compares, and at the
 * stream's end sends back how many bytes it saw and their checksum, which the sender compares with its own:
 * so both directions are checked. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_WORDS     2048
#define BLOCK_BYTES     (BLOCK_WORDS * 8)
#define CONNECTIONS_MAX 64

/* How long the end of the streams may take. */
#define FINISH_SECONDS 20

struct options {
    int listen_fd;
    struct sockaddr_in forwarder;
    unsigned connections, seconds;
    uint64_t rate;
};

/* What the receiver answers at the end of a stream. */
struct digest {
    uint64_t bytes, checksum, wrong_bytes;
};

struct stream {
    const struct options *options;
    unsigned number;
    pthread_t thread;
    uint64_t bytes;
    bool good;
};

struct generator {
    uint64_t state;
    uint64_t block[BLOCK_WORDS];
};

static atomic_bool stop;

static void next_block(struct generator *generator)
{
    for (unsigned i = 0; i < BLOCK_WORDS; i++) {
        /* xorshift64 (Marsaglia) */
        generator->state ^= generator->state << 13;
        generator->state ^= generator->state >> 7;
        generator->state ^= generator->state << 17;
        generator->block[i] = generator->state;
    }
}

static uint64_t checksum(uint64_t sum, const uint8_t *data, size_t bytes)
{
    /* FNV-1a, 64 bits */
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static int send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        at += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t bytes)
{
    ssize_t got;

    do
        got = recv(fd, data, bytes, MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes ? 0 : -1;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    nanosleep(&time, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps until BYTES are allowed at RATE bytes a second since START. */
static void keep_rate(uint64_t start_ns, uint64_t bytes, double rate)
{
    while (rate > 0 && !atomic_load(&stop)) {
        double ahead_ns = (double)bytes / rate * 1e9 - (double)(now_ns() - start_ns);
        if (ahead_ns <= 0)
            return;
        sleep_ns(ahead_ns < 50e6 ? (uint64_t)ahead_ns : 50000000);
    }
}

/* Sends blocks until told to stop. Returns 0 or -1; *sent is what the far end must have seen. */
static int send_blocks(struct stream *stream, int fd, struct digest *sent)
{
    static __thread struct generator generator;
    uint64_t start_ns = now_ns();
    double rate = (double)stream->options->rate / stream->options->connections;

    generator.state = UINT64_C(0x9e3779b97f4a7c15) * (stream->number + 1);
    if (send_all(fd, &generator.state, sizeof(generator.state)))
        return -1;
    while (!atomic_load(&stop)) {
        next_block(&generator);
        if (send_all(fd, generator.block, BLOCK_BYTES))
            return -1;
        sent->bytes += BLOCK_BYTES;
        sent->checksum = checksum(sent->checksum, (const uint8_t *)generator.block, BLOCK_BYTES);
        keep_rate(start_ns, sent->bytes, rate);
    }
    return 0;
}

static void *run_sender(void *arg)
{
    struct stream *stream = arg;
    struct digest sent = {0}, seen;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in *to = &stream->options->forwarder;

    if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) || send_blocks(stream, fd, &sent) ||
        shutdown(fd, SHUT_WR) || receive_all(fd, &seen, sizeof(seen)))
        fprintf(stderr, "loadgen: stream %u: %s\n", stream->number, strerror(errno));
    else if (seen.bytes != sent.bytes || seen.checksum != sent.checksum || seen.wrong_bytes)
        fprintf(stderr,
                "loadgen: stream %u: sent %" PRIu64 " bytes, arrived %" PRIu64 ", wrong %" PRIu64 "\n",
                stream->number, sent.bytes, seen.bytes, seen.wrong_bytes);
    else
        stream->good = true;
    stream->bytes = sent.bytes;
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* Compares what came with what must come. OFFSET is the place in the generator's block. */
static void check_bytes(struct generator *generator, size_t *offset, const uint8_t *data, size_t bytes,
                        struct digest *seen)
{
    seen->checksum = checksum(seen->checksum, data, bytes);
    seen->bytes += bytes;
    for (size_t i = 0; i < bytes; i++) {
        if (*offset == BLOCK_BYTES) {
            next_block(generator);
            *offset = 0;
        }
        seen->wrong_bytes += data[i] != ((const uint8_t *)generator->block)[(*offset)++];
    }
}

static void *run_receiver(void *arg)
{
    static __thread struct generator generator;
    static __thread uint8_t data[65536];
    int fd = (int)(intptr_t)arg;
    struct digest seen = {0};
    size_t offset = BLOCK_BYTES;
    ssize_t got = receive_all(fd, &generator.state, sizeof(generator.state));

    while (got >= 0 && (got = recv(fd, data, sizeof(data), 0)) != 0) {
        if (got > 0)
            check_bytes(&generator, &offset, data, (size_t)got, &seen);
        else if (errno == EINTR)
            got = 0;
    }
    if (got == 0 && send_all(fd, &seen, sizeof(seen)))
        fprintf(stderr, "loadgen: cannot send the digest back: %s\n", strerror(errno));
    close(fd);
    return NULL;
}

static void *run_acceptor(void *arg)
{
    const struct options *options = arg;
    pthread_t thread;

    for (;;) {
        int fd = accept4(options->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            sleep_ns(1000000);
            continue;
        }
        if (pthread_create(&thread, NULL, run_receiver, (void *)(intptr_t)fd))
            close(fd);
        else
            pthread_detach(thread);
    }
    return NULL;
}

static void wait_for_end(const sigset_t *signals, unsigned seconds)
{
    struct timespec time = {.tv_sec = seconds};

    if (!seconds)
        sigwaitinfo(signals, NULL);
    else
        sigtimedwait(signals, NULL, &time);
}

static int run_streams(struct options *options, const sigset_t *signals)
{
    static struct stream streams[CONNECTIONS_MAX];
    uint64_t bytes = 0;
    unsigned good = 0, started = 0;

    for (unsigned i = 0; i < options->connections; i++, started++) {
        streams[i] = (struct stream){.options = options, .number = i};
        if (pthread_create(&streams[i].thread, NULL, run_sender, &streams[i]))
            break;
    }
    wait_for_end(signals, options->seconds);
    atomic_store(&stop, true);
    /* A forwarder that lost data may also have lost the end: then SIGALRM ends us. */
    alarm(FINISH_SECONDS);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(streams[i].thread, NULL);
        bytes += streams[i].bytes;
        good += streams[i].good;
    }
    printf("load streams=%u bytes=%" PRIu64 " whole=%u\n", options->connections, bytes, good);
    fflush(stdout);
    return good == options->connections ? 0 : 1;
}

static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {
        {"listen-fd", required_argument, NULL, 'l'},   {"connect", required_argument, NULL, 'c'},
        {"connections", required_argument, NULL, 'n'}, {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},     {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){.listen_fd = -1, .connections = 4, .forwarder.sin_family = AF_INET};
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        char *colon = optarg ? strchr(optarg, ':') : NULL;
        if (option == 'l')
            options->listen_fd = atoi(optarg);
        else if (option == 'n')
            options->connections = (unsigned)atoi(optarg);
        else if (option == 'r')
            options->rate = strtoull(optarg, NULL, 10);
        else if (option == 's')
            options->seconds = (unsigned)atoi(optarg);
        else if (option == 'c' && colon) {
            *colon = '\0';
            options->forwarder.sin_port = htons((uint16_t)atoi(colon + 1));
            if (inet_pton(AF_INET, optarg, &options->forwarder.sin_addr) != 1)
                return -1;
        } else
            return -1;
    }
    return options->listen_fd >= 0 && options->forwarder.sin_port && options->connections >= 1 &&
                   options->connections <= CONNECTIONS_MAX
               ? 0
               : -1;
}

/* The acceptor's accept() must block; the socket comes non-blocking from the forwarder. */
static int make_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

int main(int argc, char **argv)
{
    struct options options;
    sigset_t signals;
    pthread_t acceptor;

    if (read_options(&options, argc, argv)) {
        fprintf(stderr,
                "usage: loadgen --listen-fd FD --connect ADDRESS:PORT [--connections N] [--rate BYTES] "
                "[--seconds S]\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (make_blocking(options.listen_fd) || pthread_create(&acceptor, NULL, run_acceptor, &options)) {
        fprintf(stderr, "loadgen: cannot start: %s\n", strerror(errno));
        return 1;
    }
    return run_streams(&options, &signals);
}
