/* Waiting for many descriptors at once: epoll. */
#include "base/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

int rec_loop_open(struct st_error *err)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot wait for events (epoll)") : fd;
}

int rec_loop_add(int loop, struct rec_watch *watch, struct st_error *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = watch};

    if (epoll_ctl(loop, EPOLL_CTL_ADD, watch->fd, &e))
        return st_fail_errno(err, ST_EFAIL, "cannot wait for events (epoll_ctl)");
    return 0;
}

void rec_loop_remove(int loop, const struct rec_watch *watch)
{
    if (watch->fd >= 0)
        epoll_ctl(loop, EPOLL_CTL_DEL, watch->fd, NULL);
}

/* One event a turn: what it calls may remove any other watch, and none is then still in our hands. */
int rec_loop_turn(int loop, struct st_error *err)
{
    struct epoll_event e;
    int n = epoll_wait(loop, &e, 1, -1);
    struct rec_watch *watch;

    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot wait for events (epoll_wait)");
    if (n == 0)
        return 0;
    watch = e.data.ptr;
    return watch->ready(watch->ctx, err);
}

int rec_timer_open(struct st_error *err)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot make a timer") : fd;
}

int rec_timer_set(int timer, uint64_t ns, uint64_t every, struct st_error *err)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        .it_interval = {.tv_sec = (time_t)(every / 1000000000), .tv_nsec = (long)(every % 1000000000)},
    };

    if (timerfd_settime(timer, 0, &t, NULL))
        return st_fail_errno(err, ST_EFAIL, "cannot set a timer");
    return 0;
}

void rec_timer_clear(int timer)
{
    uint64_t n;

    while (read(timer, &n, sizeof(n)) == (ssize_t)sizeof(n))
        ;
}
