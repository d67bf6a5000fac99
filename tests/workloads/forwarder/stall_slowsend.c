/* The slowsend stall: a blocking send to a downstream whose reader sleeps for MS. */
#include "log.h"
#include "stall.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* SO_SNDBUF and SO_RCVBUF of the slow connection: small, so that one send fills it. */
#define SLOW_BUFFER 8192

/* TCP_MAXSEG: small against the buffers, so that the window closes wholly. In a window that is left open a
 * little, the persist timer would send what fits and wake the sender too early. */
#define SLOW_SEGMENT 1024

/* A bound for the turns of a millisecond that filling the connection takes (about ten). */
#define FILL_TURNS_MAX 200

/* What the blocking send takes along after the buffers are full. */
#define SLOW_SEND 4096

struct slowsend_state {
    /* [0]: the worker sends, [1]: the slow reader reads */
    int pair[2];
    pthread_t reader;
    bool has_reader;

    /* the worker is about to send; the reader has read all there was */
    sem_t sending, drained;
    unsigned ms;

    /* bytes in the connection when the reader begins */
    size_t queued;
    bool quit;
};

static void read_everything(int fd, size_t bytes)
{
    char buffer[65536];

    while (bytes) {
        ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        bytes -= (size_t)got;
    }
}

static void *slow_reader(void *arg)
{
    struct slowsend_state *slow = arg;

    for (;;) {
        wait_for_post(&slow->sending);
        if (slow->quit)
            return NULL;
        sleep_until_ns(now_ns() + slow->ms * UINT64_C(1000000));
        read_everything(slow->pair[1], slow->queued);
        sem_post(&slow->drained);
    }
}

/* True while bytes are on their way: sent, but not yet acknowledged. */
static bool in_flight(int fd)
{
    int unacknowledged = 0, unsent = 0;

    return ioctl(fd, SIOCOUTQ, &unacknowledged) || ioctl(fd, SIOCOUTQNSD, &unsent) ||
           unacknowledged != unsent;
}

/* Fills both socket buffers without waiting; returns the bytes they took. The connection is full for good
 * only when all that can go has gone and every ACK (the receiver delays them) is back. */
static size_t fill_connection(const int pair[2])
{
    char chunk[SLOW_SEGMENT] = {0};
    size_t total = 0, before;
    ssize_t sent;
    int on = 1;

    for (unsigned turn = 0; turn < FILL_TURNS_MAX; turn++) {
        before = total;
        while ((sent = send(pair[0], chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
            total += (size_t)sent;
        if (turn && total == before && !in_flight(pair[0]))
            break;
        setsockopt(pair[1], IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
        sleep_until_ns(now_ns() + 1000000);
    }
    return total;
}

static int send_downstream(int fd)
{
    char data[SLOW_SEND] = {0};
    ssize_t sent;

    do
        sent = send(fd, data, sizeof(data), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(data) ? 0 : -1;
}

static int run_slowsend(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    struct slowsend_state *slow = stall->state;

    slow->queued = fill_connection(slow->pair) + SLOW_SEND;
    *start_ns = now_ns();
    sem_post(&slow->sending);
    int result = send_downstream(slow->pair[0]);
    *end_ns = now_ns();
    if (result) {
        /* An error or a short send: the reader would wait for bytes that never come. */
        shutdown(slow->pair[0], SHUT_WR);
    }
    wait_for_post(&slow->drained);
    return result;
}

static int prepare_slowsend(struct stall *stall, const struct stall_config *config)
{
    struct slowsend_state *slow = calloc(1, sizeof(*slow));

    (void)config;
    if (!slow) {
        fprintf(stderr, "forwarder: out of memory for the slowsend stall\n");
        return -1;
    }
    stall->state = slow;
    slow->ms = stall->ms;
    sem_init(&slow->sending, 0, 0);
    sem_init(&slow->drained, 0, 0);
    if (tcp_pair(slow->pair, SLOW_BUFFER, SLOW_SEGMENT)) {
        fprintf(stderr, "forwarder: cannot make the slow connection over 127.0.0.1: %s\n", strerror(errno));
        return -1;
    }
    int error = pthread_create(&slow->reader, NULL, slow_reader, slow);
    if (error) {
        fprintf(stderr, "forwarder: cannot start the slow reader: %s\n", strerror(error));
        return -1;
    }
    pthread_setname_np(slow->reader, "slow-reader");
    slow->has_reader = true;
    return 0;
}

static void finish_slowsend(struct stall *stall)
{
    struct slowsend_state *slow = stall->state;

    if (!slow)
        return;
    if (slow->has_reader) {
        slow->quit = true;
        sem_post(&slow->sending);
        pthread_join(slow->reader, NULL);
    }
    close_pair(slow->pair);
    sem_destroy(&slow->sending);
    sem_destroy(&slow->drained);
    free(slow);
    stall->state = NULL;
}

const struct stall_kind stall_kind_slowsend = {
    .name = "slowsend", .prepare = prepare_slowsend, .run = run_slowsend, .finish = finish_slowsend};
