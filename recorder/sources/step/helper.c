/* The helper's main loop: threads that stop, and commands. */
#include "recorder/sources/step/helper.h"
#include "recorder/sources/step/message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAKE_AGAIN_US = 1000,
    START_PATIENCE = 100 * 1000 * 1000, /* ns */
    SOCKET = 3,
    BATCH = 64,
};

/* A signal that comes between a look at `woken` and wait(2) would be slept over: the handler starts a timer
 * that repeats it until the loop has seen it. */
static volatile sig_atomic_t woken, asked_to_end;

static void wake_again(long us)
{
    const struct itimerval every = {{0, us}, {0, us}};

    setitimer(ITIMER_REAL, &every, NULL);
}

static void on_wake(int sig)
{
    int saved = errno;

    if (sig == SIGTERM || sig == SIGINT)
        asked_to_end = 1;
    if (sig != SIGALRM || !woken)
        wake_again(WAKE_AGAIN_US);
    woken = 1;
    errno = saved;
}

static void catch_signals(void)
{
    static const int wakes[] = {SIGIO, SIGALRM, SIGUSR1, SIGTERM, SIGINT};
    struct sigaction wake = {.sa_handler = on_wake}, ignore = {.sa_handler = SIG_IGN};
    /* Our children's stops are waited for, not signalled. */
    struct sigaction quiet = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    sigset_t none;

    for (size_t i = 0; i < sizeof(wakes) / sizeof(wakes[0]); i++)
        sigaction(wakes[i], &wake, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    sigaction(SIGUSR2, &ignore, NULL);
    sigaction(SIGCHLD, &quiet, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The death of this process kills the target: the kernel shall choose another one when memory runs out. */
static void dodge_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "-1000", 5) < 0)
        errno = 0; /* needs a privilege; it is only a wish */
    close(fd);
}

/* A thread takes a descriptor, a process another. */
static void want_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Nothing of arm's stays open here: its perf events, sockets and files end with it. */
static void settle(struct step_helper *h)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    prctl(PR_SET_NAME, "stalltrap-step");
    catch_signals();
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    if (h->sock != SOCKET) {
        dup2(h->sock, SOCKET);
        h->sock = SOCKET;
    }
    close_range(SOCKET + 1, ~0u, 0);
    fcntl(h->sock, F_SETFD, FD_CLOEXEC);
    fcntl(h->sock, F_SETOWN, getpid());
    fcntl(h->sock, F_SETFL, O_ASYNC);
    dodge_oom();
    want_descriptors();
}

static void answer(struct step_helper *h, enum step_message_kind kind, const struct st_error *err)
{
    struct step_message m = {.kind = kind, .done = step_clock_now(&h->clock)};

    if (err) {
        m.code = err->code;
        memcpy(m.text, err->text, sizeof(m.text));
    }
    step_message_send(h->sock, &m);
}

/* Threads that were never asked to stop are let go by our end alone, which does not wake them. */
_Noreturn static void leave(struct step_helper *h)
{
    if (h->started)
        step_detach_all(h);
    step_clock_close(&h->clock);
    _exit(0);
}

/* ------------------------------------------------------------------ */
/* Commands                                                            */

static uint64_t perf_time(struct step_helper *h, uint64_t raw)
{
    return raw + (uint64_t)h->clock.offset;
}

static void close_ring(struct step_helper *h, struct step_thread *t)
{
    if (!t || !t->slot) /* it has not run yet */
        return;
    t->slot->stopped = 0;
    if (!t->recording)
        return;
    step_leave(h, t);
    step_switches_collect(&t->switches, t->slot, false);
    t->slot->stopped = step_clock_now(&h->clock);
}

static void join(struct step_helper *h, pid_t pid)
{
    struct st_error err = {0};
    bool failed = step_attach_joined(h, pid, &err);

    answer(h, STEP_MSG_JOIN, failed ? &err : NULL);
}

/* Closes the rings as tracing that is switched off does, tells arm, and holds everything until it says go on.
 */
static void freeze(struct step_helper *h, uint64_t asked, pid_t first)
{
    struct step_message m = {.kind = STEP_MSG_FREEZE, .value = perf_time(h, asked)};
    struct step_thread *t, *next;
    int rc;

    HASH_FIND_INT(h->threads, &first, t);
    close_ring(h, t);
    HASH_ITER(hh, h->threads, t, next)
    {
        if (t->tid != first)
            close_ring(h, t);
    }
    m.done = step_clock_now(&h->clock);
    step_message_send(h->sock, &m);
    while ((rc = step_message_receive(h->sock, &m, true)) > 0 && m.kind == STEP_MSG_JOIN)
        join(h, m.first);
    if (rc <= 0 || m.kind != STEP_MSG_RESUME)
        leave(h);
    answer(h, STEP_MSG_RESUME, NULL);
}

static void obey(struct step_helper *h, const struct step_message *m)
{
    switch ((enum step_message_kind)m->kind) {
    case STEP_MSG_START:
        step_attach_start(h);
        h->start_deadline = step_clock_now(&h->clock) + START_PATIENCE;
        wake_again(START_PATIENCE / 1000);
        break;
    case STEP_MSG_FREEZE:
        freeze(h, m->value, m->first);
        break;
    case STEP_MSG_JOIN:
        join(h, m->first);
        break;
    default:
        leave(h);
    }
}

static void take_commands(struct step_helper *h, bool wait)
{
    struct step_message m;
    int rc;

    while ((rc = step_message_receive(h->sock, &m, wait)) > 0) {
        obey(h, &m);
        wait = false;
    }
    if (!rc || asked_to_end || getppid() != h->arm)
        leave(h);
}

/* start() is answered when every thread has been reached, or is so deep in the kernel that it will be before
 * it runs. */
static void answer_start(struct step_helper *h)
{
    struct step_thread *t, *next;

    if (!h->start_deadline)
        return;
    if (step_clock_now(&h->clock) < h->start_deadline) {
        HASH_ITER(hh, h->threads, t, next)
        {
            if (t->interrupted)
                return;
        }
    }
    h->start_deadline = 0;
    answer(h, STEP_MSG_START, NULL);
}

static void on_woken(struct step_helper *h)
{
    wake_again(0);
    woken = 0;
    take_commands(h, false);
    answer_start(h);
}

/* ------------------------------------------------------------------ */

/* The kernel says that nobody is left. */
static void all_gone(struct step_helper *h)
{
    struct step_thread *t, *next;

    HASH_ITER(hh, h->threads, t, next)
    {
        step_thread_remove(h, t);
    }
    answer_start(h);
    if (!h->ended)
        answer(h, STEP_MSG_ENDED, NULL);
    h->ended = true;
    take_commands(h, true);
}

struct stopped {
    pid_t tid;

    int status;
};

/* Waits for one thread, and takes all that have stopped too: the kernel looks through them in the same order
 * every time, and the first ones, let go at once, would starve the last. Returns how many; 0: nobody is left;
 * negative: woken. */
static int wait_for_stops(const struct step_helper *h, struct stopped *list)
{
    int n = 0;

    list[0].tid = waitpid(-1, &list[0].status, __WALL);
    if (list[0].tid < 0)
        return errno == ECHILD ? 0 : -1;
    n = 1;
    if (HASH_COUNT(h->threads) < 2)
        return n;
    while (n < BATCH && (list[n].tid = waitpid(-1, &list[n].status, __WALL | WNOHANG)) > 0)
        n++;
    return n;
}

_Noreturn void step_helper_main(struct step_helper *h)
{
    struct stopped stopped[BATCH];
    struct st_error err = {0};

    settle(h);
    step_clock_open(&h->clock);
    if (step_attach(h, &err)) {
        answer(h, STEP_MSG_ATTACH, &err);
        _exit(1);
    }
    answer(h, STEP_MSG_ATTACH, NULL);
    woken = 1;
    for (;;) {
        int n;

        if (woken)
            on_woken(h);
        n = wait_for_stops(h, stopped);
        for (int i = 0; i < n; i++)
            step_on_wait(h, stopped[i].tid, stopped[i].status);
        if (!n)
            all_gone(h);
        else if (h->start_deadline)
            answer_start(h);
    }
}
