/* OpenMetrics, in a file or over HTTP (libmicrohttpd, run by our own loop: no thread of its own). */
#include "recorder/arm/metrics.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/outfile.h"
#include "triggers/histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum {
    MOST_CONNECTIONS = 16,
    MOST_OF_A_CLIENT = 8,
    SPARE = 4, /* connections that were told to go and have not gone yet */
    IDLE_S = 10,
};

/* Who is connected, the oldest first. */
struct connection {
    int fd;

    struct sockaddr_storage from;

    bool asked; /* it is being answered */
};

struct rec_metrics {
    struct trg_set *set;

    const struct trg_traps *traps;

    int loop;

    struct MHD_Daemon *daemon; /* NULL: a file */

    const char *path;

    struct rec_watch watch; /* of the daemon's descriptor, or of the timer */

    struct rec_watch clock; /* HTTP: makes the daemon look at its time-outs while somebody is connected */

    struct connection connections[MOST_CONNECTIONS + SPARE];

    unsigned n;
};

/* The whole text, to be freed. NULL: no memory, or the figures could not be read. */
static char *render(const struct rec_metrics *m, size_t *size, struct st_error *err)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    int rc = to ? trg_print_openmetrics(m->set, m->traps, to, err) : st_nomem(err, "the metrics");

    if (to && fclose(to) && !rc)
        rc = st_nomem(err, "the metrics");
    if (!rc)
        return text;
    free(text);
    return NULL;
}

/* ---- a file ---- */

static int write_file(const struct rec_metrics *m, struct st_error *err)
{
    struct st_outfile out = {.fd = -1};
    size_t size;
    char *text = render(m, &size, err);
    int rc = text ? st_outfile_open(&out, m->path, err) : err->code;

    if (!rc)
        rc = st_outfile_write(&out, text, size, err);
    if (!rc && fchmod(out.fd, 0644)) /* collectors have users of their own */
        rc = st_fail_errno(err, ST_EFAIL, "cannot let others read '%s'", m->path);
    if (!rc)
        rc = st_outfile_commit(&out, true, err);
    if (rc)
        st_outfile_abort(&out);
    free(text);
    return rc;
}

/* A disk that is full now may have room later. */
static int on_timer(void *ctx, struct st_error *err)
{
    struct rec_metrics *m = ctx;

    rec_timer_clear(m->watch.fd);
    if (write_file(m, err))
        st_log_warn("--prometheus: %s", err->text);
    return 0;
}

static int open_file(struct rec_metrics *m, const char *path, uint64_t every, struct st_error *err)
{
    int rc;

    m->path = path;
    m->watch.fd = rec_timer_open(err);
    if (m->watch.fd < 0)
        return m->watch.fd;
    rc = write_file(m, err);
    return rc ? rc : rec_timer_set(m->watch.fd, every, every, err);
}

/* ---- HTTP: who is connected ---- */

static bool same_client(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr,
                   sizeof(struct in6_addr));
}

static void forget(struct rec_metrics *m, unsigned i)
{
    memmove(&m->connections[i], &m->connections[i + 1], (--m->n - i) * sizeof(m->connections[0]));
}

/* The oldest that has asked for nothing, of a client or (NULL) of all, is told to go: the daemon then finds
 * its socket at its end. */
static void drop_oldest(struct rec_metrics *m, const struct sockaddr_storage *from)
{
    for (unsigned i = 0; i + 1 < m->n; i++) {
        const struct connection *c = &m->connections[i];

        if (c->asked || (from && !same_client(&c->from, from)))
            continue;
        shutdown(c->fd, SHUT_RDWR);
        forget(m, i);
        return;
    }
}

static void enter(struct rec_metrics *m, int fd)
{
    struct connection *c = &m->connections[m->n];
    socklen_t size = sizeof(c->from);
    unsigned same = 0;

    *c = (struct connection){.fd = fd};
    if (m->n == MOST_CONNECTIONS + SPARE || getpeername(fd, (struct sockaddr *)&c->from, &size))
        return;
    if (!m->n++)
        rec_timer_set(m->clock.fd, 1000000000, 1000000000, NULL);
    for (unsigned i = 0; i < m->n; i++)
        same += same_client(&m->connections[i].from, &c->from);
    if (same > MOST_OF_A_CLIENT)
        drop_oldest(m, &c->from);
    else if (m->n > MOST_CONNECTIONS)
        drop_oldest(m, NULL);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **unused,
                          enum MHD_ConnectionNotificationCode what)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct rec_metrics *m = ctx;

    (void)unused;
    if (!info)
        return;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        enter(m, info->connect_fd);
        return;
    }
    for (unsigned i = 0; i < m->n; i++)
        if (m->connections[i].fd == info->connect_fd) {
            forget(m, i);
            break;
        }
}

/* Between its request and the end of the answer a connection is not silent. */
static void set_asked(struct rec_metrics *m, struct MHD_Connection *connection, bool asked)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    for (unsigned i = 0; info && i < m->n; i++)
        if (m->connections[i].fd == info->connect_fd)
            m->connections[i].asked = asked;
}

static void on_answered(void *ctx, struct MHD_Connection *connection, void **unused,
                        enum MHD_RequestTerminationCode how)
{
    (void)unused;
    (void)how;
    set_asked(ctx, connection, false);
}

/* ---- HTTP: what is asked ---- */

static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, char *text, size_t size,
                              const char *type)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result rc;

    if (!r) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    rc = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status, const char *why)
{
    char *text = strdup(why);

    return text ? answer(to, status, text, strlen(text), "text/plain; charset=utf-8") : MHD_NO;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *from, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct rec_metrics *m = ctx;
    struct st_error err = {0};
    size_t size;
    char *text;

    set_asked(m, from, true);
    (void)version;
    (void)upload;
    (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD)) {
        *upload_size = 0;
        return refuse(from, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n");
    }
    if (strcmp(url, "/metrics") && strcmp(url, "/"))
        return refuse(from, MHD_HTTP_NOT_FOUND, "only /metrics is here\n");
    text = render(m, &size, &err);
    if (!text)
        return refuse(from, MHD_HTTP_INTERNAL_SERVER_ERROR, "the figures cannot be read\n");
    return answer(from, MHD_HTTP_OK, text, size, CONTENT_TYPE);
}

static int on_http(void *ctx, struct st_error *err)
{
    struct rec_metrics *m = ctx;

    (void)err;
    MHD_run(m->daemon);
    return 0;
}

static int on_clock(void *ctx, struct st_error *err)
{
    struct rec_metrics *m = ctx;

    rec_timer_clear(m->clock.fd);
    if (!m->n)
        rec_timer_set(m->clock.fd, 0, 0, NULL);
    return on_http(ctx, err);
}

/* ADDRESS:PORT or PORT: whether it is one. */
static bool split(const char *where, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(where, ':');
    size_t n = colon ? (size_t)(colon - where) : 0;

    *port = colon ? colon + 1 : where;
    if (!**port || strspn(*port, "0123456789") != strlen(*port) || n >= size || strchr(where, '/'))
        return false;
    if (n > 1 && where[0] == '[' && where[n - 1] == ']') {
        where++;
        n -= 2;
    }
    snprintf(host, size, "%.*s", (int)n, n ? where : "");
    if (!colon)
        snprintf(host, size, "127.0.0.1");
    return true;
}

static int open_http(struct rec_metrics *m, const char *where, const char *host, const char *port,
                     struct st_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *at = NULL;
    const union MHD_DaemonInfo *info;
    int rc;

    m->clock = (struct rec_watch){.fd = rec_timer_open(err), .ready = on_clock, .ctx = m};
    rc = m->clock.fd < 0 ? m->clock.fd : rec_loop_add(m->loop, &m->clock, err);
    if (rc)
        return rc;
    rc = strlen(port) > 5 || atoi(port) > 65535 || !atoi(port)
             ? EAI_SERVICE
             : getaddrinfo(*host ? host : NULL, port, &hints, &at);
    if (rc)
        return st_fail(err, ST_EUSAGE, "--prometheus %s: no such address and port (%s)", where,
                       gai_strerror(rc));
    errno = 0;
    m->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0), (uint16_t)atoi(port),
                         NULL, NULL, on_request, m, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)(MOST_CONNECTIONS + SPARE),
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
                         on_connection, m, MHD_OPTION_NOTIFY_COMPLETED, on_answered, m, MHD_OPTION_END);
    rc = errno;
    freeaddrinfo(at);
    if (!m->daemon)
        return st_fail(err, ST_EFAIL, "--prometheus %s: cannot listen there: %s", where,
                       rc ? strerror(rc) : "the port is taken");
    info = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return st_fail(err, ST_EFAIL, "--prometheus %s: libmicrohttpd was built without epoll", where);
    m->watch.fd = info->epoll_fd;
    st_log_info("metrics at http://%s%s%s:%s/metrics", strchr(host, ':') ? "[" : "", *host ? host : "*",
                strchr(host, ':') ? "]" : "", port);
    return 0;
}

/* ---- both ---- */

int rec_metrics_open(const char *where, struct trg_set *set, const struct trg_traps *traps, int loop,
                     uint64_t every, struct rec_metrics **metrics, struct st_error *err)
{
    struct rec_metrics *m = calloc(1, sizeof(*m));
    const char *port;
    char host[64];
    int rc;

    if (!m)
        return st_nomem(err, "the metrics");
    *m = (struct rec_metrics){
        .set = set, .traps = traps, .loop = loop, .watch = {.fd = -1}, .clock = {.fd = -1}};
    rc = split(where, host, sizeof(host), &port) ? open_http(m, where, host, port, err)
                                                 : open_file(m, where, every, err);
    m->watch.ready = m->daemon ? on_http : on_timer;
    m->watch.ctx = m;
    if (!rc)
        rc = rec_loop_add(loop, &m->watch, err);
    if (rc)
        rec_metrics_close(m);
    else
        *metrics = m;
    return rc;
}

int rec_metrics_finish(struct rec_metrics *m, struct st_error *err)
{
    return m && !m->daemon ? write_file(m, err) : 0;
}

void rec_metrics_close(struct rec_metrics *m)
{
    if (!m)
        return;
    if (m->watch.fd >= 0)
        rec_loop_remove(m->loop, &m->watch);
    if (m->daemon)
        MHD_stop_daemon(m->daemon);
    else if (m->watch.fd >= 0)
        close(m->watch.fd);
    if (m->clock.fd >= 0) {
        rec_loop_remove(m->loop, &m->clock);
        close(m->clock.fd);
    }
    free(m);
}
