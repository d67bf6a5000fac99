/* fork(2), give up everything, work; and the other side of the socket. */
#include "base/confined.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAGIC = 0x434f4e46,
    END_MS = 1000,      /* for a child that was killed to be gone */
    REFUSED = 64,       /* its exit status, plus errno */
    MOST_ERRNO = 63,    /* that an exit status has room for */
    FIRST_ROOM = 65536, /* of an answer whose length is not known */
    MOST_FAILED = 3,    /* children of one struct st_confined */
    MOST_LEFT = 16,     /* children that the kernel did not let go in time */
    QUESTIONS = 30,     /* whose time a child may take as CPU time, in all */
};

struct question {
    uint32_t magic, size;

    uint64_t room;

    st_confined_fn *fn;

    bool has_fd;
};

struct answer {
    uint32_t magic;

    int32_t error; /* errno, or 0 */

    uint64_t size;
};

static uint64_t now_ms(void)
{
    return st_mono_ns() / 1000000;
}

/* ---- the child ---- */

/* Closes everything but these (-1: none), in any order. */
static void keep_only(int *keep, int n)
{
    unsigned from = 0;

    for (int pass = 0; pass < n; pass++)
        for (int i = 0; i + 1 < n; i++)
            if (keep[i] > keep[i + 1]) {
                int swap = keep[i];

                keep[i] = keep[i + 1];
                keep[i + 1] = swap;
            }
    for (int i = 0; i < n; i++) {
        if (keep[i] < 0)
            continue;
        if ((unsigned)keep[i] > from)
            close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    close_range(from, ~0u, 0);
}

int st_confined_write(int out, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t wrote = write(out, at, n);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return -1;
        at += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

/* `parent` may have ended before it could be told that we go with it. */
_Noreturn static void child(const struct st_confined_work *w, const struct st_confine_bounds *b, pid_t parent,
                            int out)
{
    int keep[ST_CONFINED_KEPT + 1] = {-1, -1, out};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (w->prepare && w->prepare(w->ctx, keep)))
        _exit(0);
    keep_only(keep, ST_CONFINED_KEPT + 1);
    if (st_confine_all(b))
        _exit(REFUSED + (errno < MOST_ERRNO ? errno : MOST_ERRNO));
    _exit(w->work(w->ctx, out) ? 1 : 0);
}

/* ---- its questions ---- */

/* 1, 0: there is no more, -1. */
static int read_all(int fd, void *to, size_t size)
{
    char *at = to;

    while (size) {
        ssize_t n = read(fd, at, size);

        if (n <= 0)
            return n == 0 ? 0 : -1;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static int receive(int socket, struct question *q, int *fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {q, sizeof(*q)};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

    *fd = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    if (n <= 0)
        return n == 0 ? 0 : -1;
    return n == sizeof(*q) && q->magic == MAGIC && q->has_fd == (*fd >= 0) ? 1 : -1;
}

static int answer_one(int socket, const struct question *q, int fd, const void *bytes)
{
    struct answer a = {.magic = MAGIC};
    void *room = malloc(q->room + 1);
    ssize_t n = room ? q->fn(fd, bytes, q->size, room, q->room) : -1;
    int rc;

    a.error = n >= 0 ? 0 : errno ? errno : EINVAL;
    a.size = n >= 0 ? (uint64_t)n : 0;
    rc = st_confined_write(socket, &a, sizeof(a)) || st_confined_write(socket, room, a.size);
    free(room);
    return rc;
}

static int serve(void *unused, int socket)
{
    char *bytes = malloc(ST_CONFINED_QUESTION);
    struct question q;
    int fd = -1, rc = bytes ? 1 : -1;

    (void)unused;
    while (rc > 0 && (rc = receive(socket, &q, &fd)) > 0) {
        rc = q.size <= ST_CONFINED_QUESTION ? read_all(socket, bytes, q.size) : -1;
        if (rc > 0 && answer_one(socket, &q, fd, bytes))
            rc = -1;
        if (fd >= 0)
            close(fd);
    }
    free(bytes);
    return rc;
}

/* ---- the parent: begin and end ---- */

/* Those that were killed and were not gone in time, as a file system did not let them. */
static _Thread_local pid_t left[MOST_LEFT];

static void reap_left(void)
{
    for (int i = 0; i < MOST_LEFT; i++)
        if (left[i] && waitpid(left[i], NULL, WNOHANG))
            left[i] = 0;
}

/* No signal that is meant for this process ends or interrupts the child. */
static pid_t start(const struct st_confined_work *w, const struct st_confine_bounds *b, int *socket)
{
    pid_t parent = getpid(), pid;
    sigset_t all, before;
    int pair[2];

    reap_left();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        child(w, b, parent, pair[1]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (pid < 0)
        close(pair[0]);
    else
        *socket = pair[0];
    return pid;
}

/* Whether `fd` is ready before `deadline`. */
static bool is_ready(int fd, short events, uint64_t deadline)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        uint64_t now = now_ms();
        int n = poll(&p, 1, now < deadline ? (int)(deadline - now) : 0);

        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* Until the deadline the child may end by itself, then it is killed; its wait status, or -1. */
static int finish(pid_t pid, uint64_t deadline, bool *late)
{
    int end = (int)syscall(SYS_pidfd_open, pid, 0), status = -1;
    bool gone = end >= 0 && is_ready(end, POLLIN, deadline);

    *late = !gone;
    if (!gone) {
        kill(pid, SIGKILL);
        gone = end < 0 || is_ready(end, POLLIN, now_ms() + END_MS);
    }
    if (waitpid(pid, &status, gone ? 0 : WNOHANG) != pid) {
        status = -1;
        for (int i = 0; !gone && i < MOST_LEFT; i++)
            if (!left[i]) {
                left[i] = pid;
                break;
            }
    }
    if (end >= 0)
        close(end);
    return status;
}

static int told(struct st_confined_end *end, enum st_confined_how how, int detail)
{
    *end = (struct st_confined_end){how, detail};
    return how == ST_CONFINED_DONE ? 0 : -1;
}

/* What became of it, by its wait status. */
static int tell_status(struct st_confined_end *end, int status)
{
    if (status >= 0 && WIFSIGNALED(status))
        return told(end, ST_CONFINED_KILLED, WTERMSIG(status));
    status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (status >= REFUSED)
        return told(end, ST_CONFINED_REFUSED, status - REFUSED);
    return told(end, status ? ST_CONFINED_EXITED : ST_CONFINED_DONE, status);
}

int st_confined_fail(struct st_error *err, const struct st_confined_end *end, const char *what)
{
    static const char who[] = "the process that does this without privilege";
    static const char harm[] =
        "the file may be damaged, or made to do harm: look at it as another user, with "
        "readelf, or leave out what needs it";

    switch (end->how) {
    case ST_CONFINED_NO_CHILD:
        errno = end->detail;
        return st_fail_errno(err, ST_EFAIL, "cannot %s: %s was not started", what, who);
    case ST_CONFINED_REFUSED:
        errno = end->detail;
        st_fail_errno(err, ST_ECANNOT, "cannot %s: %s could not give up its own", what, who);
        return st_hint(
            err, "in a container, give it the capabilities SETUID and SETGID, and allow seccomp filters");
    case ST_CONFINED_LATE:
        st_fail(err, ST_EFAIL, "cannot %s: %s was not done after %d ms", what, who, end->detail);
        return st_hint(err, "%s", harm);
    case ST_CONFINED_KILLED:
        st_fail(err, ST_EFAIL, "cannot %s: %s was ended by signal %d (%s)", what, who, end->detail,
                strsignal(end->detail));
        return st_hint(err, "%s", harm);
    case ST_CONFINED_EXITED:
        st_fail(err, ST_EFAIL, "cannot %s: %s gave up (exit status %d)", what, who, end->detail);
        return st_hint(err, "%s", harm);
    case ST_CONFINED_GIVEN_UP:
        return st_fail(err, ST_EFAIL, "cannot %s: %s has failed %d times, and is not started again", what,
                       who, end->detail);
    default:
        st_fail(err, ST_EFAIL, "cannot %s: what %s answered is no answer", what, who);
        return st_hint(err, "%s", harm);
    }
}

/* ---- the parent: one piece of work ---- */

struct bytes {
    char *at;

    size_t n, room;
};

static int grow(struct bytes *b)
{
    size_t room = b->room ? b->room * 2 : FIRST_ROOM;
    char *at = realloc(b->at, room);

    if (!at)
        return -1;
    b->at = at;
    b->room = room;
    return 0;
}

/* To the end of what it says. */
static int read_rest(int socket, size_t most, uint64_t deadline, struct bytes *b, struct st_confined_end *end)
{
    for (;;) {
        ssize_t n;

        if (b->n == b->room && grow(b))
            return told(end, ST_CONFINED_NO_CHILD, ENOMEM);
        if (!is_ready(socket, POLLIN, deadline))
            return told(end, ST_CONFINED_LATE, 0);
        n = recv(socket, b->at + b->n, b->room - b->n, MSG_DONTWAIT);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return told(end, ST_CONFINED_UNSOUND, 0);
        b->n += n > 0 ? (size_t)n : 0;
        if (b->n > most)
            return told(end, ST_CONFINED_UNSOUND, 0);
    }
}

int st_confined_run(const struct st_confined_work *work, void **answer, size_t *n,
                    struct st_confined_end *end)
{
    unsigned patience = work->patience ? work->patience : ST_CONFINED_PATIENCE;
    const struct st_confine_bounds bounds = {work->memory ? work->memory : ST_CONFINED_MEMORY,
                                             patience / 1000 + 1, 0};
    uint64_t deadline = now_ms() + patience;
    struct bytes b = {0};
    bool late = false;
    int socket = -1, rc, status;
    pid_t pid = start(work, &bounds, &socket);

    *answer = NULL;
    *n = 0;
    if (pid < 0)
        return told(end, ST_CONFINED_NO_CHILD, errno);
    rc = read_rest(socket, work->most, deadline, &b, end);
    close(socket);
    status = finish(pid, rc ? 0 : deadline, &late);
    if (!rc)
        rc = late ? told(end, ST_CONFINED_LATE, 0) : tell_status(end, status);
    if (end->how == ST_CONFINED_LATE)
        end->detail = (int)patience;
    if (rc || !b.n) {
        free(b.at);
        return rc;
    }
    *answer = b.at;
    *n = b.n;
    return 0;
}

/* ---- the parent: questions ---- */

void st_confined_close(struct st_confined *c)
{
    bool late;

    if (!c->pid)
        return;
    close(c->socket);
    finish(c->pid, 0, &late);
    c->pid = 0;
}

void st_confined_say(struct st_confined *c, const struct st_error *why)
{
    if (!c->said)
        st_log_warn("%s", why->text);
    c->said = true;
}

static unsigned patience_of(const struct st_confined *c)
{
    return c->patience ? c->patience : ST_CONFINED_PATIENCE;
}

static int open_child(struct st_confined *c, struct st_confined_end *end)
{
    const struct st_confined_work work = {.work = serve};
    const struct st_confine_bounds bounds = {c->memory ? c->memory : ST_CONFINED_MEMORY,
                                             (patience_of(c) / 1000 + 1) * QUESTIONS, 2};
    pid_t pid;

    if (c->pid)
        return 0;
    if (c->failed >= MOST_FAILED)
        return told(end, ST_CONFINED_GIVEN_UP, c->failed);
    pid = start(&work, &bounds, &c->socket);
    if (pid < 0) {
        c->failed++;
        return told(end, ST_CONFINED_NO_CHILD, errno);
    }
    c->pid = pid;
    return 0;
}

/* A child that waits for it has room for all of it. */
static int send_question(int socket, const struct st_confined_question *q, size_t room)
{
    struct question head = {MAGIC, (uint32_t)q->size, room, q->fn, q->fd >= 0};
    struct iovec parts[2] = {{&head, sizeof(head)}, {(void *)q->bytes, q->size}};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = q->size ? 2 : 1};

    if (q->fd >= 0) {
        struct cmsghdr *c = (struct cmsghdr *)control;

        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        *c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &q->fd, sizeof(q->fd));
    }
    return sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)(sizeof(head) + q->size) ? 0 : -1;
}

enum trouble { NONE, NO_MORE, LATE, UNSOUND };

static enum trouble receive_all(int socket, void *to, size_t size, uint64_t deadline)
{
    char *at = to;

    while (size) {
        ssize_t n;

        if (!is_ready(socket, POLLIN, deadline))
            return LATE;
        n = recv(socket, at, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return NO_MORE;
        at += n;
        size -= (size_t)n;
    }
    return NONE;
}

/* The child has failed: how? It is gone then. */
static int fail_child(struct st_confined *c, enum trouble trouble, struct st_confined_end *end)
{
    bool late;
    int status;

    close(c->socket);
    status = finish(c->pid, trouble == NO_MORE ? now_ms() + END_MS : 0, &late);
    c->pid = 0;
    c->failed++;
    if (trouble == LATE)
        return told(end, ST_CONFINED_LATE, (int)patience_of(c));
    if (trouble == UNSOUND || late || tell_status(end, status) == 0)
        return told(end, ST_CONFINED_UNSOUND, 0);
    return -1;
}

static enum trouble try_exchange(struct st_confined *c, const struct st_confined_question *q, void *answer,
                                 size_t room, struct answer *head)
{
    uint64_t deadline = now_ms() + patience_of(c);
    enum trouble trouble;

    if (send_question(c->socket, q, room))
        return NO_MORE;
    trouble = receive_all(c->socket, head, sizeof(*head), deadline);
    if (trouble)
        return trouble;
    if (head->magic != MAGIC || head->size > room || (head->error && head->size))
        return UNSOUND;
    return receive_all(c->socket, answer, head->size, deadline);
}

static int exchange(struct st_confined *c, const struct st_confined_question *q, void *answer, size_t room,
                    struct answer *head, struct st_confined_end *end)
{
    enum trouble trouble;

    if (open_child(c, end))
        return -1;
    trouble = try_exchange(c, q, answer, room, head);
    return trouble ? fail_child(c, trouble, end) : 0;
}

ssize_t st_confined_ask(struct st_confined *c, const struct st_confined_question *q, void *answer,
                        size_t room, struct st_error *err)
{
    struct st_confined_end end = {0};
    struct answer head = {0};

    if (q->size > ST_CONFINED_QUESTION)
        return st_fail(err, ST_EFAIL, "cannot %s: a question of %zu bytes is too long", q->what, q->size);
    if (exchange(c, q, answer, room, &head, &end))
        return st_confined_fail(err, &end, q->what);
    if (!head.error)
        return (ssize_t)head.size;
    errno = head.error;
    if (head.error == ENOMEM)
        return st_fail_errno(err, ST_ENOMEM, "cannot %s", q->what);
    return st_fail_errno(err, ST_EBADFILE, "cannot %s", q->what);
}
