/* The stalls without a partner: a busy loop, an idle wait, a thread that blocks for ever. */
#include "log.h"
#include "stall.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void burn_cpu(uint64_t until_ns)
{
    while (now_ns() < until_ns)
        ;
}

static int run_busy(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    *start_ns = now_ns();
    burn_cpu(*start_ns + stall->ms * UINT64_C(1000000));
    *end_ns = now_ns();
    return 0;
}

const struct stall_kind stall_kind_busy = {.name = "busy", .run = run_busy};

static void idle_in_epoll(int fd, unsigned ms)
{
    struct epoll_event event;
    uint64_t end_ns = now_ns() + ms * UINT64_C(1000000);

    for (uint64_t now = now_ns(); now < end_ns; now = now_ns())
        epoll_wait(fd, &event, 1, (int)((end_ns - now + 999999) / 1000000));
}

/* The set is empty, so only the time ends the wait. */
static int run_idle(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return -1;
    *start_ns = now_ns();
    idle_in_epoll(fd, stall->ms);
    *end_ns = now_ns();
    close(fd);
    return 0;
}

const struct stall_kind stall_kind_idle = {.name = "idle", .run = run_idle};

static void block_forever(struct stall *stall, int pipe_fd)
{
    char byte;

    log_stall(stall, now_ns(), 0, false);
    while (read(pipe_fd, &byte, 1) < 0 && errno == EINTR)
        ;
}

struct forever {
    struct stall *stall;

    /* this thread blocks so many times EVERY after the start */
    unsigned turn;
};

static void *forever_thread(void *arg)
{
    struct forever forever = *(struct forever *)arg;
    int ends[2];

    free(arg);
    if (pipe(ends)) {
        fprintf(stderr, "forwarder: cannot make a pipe to block on: %s\n", strerror(errno));
        return NULL;
    }
    stalls_wait_for_start();
    sleep_until_ns(now_ns() + (uint64_t)forever.turn * forever.stall->every_ms * 1000000u);
    block_forever(forever.stall, ends[0]);
    return NULL;
}

static int start_forever_thread(struct stall *stall, unsigned turn)
{
    struct forever *forever = malloc(sizeof(*forever));
    pthread_t thread;

    if (!forever)
        return ENOMEM;
    *forever = (struct forever){.stall = stall, .turn = turn};
    int error = pthread_create(&thread, NULL, forever_thread, forever);
    if (error) {
        free(forever);
        return error;
    }
    pthread_setname_np(thread, "forever");
    pthread_detach(thread);
    return 0;
}

/* The threads end with the process; nothing can wake them before. */
static int prepare_forever(struct stall *stall, const struct stall_config *config)
{
    uint64_t threads = config->count ? config->count : 1;

    for (unsigned i = 0; i < threads; i++) {
        int error = start_forever_thread(stall, i + 1);
        if (error) {
            fprintf(stderr, "forwarder: cannot start the thread that blocks for ever: %s\n", strerror(error));
            return -1;
        }
    }
    return 0;
}

const struct stall_kind stall_kind_forever = {.name = "forever", .prepare = prepare_forever};
