/* Whether the target's processes still run. */
#include "recorder/alive.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static int one_ended(void *ctx, struct st_error *err)
{
    struct rec_alive_one *one = ctx;
    struct rec_alive *all = one->all;

    rec_loop_remove(all->loop, &one->watch);
    close(one->watch.fd);
    one->watch.fd = -1;
    return --all->running ? 0 : all->ended(all->ctx, err);
}

/* A descriptor that is readable when the process has ended: a pidfd, or one that is readable now. */
static int open_one(pid_t pid, struct st_error *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0 && errno == ESRCH)
        fd = eventfd(1, EFD_CLOEXEC);
    if (fd < 0)
        return st_fail_errno(err, errno == ENOSYS ? ST_ECANNOT : ST_EFAIL,
                             "cannot watch process %d (pidfd_open)", pid);
    return fd;
}

static int add(struct rec_alive *alive, pid_t pid, struct st_error *err)
{
    int fd = open_one(pid, err);

    if (fd < 0)
        return fd;
    if (st_vec_push(&alive->processes,
                    (struct rec_alive_one){.all = alive, .watch = {.fd = fd, .ready = one_ended}})) {
        close(fd);
        return st_nomem(err, "the list of processes");
    }
    return 0;
}

int rec_alive_open(struct rec_alive *alive, int loop, const struct st_target *target, pid_t command,
                   int (*ended)(void *ctx, struct st_error *err), void *ctx, struct st_error *err)
{
    int rc = 0;

    *alive = (struct rec_alive){.loop = loop, .ended = ended, .ctx = ctx};
    if (command)
        rc = add(alive, command, err);
    for (size_t i = 0; !rc && i < target->npids; i++)
        rc = add(alive, target->pids[i], err);
    alive->running = alive->processes.n;
    /* Only now: the array moves while it grows. */
    for (size_t i = 0; !rc && i < alive->processes.n; i++) {
        struct rec_alive_one *one = &alive->processes.at[i];

        one->watch.ctx = one;
        rc = rec_loop_add(loop, &one->watch, err);
    }
    if (rc)
        rec_alive_close(alive);
    return rc;
}

void rec_alive_close(struct rec_alive *alive)
{
    for (size_t i = 0; i < alive->processes.n; i++) {
        struct rec_watch *w = &alive->processes.at[i].watch;

        if (w->fd < 0)
            continue;
        rec_loop_remove(alive->loop, w);
        close(w->fd);
    }
    st_vec_free(&alive->processes);
    alive->running = 0;
}
