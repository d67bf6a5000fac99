/* The forwarding itself: accept_one, relay, pump. */
#include "relay.h"

#include "log.h"
#include "stall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64

/* How long the data read before the end may take to leave. */
#define FLUSH_MS 1000

static _Atomic uint64_t opened, forwarded;

/* Makes epoll watch for EVENTS. A socket that is waited for in no way leaves the set: EPOLLHUP cannot be
 * masked. */
static int watch(struct worker *worker, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    int how = !source->watched ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (events == source->watched)
        return 0;
    if (epoll_ctl(worker->epoll_fd, how, source->fd, &event))
        return -1;
    source->watched = events;
    return 0;
}

static void close_session(struct worker *worker, struct session *session, const char *why)
{
    if (session->closed)
        return;
    session->closed = true;
    log_line("close session=%" PRIu64 " up=%" PRIu64 " down=%" PRIu64 " %s", session->id,
             session->flow[0].bytes, session->flow[1].bytes, why);
    for (int i = 0; i < 2; i++)
        if (session->side[i].fd >= 0)
            close(session->side[i].fd);
    if (session->previous)
        session->previous->next = session->next;
    else
        worker->sessions = session->next;
    if (session->next)
        session->next->previous = session->previous;
    session->next = worker->dead;
    worker->dead = session;
}

static void bury_dead(struct worker *worker)
{
    while (worker->dead) {
        struct session *session = worker->dead;
        worker->dead = session->next;
        free(session);
    }
}

/* Watches each socket for what its session can use now. */
static int update_watches(struct worker *worker, struct session *session)
{
    for (int i = 0; i < 2; i++) {
        const struct flow *out = &session->flow[i], *in = &session->flow[!i];
        uint32_t events = 0;
        if (!session->connecting && !out->ended && out->begin == out->end)
            events |= EPOLLIN;
        if (in->begin != in->end || (session->connecting && i == 1))
            events |= EPOLLOUT;
        if (watch(worker, &session->side[i], events))
            return -1;
    }
    return 0;
}

/* Returns a socket that is connecting, or -1 with errno set. */
static int connect_target(const struct relay_config *config)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (!connect(fd, (const struct sockaddr *)&config->target, sizeof(config->target)) ||
        errno == EINPROGRESS)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int finish_connect(struct session *session)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(session->side[1].fd, SOL_SOCKET, SO_ERROR, &error, &length))
        return -1;
    errno = error;
    session->connecting = false;
    return error ? -1 : 0;
}

static struct session *open_session(struct worker *worker, int client, int target)
{
    struct session *session = calloc(1, sizeof(*session));
    int no_delay = 1;

    if (!session)
        return NULL;
    session->id = atomic_fetch_add(&opened, 1) + 1;
    session->connecting = true;
    for (int i = 0; i < 2; i++) {
        int fd = i ? target : client;
        session->side[i] = (struct source){.kind = SOURCE_SOCKET, .fd = fd, .session = session};
        session->flow[i].from = &session->side[i];
        session->flow[i].to = &session->side[!i];
        session->flow[i].room = worker->config->buffer;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
    }
    session->next = worker->sessions;
    if (session->next)
        session->next->previous = session;
    worker->sessions = session;
    return session;
}

static void accept_one(struct worker *worker)
{
    int client = accept4(worker->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (client < 0)
        return;
    int target = connect_target(worker->config);
    struct session *session = target < 0 ? NULL : open_session(worker, client, target);
    if (!session) {
        log_line("refused worker=%u: %s", worker->index, strerror(errno));
        close(client);
        if (target >= 0)
            close(target);
        return;
    }
    log_line("open session=%" PRIu64 " worker=%u", session->id, worker->index);
    if (update_watches(worker, session))
        close_session(worker, session, strerror(errno));
}

/* Returns the bytes read, 0 when there are none now or no more, -1 on an error. */
static ssize_t read_chunk(struct flow *flow)
{
    ssize_t got = recv(flow->from->fd, flow->data, flow->room, 0);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    flow->ended = got == 0;
    flow->begin = 0;
    flow->end = (size_t)got;
    return got;
}

/* Returns 0, also when the socket took less than all or nothing, or -1 on an error. */
static int write_chunk(struct flow *flow)
{
    ssize_t sent = send(flow->to->fd, flow->data + flow->begin, flow->end - flow->begin, MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    flow->begin += (size_t)sent;
    flow->bytes += (uint64_t)sent;
    atomic_fetch_add_explicit(&forwarded, (uint64_t)sent, memory_order_relaxed);
    return 0;
}

/* Moves one chunk of one direction as far as it goes. Returns 0, or -1 on an error. */
static int pump(struct flow *flow)
{
    if (flow->begin == flow->end && !flow->ended && read_chunk(flow) < 0)
        return -1;
    if (flow->begin != flow->end) {
        if (write_chunk(flow))
            return -1;
        if (flow->begin == flow->end)
            maybe_stall();
    }
    if (flow->ended && flow->begin == flow->end && !flow->shut) {
        flow->shut = true;
        shutdown(flow->to->fd, SHUT_WR);
    }
    return 0;
}

/* Serves a session one of whose sockets is ready. */
static void relay(struct worker *worker, struct source *source, uint32_t events)
{
    struct session *session = source->session;
    int side = source == &session->side[1];
    int result = 0;

    if (session->closed)
        return;
    if (session->connecting)
        result = finish_connect(session);
    else {
        if (events & ~(uint32_t)EPOLLOUT)
            result = pump(&session->flow[side]);
        if (!result && (events & ~(uint32_t)EPOLLIN))
            result = pump(&session->flow[!side]);
    }
    if (!result && session->flow[0].shut && session->flow[1].shut)
        close_session(worker, session, "end");
    else if (result || update_watches(worker, session))
        close_session(worker, session, strerror(errno));
}

/* Writes out what has been read, then closes. */
static void flush_session(struct worker *worker, struct session *session, uint64_t until_ns)
{
    for (int i = 0; i < 2; i++) {
        struct flow *flow = &session->flow[i];
        struct pollfd writable = {.fd = flow->to->fd, .events = POLLOUT};
        while (flow->begin != flow->end && now_ns() < until_ns && !session->connecting) {
            if (write_chunk(flow))
                break;
            if (flow->begin != flow->end)
                poll(&writable, 1, 10);
        }
    }
    close_session(worker, session, "stopped");
}

static void stop_worker(struct worker *worker)
{
    uint64_t until_ns = now_ns() + FLUSH_MS * UINT64_C(1000000);

    while (worker->sessions)
        flush_session(worker, worker->sessions, until_ns);
    bury_dead(worker);
}

/* Returns true when the loop is to end. */
static bool handle_event(struct worker *worker, const struct epoll_event *event)
{
    struct source *source = event->data.ptr;

    switch (source->kind) {
    case SOURCE_LISTENER:
        accept_one(worker);
        return false;
    case SOURCE_CONTROL:
        return worker->on_control(worker);
    case SOURCE_SOCKET:
        relay(worker, source, event->events);
        return false;
    }
    return false;
}

void event_loop(struct worker *worker)
{
    struct epoll_event events[EVENTS_MAX];
    bool ending = false;

    while (!ending) {
        int count = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++)
            ending |= handle_event(worker, &events[i]);
        bury_dead(worker);
    }
    stop_worker(worker);
}

int worker_open(struct worker *worker, struct relay_config *config, unsigned index, int control,
                bool (*on_control)(struct worker *))
{
    *worker = (struct worker){.config = config, .index = index, .on_control = on_control};
    worker->listener = (struct source){.kind = SOURCE_LISTENER, .fd = config->listener};
    worker->control = (struct source){.kind = SOURCE_CONTROL, .fd = control};
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    /* Exclusive: one connection wakes one worker. */
    if (worker->epoll_fd < 0 || watch(worker, &worker->listener, EPOLLIN | EPOLLEXCLUSIVE) ||
        watch(worker, &worker->control, EPOLLIN)) {
        fprintf(stderr, "forwarder: cannot make the epoll set of worker %u: %s\n", index, strerror(errno));
        return -1;
    }
    return 0;
}

void worker_close(struct worker *worker)
{
    if (worker->epoll_fd >= 0)
        close(worker->epoll_fd);
    worker->epoll_fd = -1;
}

uint64_t sessions_opened(void)
{
    return atomic_load(&opened);
}

uint64_t bytes_forwarded(void)
{
    return atomic_load(&forwarded);
}
