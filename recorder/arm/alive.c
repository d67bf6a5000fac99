/* Whether the target's processes still run. */
#include "recorder/arm/alive.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1 /* a failed HASH_ADD leaves hh.tbl NULL */
#include <uthash.h>

struct rec_alive_one {
    struct rec_alive *all;

    pid_t pid;

    struct rec_watch watch;

    UT_hash_handle hh;
};

static void forget(struct rec_alive_one *one)
{
    rec_loop_remove(one->all->loop, &one->watch);
    close(one->watch.fd);
    HASH_DEL(one->all->processes, one);
    free(one);
}

static int one_ended(void *ctx, struct st_error *err)
{
    struct rec_alive_one *one = ctx;
    struct rec_alive *all = one->all;
    pid_t pid = one->pid;
    int rc;

    forget(one);
    rc = all->left ? all->left(all->ctx, pid, err) : 0;
    return rc || all->processes || all->waits ? rc : all->ended(all->ctx, err);
}

/* A descriptor that is readable when the process has ended: a pidfd, or one that is readable now. */
static int open_one(pid_t pid, struct st_error *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0 && errno == ESRCH)
        fd = eventfd(1, EFD_CLOEXEC);
    if (fd < 0)
        return st_fail_errno(err,
                             errno == ENOSYS || errno == EMFILE || errno == ENFILE ? ST_ECANNOT : ST_EFAIL,
                             "cannot watch process %d (pidfd_open)", pid);
    return fd;
}

bool rec_alive_has(const struct rec_alive *alive, pid_t pid)
{
    struct rec_alive_one *one;

    HASH_FIND_INT(alive->processes, &pid, one);
    return one;
}

int rec_alive_add(struct rec_alive *alive, pid_t pid, struct st_error *err)
{
    struct rec_alive_one *one;
    int fd, rc;

    if (rec_alive_has(alive, pid))
        return 0;
    fd = open_one(pid, err);
    if (fd < 0)
        return fd;
    one = calloc(1, sizeof(*one));
    if (!one) {
        close(fd);
        return st_nomem(err, "the list of processes");
    }
    *one =
        (struct rec_alive_one){.all = alive, .pid = pid, .watch = {.fd = fd, .ready = one_ended, .ctx = one}};
    HASH_ADD_INT(alive->processes, pid, one);
    if (!one->hh.tbl) {
        close(fd);
        free(one);
        return st_nomem(err, "the list of processes");
    }
    rc = rec_loop_add(alive->loop, &one->watch, err);
    if (rc)
        forget(one);
    return rc;
}

int rec_alive_open(struct rec_alive *alive, int loop, const struct st_target *target, pid_t command,
                   int (*ended)(void *ctx, struct st_error *err), void *ctx, struct st_error *err)
{
    int rc = 0;

    *alive = (struct rec_alive){.loop = loop, .waits = st_target_waits(target), .ended = ended, .ctx = ctx};
    if (command)
        rc = rec_alive_add(alive, command, err);
    for (size_t i = 0; !rc && i < target->npids; i++)
        rc = rec_alive_add(alive, target->pids[i], err);
    if (rc)
        rec_alive_close(alive);
    return rc;
}

void rec_alive_close(struct rec_alive *alive)
{
    struct rec_alive_one *one, *next;

    HASH_ITER(hh, alive->processes, one, next)
    {
        forget(one);
    }
}
