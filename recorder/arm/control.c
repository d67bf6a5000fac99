/* The control socket, arm's side. */
#include "recorder/arm/control.h"
#include "recorder/arm/control_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_CLIENTS = 16 };

struct client {
    struct rec_control *control;

    struct rec_watch watch; /* fd -1: free */

    char line[16];

    size_t used;

    unsigned asked; /* waits for a snapshot, as the so-manieth that asks; 0: does not */
};

struct rec_control {
    int loop;

    struct rec_watch listener;

    struct sockaddr_un address;

    struct client clients[MOST_CLIENTS];

    char *who; /* the answer to it */

    unsigned asked; /* times */

    int (*ask)(void *ctx, struct st_error *err);

    void *ctx;
};

static void hang_up(struct client *c)
{
    rec_loop_remove(c->control->loop, &c->watch);
    close(c->watch.fd);
    c->watch.fd = -1;
    c->used = 0;
    c->asked = 0;
}

static void reply(struct client *c, const char *text)
{
    send(c->watch.fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    hang_up(c);
}

static int obey(struct client *c, struct st_error *err)
{
    if (!strcmp(c->line, "who")) {
        reply(c, c->control->who);
    } else if (!strcmp(c->line, "snap")) {
        c->asked = ++c->control->asked;
        return c->control->ask(c->control->ctx, err);
    } else {
        reply(c, "error unknown request\n");
    }
    return 0;
}

static int client_ready(void *ctx, struct st_error *err)
{
    struct client *c = ctx;
    ssize_t n = recv(c->watch.fd, c->line + c->used, sizeof(c->line) - 1 - c->used, MSG_DONTWAIT);
    char *end;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0 || c->asked) {
        hang_up(c);
        return 0;
    }
    c->used += (size_t)n;
    c->line[c->used] = '\0';
    end = strchr(c->line, '\n');
    if (end) {
        *end = '\0';
        return obey(c, err);
    }
    if (c->used == sizeof(c->line) - 1)
        reply(c, "error unknown request\n");
    return 0;
}

/* The folder keeps others out already; this holds where it is shared. */
static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (peer.uid == 0 || peer.uid == geteuid());
}

static struct client *free_client(struct rec_control *control)
{
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (control->clients[i].watch.fd < 0)
            return &control->clients[i];
    return NULL;
}

static int listener_ready(void *ctx, struct st_error *err)
{
    struct rec_control *control = ctx;
    int fd = accept4(control->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *c = free_client(control);

    if (fd < 0)
        return 0;
    if (!c || !may_ask(fd)) {
        close(fd);
        return 0;
    }
    c->control = control;
    c->watch = (struct rec_watch){.fd = fd, .ready = client_ready, .ctx = c};
    if (rec_loop_add(control->loop, &c->watch, err)) {
        close(fd);
        c->watch.fd = -1;
    }
    return 0;
}

static char *list_pids(const pid_t *targets, size_t n)
{
    size_t size = (n + 1) * 12 + 2, at = 0;
    char *text = malloc(size);

    if (!text)
        return NULL;
    at += (size_t)snprintf(text, size, "%d", getpid());
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, " %d", targets[i]);
    snprintf(text + at, size - at, "\n");
    return text;
}

static int open_socket(struct rec_control *control, struct st_error *err)
{
    char folder[PATH_MAX];
    struct sockaddr_un *a = &control->address;
    int n, fd, rc = rec_control_own_folder(folder, sizeof(folder), err);

    if (rc)
        return rc;
    rec_control_sweep(folder);
    a->sun_family = AF_UNIX;
    n = snprintf(a->sun_path, sizeof(a->sun_path), "%s/%d.sock", folder, getpid());
    if (n < 0 || (size_t)n >= sizeof(a->sun_path)) {
        a->sun_path[0] = '\0';
        return st_fail(err, ST_EFAIL, "the name of the control socket in '%s' is too long", folder);
    }
    unlink(a->sun_path); /* of a process of our number that was killed */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)a, sizeof(*a)) || chmod(a->sun_path, 0600) ||
        listen(fd, MOST_CLIENTS)) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot make the control socket '%s'", a->sun_path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    control->listener = (struct rec_watch){.fd = fd, .ready = listener_ready, .ctx = control};
    return rec_loop_add(control->loop, &control->listener, err);
}

int rec_control_open(int loop, const pid_t *targets, size_t ntargets,
                     int (*ask)(void *ctx, struct st_error *err), void *ctx, struct rec_control **control,
                     struct st_error *err)
{
    struct rec_control *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return st_nomem(err, "the control socket");
    c->loop = loop;
    c->ask = ask;
    c->ctx = ctx;
    c->listener.fd = -1;
    for (int i = 0; i < MOST_CLIENTS; i++)
        c->clients[i].watch.fd = -1;
    c->who = list_pids(targets, ntargets);
    rc = c->who ? open_socket(c, err) : st_nomem(err, "the control socket");
    if (rc)
        rec_control_close(c);
    else
        *control = c;
    return rc;
}

void rec_control_targets(struct rec_control *control, const pid_t *targets, size_t n)
{
    char *who = control ? list_pids(targets, n) : NULL;

    if (!who)
        return; /* no memory: the old ones are still known */
    free(control->who);
    control->who = who;
}

unsigned rec_control_asked(const struct rec_control *control)
{
    return control ? control->asked : 0;
}

void rec_control_answer(struct rec_control *control, unsigned asked, const char *answer)
{
    if (!control)
        return;
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (control->clients[i].watch.fd >= 0 && control->clients[i].asked &&
            control->clients[i].asked <= asked)
            reply(&control->clients[i], answer);
}

void rec_control_close(struct rec_control *control)
{
    if (!control)
        return;
    rec_control_answer(control, control->asked, "error the recording has ended\n");
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (control->clients[i].watch.fd >= 0)
            hang_up(&control->clients[i]);
    if (control->listener.fd >= 0) {
        rec_loop_remove(control->loop, &control->listener);
        close(control->listener.fd);
        unlink(control->address.sun_path);
    }
    free(control->who);
    free(control);
}
