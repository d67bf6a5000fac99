/* Sessions of the forwarder: two sockets, a 64 KiB buffer each way, one epoll loop a worker. */
#ifndef FORWARDER_RELAY_H
#define FORWARDER_RELAY_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_BYTES 65536

struct session;
struct worker;

/* What an epoll event points to. */
enum source_kind {
    SOURCE_LISTENER,
    SOURCE_CONTROL,
    SOURCE_SOCKET,
};

struct source {
    enum source_kind kind;
    int fd;

    /* the events epoll watches now; 0: not in the epoll set */
    uint32_t watched;

    /* of SOURCE_SOCKET */
    struct session *session;
};

/* One direction of a session. */
struct flow {
    struct source *from, *to;

    /* bytes read and not yet written: data[begin..end) */
    size_t begin, end;
    uint64_t bytes;

    /* of data, that is used */
    size_t room;

    /* from has no more; to has been told so */
    bool ended, shut;
    char data[CHUNK_BYTES];
};

struct session {
    uint64_t id;

    /* [0] the client's socket, [1] the target's */
    struct source side[2];

    /* [0] client to target, [1] target to client */
    struct flow flow[2];
    bool connecting, closed;
    struct session *previous, *next;
};

/* Shared by all workers; set before they run. */
struct relay_config {
    struct sockaddr_in target;
    int listener;

    /* bytes read at once, at most CHUNK_BYTES */
    size_t buffer;

    /* 1: the workers finish what they have read and end */
    atomic_bool stop;
};

struct worker {
    struct relay_config *config;
    unsigned index;
    int epoll_fd;
    struct source listener, control;

    /* called when the control descriptor is readable; true: leave the loop */
    bool (*on_control)(struct worker *worker);

    /* open sessions, and those closed in this turn of the loop (an event may still point to them) */
    struct session *sessions, *dead;
};

/* Makes the worker's epoll set with the listener and the CONTROL descriptor (the worker does not own it).
 * Returns 0, or -1 after a message; worker_close() is to be called in both cases. */
int worker_open(struct worker *worker, struct relay_config *config, unsigned index, int control,
                bool (*on_control)(struct worker *));

/* Forwards until on_control says to stop, then flushes what was read and closes every session. */
void event_loop(struct worker *worker);

void worker_close(struct worker *worker);

/* Over all workers. */
uint64_t sessions_opened(void);
uint64_t bytes_forwarded(void);

#endif
