/* The nagle stall: two small writes that meet Nagle's algorithm and a delayed ACK, and a recv behind them. */
#include "log.h"
#include "stall.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* TCP_QUICKACK: 0 makes the receiver delay its ACKs, 1 sends at once the one that is due (tcp(7)). */
static void set_quick_ack(int fd, int on)
{
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static int write_small(int fd)
{
    char byte = 1;

    return send(fd, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int receive_both(int fd)
{
    char bytes[2];
    ssize_t got;

    do
        got = recv(fd, bytes, sizeof(bytes), MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    return got == 2 ? 0 : -1;
}

/* The first small write leaves at once, Nagle's algorithm keeps the second until the first is acknowledged,
 * and the receiver delays that ACK: nothing moves until the receiver's tcp_delack_timer has run. */
static int run_nagle(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    int *pair = stall->state;

    set_quick_ack(pair[1], 0);
    *start_ns = now_ns();
    int result = write_small(pair[0]) || write_small(pair[0]) || receive_both(pair[1]);
    *end_ns = now_ns();
    set_quick_ack(pair[1], 1);
    return result ? -1 : 0;
}

static int prepare_nagle(struct stall *stall, const struct stall_config *config)
{
    int *pair = malloc(2 * sizeof(int));

    (void)config;
    if (!pair) {
        fprintf(stderr, "forwarder: out of memory for the nagle stall\n");
        return -1;
    }
    stall->state = pair;
    if (tcp_pair(pair, 0, 0)) {
        fprintf(stderr, "forwarder: cannot make a connection over 127.0.0.1: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

static void finish_nagle(struct stall *stall)
{
    if (!stall->state)
        return;
    close_pair(stall->state);
    free(stall->state);
    stall->state = NULL;
}

const struct stall_kind stall_kind_nagle = {
    .name = "nagle", .fixed_ms = 40, .prepare = prepare_nagle, .run = run_nagle, .finish = finish_nagle};
