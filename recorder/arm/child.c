/* A child process in the loop. */
#include "recorder/arm/child.h"
#include "recorder/arm/rlimits.h"
#include "recorder/arm/signals.h"
#include "recorder/arm/urgent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TEXT = 1 << 20 };

enum { PATIENCE_MS = 300 };

static void drop_watch(struct rec_child *child, struct rec_watch *w)
{
    if (w->fd < 0)
        return;
    rec_loop_remove(child->loop, w);
    close(w->fd);
    w->fd = -1;
}

static int reap(struct rec_child *child)
{
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
    return status;
}

/* 0 at the end of file (or of patience), 1 when there may be more. */
static int read_some(struct rec_child *child)
{
    ssize_t n;

    if (child->text.n >= MOST_TEXT || st_vec_reserve(&child->text, 4096))
        return 0;
    n = read(child->output.fd, child->text.at + child->text.n, 4095);
    if (n < 0)
        return errno == EINTR;
    child->text.n += (size_t)n;
    return n > 0;
}

static int output_ready(void *ctx, struct st_error *err)
{
    struct rec_child *child = ctx;

    (void)err;
    if (!read_some(child))
        drop_watch(child, &child->output);
    return 0;
}

static int end_ready(void *ctx, struct st_error *err)
{
    struct rec_child *child = ctx;
    int status = reap(child);
    int rc;

    drop_watch(child, &child->end);
    if (child->output.fd >= 0) {
        /* A grandchild may hold the pipe open: take what is there and do not wait for more. */
        fcntl(child->output.fd, F_SETFL, O_NONBLOCK);
        while (read_some(child))
            ;
        drop_watch(child, &child->output);
    }
    if (st_vec_push(&child->text, '\0'))
        child->text.n = 0;
    rc = child->done(child->ctx, status, err);
    return rc;
}

static int watch(struct rec_child *child, int pipe_end, struct st_error *err)
{
    int rc;

    child->end = (struct rec_watch){
        .fd = (int)syscall(SYS_pidfd_open, child->pid, 0), .ready = end_ready, .ctx = child};
    child->output = (struct rec_watch){.fd = pipe_end, .ready = output_ready, .ctx = child};
    if (child->end.fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot watch a child process (pidfd_open)");
    rc = rec_loop_add(child->loop, &child->end, err);
    if (!rc && pipe_end >= 0)
        rc = rec_loop_add(child->loop, &child->output, err);
    return rc;
}

int rec_child_start(struct rec_child *child, int loop, rec_child_fn *run, void *arg, bool capture,
                    int (*done)(void *ctx, int status, struct st_error *err), void *ctx, struct st_error *err)
{
    int ends[2] = {-1, -1};
    int rc;

    st_vec_free(&child->text);
    *child =
        (struct rec_child){.loop = loop, .done = done, .ctx = ctx, .end = {.fd = -1}, .output = {.fd = -1}};
    if (capture && pipe2(ends, O_CLOEXEC))
        return st_fail_errno(err, ST_EFAIL, "cannot make a pipe");
    child->pid = fork();
    if (child->pid == 0) {
        rec_signals_restore();
        rec_urgent_restore();
        rec_limits_restore();
        if (capture)
            dup2(ends[1], STDOUT_FILENO);
        run(arg);
        _exit(127);
    }
    if (capture)
        close(ends[1]);
    if (child->pid < 0) {
        child->pid = 0;
        rc = st_fail_errno(err, ST_EFAIL, "cannot start a child process");
        if (capture)
            close(ends[0]);
        return rc;
    }
    rc = watch(child, ends[0], err);
    if (rc)
        rec_child_stop(child);
    return rc;
}

void rec_child_stop(struct rec_child *child)
{
    if (child->pid) {
        struct pollfd end = {.fd = child->end.fd, .events = POLLIN};

        kill(child->pid, SIGTERM);
        if (end.fd < 0 || poll(&end, 1, PATIENCE_MS) <= 0)
            kill(child->pid, SIGKILL);
        reap(child);
        drop_watch(child, &child->end);
        drop_watch(child, &child->output);
    }
    st_vec_free(&child->text);
}
