/* What a process waits for when we come, and when we go again, is as without us: no EINTR, no time-out cut
 * short. */
#include "tests/unit/recorder/step_harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cmocka.h>

enum {
    TIMES = 3, /* that we come and go within one wait */
    STAY_MS = 30,
    SLACK_MS = 15000, /* the machine may be busy */
    MOST_WAITS = 32,
};

/* How long a wait with a time-out lasts. We come and go in the midst of it. */
static unsigned wait_ms;

/* ------------------------------------------------------------------ */
/* The waits. Each returns 0 when it ended as it should: after wait_ms by its time-out, or by `other` where it
 * has none. */

static int other[2]; /* a socket pair; the test writes a byte to other[1] after a while */

static int late(uint64_t since)
{
    uint64_t took = now_ms() - since;

    return took < wait_ms - 1 ? 210 : took > wait_ms + SLACK_MS ? 211 : 0;
}

static struct timespec wait_time(void)
{
    return (struct timespec){.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000l};
}

/* The moment at which a wait that begins now ends. */
static struct timespec wait_end(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_nsec += wait_ms * 1000000l;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static int epoll_of_other(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int ep = epoll_create1(0);

    epoll_ctl(ep, EPOLL_CTL_ADD, other[0], &event);
    return ep;
}

static int wait_epoll(void)
{
    struct epoll_event event;

    return epoll_wait(epoll_of_other(), &event, 1, -1) == 1 ? 0 : errno;
}

static int wait_epoll_timeout(void)
{
    struct epoll_event event;
    int ep = epoll_create1(0);
    uint64_t since = now_ms();

    return epoll_wait(ep, &event, 1, (int)wait_ms) == 0 ? late(since) : errno;
}

static int wait_epoll_pwait2(void)
{
    struct timespec t = wait_time();
    struct epoll_event event;
    int ep = epoll_create1(0);
    uint64_t since = now_ms();

    return syscall(SYS_epoll_pwait2, ep, &event, 1, &t, NULL, 8) == 0 ? late(since) : errno;
}

static int wait_nanosleep(void)
{
    struct timespec t = wait_time();
    uint64_t since = now_ms();

    return nanosleep(&t, NULL) ? errno : late(since);
}

static int wait_clock_nanosleep(void)
{
    struct timespec t = wait_end(CLOCK_MONOTONIC);
    uint64_t since = now_ms();

    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ? errno : late(since);
}

static int wait_poll(void)
{
    struct pollfd p = {.fd = other[0]};
    uint64_t since = now_ms();

    return poll(&p, 1, (int)wait_ms) ? errno : late(since);
}

static int wait_ppoll(void)
{
    struct pollfd p = {.fd = other[0], .events = POLLIN};

    return ppoll(&p, 1, NULL, NULL) == 1 ? 0 : errno;
}

static int wait_select(void)
{
    struct timespec t = wait_time();
    struct timeval v = {.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    uint64_t since = now_ms();

    return select(0, NULL, NULL, NULL, &v) ? errno : late(since);
}

static int wait_pselect(void)
{
    struct timespec t = wait_time();
    uint64_t since = now_ms();

    return pselect(0, NULL, NULL, NULL, &t, NULL) ? errno : late(since);
}

static int wait_read(void)
{
    char byte;

    return read(other[0], &byte, 1) == 1 ? 0 : errno;
}

static int wait_recv(void)
{
    char byte;

    return recv(other[0], &byte, 1, 0) == 1 ? 0 : errno;
}

static int wait_recv_timeout(void)
{
    struct timespec t = wait_time();
    struct timeval v = {.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    uint64_t since = now_ms();
    char byte;

    if (setsockopt(other[0], SOL_SOCKET, SO_RCVTIMEO, &v, sizeof(v)))
        return 1;
    /* A byte that comes before its time ends it too, and is told by late(). */
    return recv(other[0], &byte, 1, 0) == 1 || errno == EAGAIN ? late(since) : errno;
}

static int wait_futex(void)
{
    struct timespec t = wait_time();
    uint64_t since = now_ms();
    int word = 0;

    return syscall(SYS_futex, &word, 0, 0, &t, NULL, 0) < 0 && errno == ETIMEDOUT ? late(since) : errno;
}

static int wait_condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec t = wait_end(CLOCK_REALTIME);
    uint64_t since = now_ms();
    int rc;

    pthread_mutex_lock(&mutex);
    rc = pthread_cond_timedwait(&cond, &mutex, &t);
    return rc == ETIMEDOUT ? late(since) : rc ? rc : 1;
}

static int wait_semaphore(void)
{
    struct timespec t = wait_time();
    struct sembuf down = {.sem_op = -1};
    uint64_t since = now_ms();
    int id = semget(IPC_PRIVATE, 1, 0600), rc;

    rc = semtimedop(id, &down, 1, &t) < 0 && errno == EAGAIN ? late(since) : errno;
    semctl(id, 0, IPC_RMID);
    return rc;
}

static int wait_signal(void)
{
    struct timespec t = wait_time();
    uint64_t since = now_ms();
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return sigtimedwait(&set, NULL, &t) < 0 && errno == EAGAIN ? late(since) : errno;
}

static int wait_child(void)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep_ms(wait_ms);
        _exit(3);
    }
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3 ? 0 : errno;
}

static int no_wait(void)
{
    uint64_t since = now_ms();

    while (now_ms() - since < wait_ms)
        ;
    return 0;
}

static const struct wait {
    const char *name;

    int (*program)(void);

    bool woken; /* by a byte; has no time-out */

    char state; /* of a thread that is in it */
} waits[] = {
    {"epoll_wait", wait_epoll, true, 'S'},
    {"epoll_wait with a time-out", wait_epoll_timeout, false, 'S'},
    {"epoll_pwait2 with a time-out", wait_epoll_pwait2, false, 'S'},
    {"nanosleep", wait_nanosleep, false, 'S'},
    {"clock_nanosleep", wait_clock_nanosleep, false, 'S'},
    {"poll with a time-out", wait_poll, false, 'S'},
    {"ppoll", wait_ppoll, true, 'S'},
    {"select with a time-out", wait_select, false, 'S'},
    {"pselect with a time-out", wait_pselect, false, 'S'},
    {"read", wait_read, true, 'S'},
    {"recv", wait_recv, true, 'S'},
    {"recv with a time-out", wait_recv_timeout, false, 'S'},
    {"futex with a time-out", wait_futex, false, 'S'},
    {"a condition variable", wait_condition, false, 'S'},
    {"semtimedop", wait_semaphore, false, 'S'},
    {"sigtimedwait", wait_signal, false, 'S'},
    {"waitpid", wait_child, false, 'S'},
    {"no wait at all", no_wait, false, 'R'},
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

/* ------------------------------------------------------------------ */

/* How far each is; in memory that all share. */
static struct {
    _Atomic bool begun[MOST_WAITS], ended[MOST_WAITS];
} * progress;

static size_t current; /* the child that is made now */

static int run_wait(void)
{
    int rc;

    progress->begun[current] = true;
    rc = waits[current].program();
    progress->ended[current] = true;
    return rc;
}

struct round {
    struct harness child[WAITS];

    int others[WAITS][2];

    pid_t pids[WAITS];
};

static void begin_all(struct round *r)
{
    memset(progress, 0, sizeof(*progress));
    for (current = 0; current < WAITS; current++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other), 0);
        memcpy(r->others[current], other, sizeof(other));
        harness_fork(&r->child[current], NULL, run_wait);
        r->pids[current] = r->child[current].child;
    }
    for (size_t i = 0; i < WAITS; i++)
        harness_let_go(&r->child[i]);
}

static bool all_wait(const struct round *r)
{
    for (size_t i = 0; i < WAITS; i++)
        if (!progress->ended[i] && !(progress->begun[i] && state_of(r->pids[i]) == waits[i].state))
            return false;
    return true;
}

static bool any_ended(void)
{
    for (size_t i = 0; i < WAITS; i++)
        if (progress->ended[i])
            return true;
    return false;
}

/* Those that were in their waits all the time must have ended well; the others had no chance to fail. */
static void end_all(struct round *r)
{
    for (size_t i = 0; i < WAITS; i++)
        if (waits[i].woken)
            assert_int_equal(write(r->others[i][1], "x", 1), 1);
    for (size_t i = 0; i < WAITS; i++) {
        harness_wait(&r->child[i]);
        close(r->child[i].go);
        close(r->others[i][0]);
        close(r->others[i][1]);
        if (r->child[i].status)
            print_error("%s: status 0x%x, of waits of %u ms\n", waits[i].name, (unsigned)r->child[i].status,
                        wait_ms);
    }
    for (size_t i = 0; i < WAITS; i++)
        assert_int_equal(r->child[i].status, 0);
}

/* Whether everyone was in its wait all the time that we came and went. */
static bool come_and_go(void)
{
    struct round r;
    bool in_time;

    begin_all(&r);
    assert_true(UNTIL(all_wait(&r)));
    for (int i = 0; i < TIMES; i++) {
        struct harness x = {.go = -1};

        harness_arm_pids(&x, r.pids, WAITS);
        sleep_ms(STAY_MS);
        harness_close(&x);
    }
    in_time = !any_ended();
    end_all(&r);
    return in_time;
}

/* The same for those that are stepped out of their waits and on to their ends. */
static bool come_and_stay(void)
{
    struct harness x = {.go = -1};
    struct round r;
    bool in_time;

    begin_all(&r);
    assert_true(UNTIL(all_wait(&r)));
    harness_arm_pids(&x, r.pids, WAITS);
    in_time = !any_ended();
    sleep_ms(STAY_MS);
    end_all(&r);
    harness_close(&x);
    return in_time;
}

/* A machine that is too busy to let us come while all wait gets longer waits. */
static void until_in_time(bool (*round)(void))
{
    bool in_time = false;

    for (wait_ms = 600; !in_time && wait_ms <= 600 * 8; wait_ms *= 2)
        in_time = round();
    assert_true(in_time);
}

static void test_waits_that_we_leave(void **state)
{
    (void)state;
    until_in_time(come_and_go);
}

static void test_waits_that_we_see_end(void **state)
{
    (void)state;
    until_in_time(come_and_stay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_that_we_leave),
        cmocka_unit_test(test_waits_that_we_see_end),
    };

    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return progress == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
