/* A target that is stepped, and left again, behaves as without us. */
#include "tests/unit/recorder/step_harness.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <cmocka.h>

enum {
    WAIT_MS = 600, /* a wait with a time-out; we come and go in the midst of it */
    ATTACH_MS = 60,
    STAY_MS = 60,
    SLACK_MS = 1500, /* the machine may be busy */
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sleep_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* What a process's state letter is (proc(5)); 0: it is gone. */
static char state_of(pid_t pid)
{
    char path[64], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(f);
    return state;
}

static bool comes_to(pid_t pid, char state)
{
    for (int i = 0; i < 300; i++) {
        if (state_of(pid) == state)
            return true;
        sleep_ms(10);
    }
    return false;
}

/* ------------------------------------------------------------------ */
/* Waits. Each returns 0 when it ended as it should: after WAIT_MS by its time-out, or by `other` where it has
 * none. */

static int other[2]; /* a socket pair; the test writes a byte to other[1] after a while */

static int late(uint64_t since)
{
    uint64_t took = now_ms() - since;

    return took < WAIT_MS - 1 ? 10 : took > WAIT_MS + SLACK_MS ? 11 : 0;
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

    return epoll_wait(ep, &event, 1, WAIT_MS) == 0 ? late(since) : errno;
}

static int wait_epoll_pwait2(void)
{
    struct timespec t = {.tv_nsec = WAIT_MS * 1000000l};
    struct epoll_event event;
    int ep = epoll_create1(0);
    uint64_t since = now_ms();

    return syscall(SYS_epoll_pwait2, ep, &event, 1, &t, NULL, 8) == 0 ? late(since) : errno;
}

static int wait_nanosleep(void)
{
    struct timespec t = {.tv_nsec = WAIT_MS * 1000000l};
    uint64_t since = now_ms();

    return nanosleep(&t, NULL) ? errno : late(since);
}

static int wait_clock_nanosleep(void)
{
    struct timespec t;
    uint64_t since = now_ms();

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += WAIT_MS * 1000000l;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ? errno : late(since);
}

static int wait_poll(void)
{
    struct pollfd p = {.fd = other[0]};
    uint64_t since = now_ms();

    return poll(&p, 1, WAIT_MS) ? errno : late(since);
}

static int wait_select(void)
{
    struct timeval t = {.tv_usec = WAIT_MS * 1000};
    uint64_t since = now_ms();

    return select(0, NULL, NULL, NULL, &t) ? errno : late(since);
}

static int wait_read(void)
{
    char byte;

    return read(other[0], &byte, 1) == 1 ? 0 : errno;
}

static int wait_recv_timeout(void)
{
    struct timeval t = {.tv_usec = WAIT_MS * 1000};
    uint64_t since = now_ms();
    int pair[2];
    char byte;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)))
        return 1;
    return recv(pair[0], &byte, 1, 0) < 0 && errno == EAGAIN ? late(since) : errno;
}

static int wait_futex(void)
{
    struct timespec t = {.tv_nsec = WAIT_MS * 1000000l};
    uint64_t since = now_ms();
    int word = 0;

    return syscall(SYS_futex, &word, 0, 0, &t, NULL, 0) < 0 && errno == ETIMEDOUT ? late(since) : errno;
}

static int wait_condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    uint64_t since = now_ms();
    struct timespec t;
    int rc;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += WAIT_MS * 1000000l;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    rc = pthread_cond_timedwait(&cond, &mutex, &t);
    return rc == ETIMEDOUT ? late(since) : rc ? rc : 1;
}

static int wait_semaphore(void)
{
    struct timespec t = {.tv_nsec = WAIT_MS * 1000000l};
    struct sembuf down = {.sem_op = -1};
    uint64_t since = now_ms();
    int id = semget(IPC_PRIVATE, 1, 0600), rc;

    rc = semtimedop(id, &down, 1, &t) < 0 && errno == EAGAIN ? late(since) : errno;
    semctl(id, 0, IPC_RMID);
    return rc;
}

static int wait_signal(void)
{
    struct timespec t = {.tv_nsec = WAIT_MS * 1000000l};
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
        sleep_ms(WAIT_MS);
        _exit(3);
    }
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3 ? 0 : errno;
}

static int no_wait(void)
{
    uint64_t since = now_ms();

    while (now_ms() - since < WAIT_MS)
        ;
    return 0;
}

/* Attaches while the program is in its wait, and leaves again (or, with `stay`, sees it through). */
static void come_and_go(int (*program)(void), bool stay)
{
    struct harness x;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    harness_fork(&x, NULL, program);
    pid = x.child;
    harness_let_go(&x);
    sleep_ms(ATTACH_MS);
    harness_arm_pid(&x, &pid);
    sleep_ms(STAY_MS);
    if (!stay)
        harness_close(&x);
    sleep_ms(STAY_MS);
    assert_int_equal(write(other[1], "x", 1), 1);
    harness_wait(&x);
    if (stay)
        harness_close(&x);
    close(other[0]);
    close(other[1]);
    assert_int_equal(x.status, 0);
}

#define WAIT_TEST(name)                                                                                      \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        come_and_go(name, false);                                                                            \
        come_and_go(name, true);                                                                             \
    }

WAIT_TEST(wait_epoll)
WAIT_TEST(wait_epoll_timeout)
WAIT_TEST(wait_epoll_pwait2)
WAIT_TEST(wait_nanosleep)
WAIT_TEST(wait_clock_nanosleep)
WAIT_TEST(wait_poll)
WAIT_TEST(wait_select)
WAIT_TEST(wait_read)
WAIT_TEST(wait_recv_timeout)
WAIT_TEST(wait_futex)
WAIT_TEST(wait_condition)
WAIT_TEST(wait_semaphore)
WAIT_TEST(wait_signal)
WAIT_TEST(wait_child)
WAIT_TEST(no_wait)

/* ------------------------------------------------------------------ */
/* Signals                                                             */

/* Steps the program from before its first line to its end; returns its status from wait(2). */
static int step_through(int (*program)(void))
{
    struct harness x;
    pid_t pid;

    harness_fork(&x, NULL, program);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    assert_int_equal(harness_until_end(&x, 60), 0);
    harness_close(&x);
    harness_wait(&x);
    return x.status;
}

static volatile sig_atomic_t seen;

static void count(int sig)
{
    (void)sig;
    seen++;
}

/* Three children end during an epoll_wait; nobody handles SIGCHLD, so nothing of it may be noticed. */
static int ignored_signals(void)
{
    struct epoll_event event;
    int ep = epoll_create1(0);
    uint64_t since;

    for (unsigned i = 1; i <= 3; i++)
        if (!fork()) {
            sleep_ms(i * WAIT_MS / 4);
            _exit(0);
        }
    since = now_ms();
    if (epoll_wait(ep, &event, 1, WAIT_MS))
        return errno;
    return late(since);
}

static void test_ignored_signals(void **state)
{
    (void)state;
    assert_int_equal(step_through(ignored_signals), 0);
}

static int handled_signal(void)
{
    struct sigaction action = {.sa_handler = count};
    struct itimerval in = {.it_value.tv_usec = 500000};
    struct epoll_event event;
    struct timespec t = {.tv_sec = 20};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &in, NULL);
    if (epoll_wait(epoll_create1(0), &event, 1, -1) != -1 || errno != EINTR || seen != 1)
        return 1;
    setitimer(ITIMER_REAL, &in, NULL);
    if (nanosleep(&t, &t) != -1 || errno != EINTR || seen != 2 || t.tv_sec < 18)
        return 2;
    setitimer(ITIMER_REAL, &in, NULL);
    pause();
    return seen == 3 ? 0 : 3;
}

static void test_handled_signal(void **state)
{
    (void)state;
    assert_int_equal(step_through(handled_signal), 0);
}

/* With SA_RESTART the read goes on after the handler. */
static int restarted_read(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct itimerval in = {.it_value.tv_usec = 500000};
    int pipes[2];
    char byte;

    sigaction(SIGALRM, &action, NULL);
    if (pipe(pipes))
        return 1;
    if (!fork()) {
        sleep_ms(1500);
        _exit(write(pipes[1], "x", 1) != 1);
    }
    setitimer(ITIMER_REAL, &in, NULL);
    return read(pipes[0], &byte, 1) == 1 && seen == 1 ? 0 : 2;
}

static void test_restarted_read(void **state)
{
    (void)state;
    assert_int_equal(step_through(restarted_read), 0);
}

/* The program's own SIGTRAP: its handler stays although SIGTRAP is blocked while we step, and the mask it
 * reads is its own. */
static int own_sigtrap(void)
{
    struct sigaction action = {.sa_handler = count}, old;
    sigset_t all, before, now;

    sigfillset(&action.sa_mask);
    sigaction(SIGTRAP, &action, NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    sigprocmask(SIG_BLOCK, NULL, &now);
    if (sigismember(&before, SIGTRAP) || !sigismember(&now, SIGTRAP))
        return 1;
    sigprocmask(SIG_SETMASK, &before, &now);
    if (!sigismember(&now, SIGTRAP))
        return 2;
    sigprocmask(SIG_BLOCK, NULL, &now);
    if (sigismember(&now, SIGTRAP))
        return 3;
    sigaction(SIGTRAP, NULL, &old);
    if (old.sa_handler != count)
        return 4;
    raise(SIGTRAP);
    __asm__ volatile("int3");
    if (seen != 2)
        return 5;
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    return 0;
}

static void test_own_sigtrap(void **state)
{
    (void)state;
    assert_int_equal(step_through(own_sigtrap), 0);
}

/* A program that steps itself with the trap flag gets a SIGTRAP an instruction, and none after it cleared the
 * flag. */
static int steps_itself(void)
{
    struct sigaction action = {.sa_handler = count};
    int first;

    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq\n"
                     "orl $0x100, (%%rsp)\n"
                     "popfq\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "pushfq\n"
                     "andl $~0x100, (%%rsp)\n"
                     "popfq\n"
                     "nop\n" ::
                         : "memory", "cc");
    first = seen;
    getppid();
    return first == 6 && seen == 6 ? 0 : 10 + first;
}

static void test_steps_itself(void **state)
{
    (void)state;
    assert_int_equal(step_through(steps_itself), 0);
    step_no_breaks = true;
    assert_int_equal(step_through(steps_itself), 0);
    step_no_breaks = false;
}

static _Atomic uint64_t *spun;

static void *spin(void *arg)
{
    for (;;)
        spun[(long)arg]++;
    return arg;
}

static int spinning_threads(void)
{
    pthread_t t;

    for (long i = 0; i < 4; i++)
        if (pthread_create(&t, NULL, spin, (void *)i))
            return 1;
    return pause();
}

/* Threads that never wait go on side by side: none starves. */
static void test_is_fair(void **state)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct harness x;
    pid_t pid;

    (void)state;
    spun = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(spun != MAP_FAILED);
    harness_fork(&x, NULL, spinning_threads);
    pid = x.child;
    harness_let_go(&x);
    sleep_ms(100);
    harness_arm_pid(&x, &pid);
    for (int i = 0; i < 4; i++)
        spun[i] = 0;
    sleep_ms(700);
    for (int i = 0; i < 4; i++) {
        least = spun[i] < least ? spun[i] : least;
        most = spun[i] > most ? spun[i] : most;
    }
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
    assert_true(least > 10);
    assert_true(most < least * 4);
}

static int exits_7(void)
{
    return 7;
}

static int segfaults(void)
{
    __asm__ volatile("movl $1, 8");
    return 0;
}

static int kills_itself(void)
{
    kill(getpid(), SIGKILL);
    return 0;
}

static int terminates(void)
{
    raise(SIGTERM);
    return 0;
}

static int traps(void)
{
    raise(SIGTRAP);
    return 0;
}

static void test_ends_as_it_would(void **state)
{
    (void)state;
    assert_int_equal(step_through(exits_7), 7 << 8);
    assert_int_equal(step_through(segfaults) & 0x7f, SIGSEGV);
    assert_int_equal(step_through(kills_itself), SIGKILL);
    assert_int_equal(step_through(terminates), SIGTERM);
    assert_int_equal(step_through(traps) & 0x7f, SIGTRAP);
}

static int works_on(void)
{
    while (getpid())
        sleep_ms(1);
    return 0;
}

/* SIGSTOP stops, the parent is told, SIGCONT goes on. */
static void test_stops_and_continues(void **state)
{
    struct harness x;
    int status;
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    for (int i = 0; i < 3; i++) {
        sleep_ms(20);
        kill(pid, SIGSTOP);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
        assert_true(WIFCONTINUED(status));
    }
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    harness_close(&x); /* leaves it stopped */
    assert_true(comes_to(pid, 'T'));
    kill(pid, SIGCONT);
    assert_true(comes_to(pid, 'S'));
    kill(pid, SIGTERM);
    harness_wait(&x);
    assert_int_equal(x.status, SIGTERM);
}

/* A process that was stopped before we came stays stopped, and is stepped once it goes on. */
static void test_attaches_to_a_stopped_process(void **state)
{
    const struct rec_ring *rings;
    struct harness x;
    pid_t pid;
    size_t n;

    (void)state;
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_let_go(&x);
    kill(pid, SIGSTOP);
    assert_true(comes_to(pid, 'T'));
    harness_arm_pid(&x, &pid);
    sleep_ms(30);
    kill(pid, SIGCONT);
    sleep_ms(100);
    harness_freeze(&x, &rings, &n);
    assert_int_equal(n, 1);
    assert_true(rings[0].size[0] > 100);
    harness_resume(&x);
    kill(pid, SIGTERM);
    harness_wait(&x);
    harness_close(&x);
    assert_int_equal(x.status, SIGTERM);
}

/* ------------------------------------------------------------------ */
/* Dying                                                               */

struct counters {
    _Atomic uint64_t loops[3];

    _Atomic int stop;
};

static struct counters *counters;

static void *churn(void *arg)
{
    _Atomic uint64_t *loops = arg;
    static char a[3000], b[3000];
    int pipes[2];
    char byte;

    if (pipe(pipes))
        abort();
    while (!counters->stop) {
        if (write(pipes[1], "x", 1) != 1 || read(pipes[0], &byte, 1) != 1)
            abort();
        __asm__ volatile("pushfq\n popfq" ::: "memory", "cc");
        memmove(a, b, sizeof(a));
        if (*loops % 5 == 0)
            usleep(300);
        if (*loops % 50 == 0 && !fork())
            _exit(0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        ++*loops;
    }
    return NULL;
}

/* Threads in all kinds of places: system calls, sleeps, forks, string instructions, POPF. */
static int busy_program(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 7000}, {0, 7000}};
    pthread_t threads[2];

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, churn, &counters->loops[i + 1]))
            return 1;
    churn(&counters->loops[0]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 33;
}

static uint64_t slowest(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 3; i++)
        if (counters->loops[i] < least)
            least = counters->loops[i];
    return least;
}

static void all_go_on(pid_t pid)
{
    uint64_t until = slowest() + 3;

    for (int i = 0; i < 2000 && slowest() < until; i++) {
        int status = 0;

        waitpid(pid, &status, WNOHANG);
        assert_int_equal(status, 0);
        sleep_ms(5);
    }
    assert_true(slowest() >= until);
}

static int status_number(pid_t pid, const char *key)
{
    char path[64], line[128];
    int value = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            value = atoi(line + strlen(key));
    if (f)
        fclose(f);
    return value;
}

/* No thread of it is traced. */
static bool is_left_alone(pid_t pid)
{
    bool traced = true;

    for (int i = 0; i < 1000 && traced; i++) {
        pid_t *tids;
        int n = st_target_threads(pid, &tids, NULL);

        traced = false;
        for (int j = 0; j < n; j++)
            traced = traced || status_number(tids[j], "TracerPid:") > 0;
        if (n >= 0)
            free(tids);
        sleep_ms(5);
    }
    return !traced;
}

/* A process that arms the target, as `arm` does, and gets SIGKILL at some moment. */
static void arm_and_die(pid_t pid, unsigned after_us)
{
    pid_t arm = fork();

    if (!arm) {
        struct harness y;

        memset(&y, 0, sizeof(y));
        harness_arm_pid(&y, &pid);
        for (;;)
            pause();
    }
    usleep(after_us);
    kill(arm, SIGKILL);
    assert_int_equal(waitpid(arm, NULL, 0), arm);
    assert_true(is_left_alone(pid));
}

static void test_arm_is_killed(void **state)
{
    struct harness x;

    (void)state;
    counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(counters != MAP_FAILED);
    harness_fork(&x, NULL, busy_program);
    harness_let_go(&x);
    srand(11);
    for (int i = 0; i < 50; i++) {
        arm_and_die(x.child, (unsigned)rand() % 40000);
        all_go_on(x.child);
    }
    counters->stop = 1;
    harness_wait(&x);
    assert_int_equal(x.status, 33 << 8);
}

static void leave_and_come_back(void)
{
    struct harness x;
    pid_t pid;

    counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(counters != MAP_FAILED);
    harness_fork(&x, NULL, busy_program);
    pid = x.child;
    harness_let_go(&x);
    for (int i = 0; i < 20; i++) {
        struct harness y;

        memset(&y, 0, sizeof(y));
        harness_arm_pid(&y, &pid);
        sleep_ms((unsigned)rand() % 20);
        harness_close(&y);
        assert_int_equal(status_number(pid, "TracerPid:"), 0);
        all_go_on(pid);
    }
    counters->stop = 1;
    harness_wait(&x);
    assert_int_equal(x.status, 33 << 8);
}

static void test_leaves_and_comes_back(void **state)
{
    (void)state;
    leave_and_come_back();
    step_no_breaks = true;
    leave_and_come_back();
    step_no_breaks = false;
}

/* ------------------------------------------------------------------ */
/* What arm is told                                                    */

static void test_refuses_a_traced_process(void **state)
{
    struct st_error err = {0};
    struct harness x;
    char text[64];
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, works_on);
    harness_let_go(&x);
    pid = x.child;
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
    x.target = (struct st_target){.kind = ST_TARGET_PIDS, .pids = &pid, .npids = 1};
    assert_int_equal(ops->open(&x.config, &x.source, &err), ST_ECANNOT);
    snprintf(text, sizeof(text), "process %d traces it already", getpid());
    assert_non_null(strstr(err.text, text));
    kill(pid, SIGKILL);
    harness_wait(&x);
}

static void test_refuses_what_has_ended(void **state)
{
    struct st_error err = {0};
    struct harness x;
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, exits_7);
    harness_let_go(&x);
    pid = x.child;
    harness_wait(&x);
    x.target = (struct st_target){.kind = ST_TARGET_PIDS, .pids = &pid, .npids = 1};
    assert_int_equal(ops->open(&x.config, &x.source, &err), ST_EFAIL);
    assert_true(strlen(err.text) > 10);
}

static void test_tells_that_the_helper_died(void **state)
{
    struct st_error err = {0};
    struct harness x;
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    kill(status_number(pid, "TracerPid:"), SIGKILL);
    for (int i = 0; i < 100 && !(ops->service(x.source, &err) < 0); i++)
        sleep_ms(10);
    assert_int_equal(err.code, ST_EFAIL);
    assert_non_null(strstr(err.text, "helper"));
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

/* ------------------------------------------------------------------ */
/* Rings and records                                                   */

/* A ring that wrapped many times decodes from its first PSB to its end, without an error. */
static void test_wrapped_ring(void **state)
{
    const struct rec_ring *rings;
    struct pt_insn_decoder *decoder;
    struct harness_walk w = {0};
    struct pt_config config;
    struct pt_insn insn;
    struct harness x;
    uint8_t *bytes;
    uint64_t last = 0, n_insns = 0;
    size_t n;
    int status;
    pid_t pid;

    (void)state;
    harness_log_begin();
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    x.config.ring_bytes = 8192;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    do {
        sleep_ms(100);
        harness_freeze(&x, &rings, &n);
        if (rings[0].offset > 20000)
            break;
        harness_resume(&x);
    } while (harness_log->n < LOG_MAX);
    assert_int_equal(rings[0].size[0] + rings[0].size[1], 8192);
    bytes = test_malloc(8192);
    memcpy(bytes, rings[0].part[0], rings[0].size[0]);
    memcpy(bytes + rings[0].size[0], rings[0].part[1], rings[0].size[1]);
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + 8192;
    w.tid = pid;
    /* All code that ran is near the log's beginning: let libipt see any of it. */
    decoder = pt_insn_alloc_decoder(&config);
    w.any = true;
    pt_image_set_callback(pt_insn_get_image(decoder), harness_read_code, &w);
    status = pt_insn_sync_forward(decoder);
    assert_true(status >= 0);
    for (;;) {
        status = harness_events(decoder, status);
        if (status < 0 || (status & pts_eos))
            break;
        status = pt_insn_next(decoder, &insn, sizeof(insn));
        if (status < 0)
            break;
        last = insn.ip;
        n_insns++;
    }
    assert_true(status >= 0 || status == -pte_eos);
    assert_true(n_insns > 2000);
    assert_int_equal(last, harness_log->insn[harness_log->n - 1].ip);
    pt_insn_free_decoder(decoder);
    test_free(bytes);
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

static int sleeps_twice(void)
{
    sleep_ms(120);
    for (int i = 0; i < 50; i++)
        syscall(SYS_getppid);
    sleep_ms(10000);
    return 0;
}

/* The times at which user code was left for the longest time, and at which it came back, by the ring's
 * packets. */
static void longest_absence(const struct rec_ring *ring, uint64_t *left, uint64_t *back)
{
    uint64_t time = 0, out = 0;
    struct pt_packet_decoder *decoder;
    struct pt_config config;
    struct pt_packet p;

    *left = *back = 0;
    pt_config_init(&config);
    config.begin = (uint8_t *)ring->part[0];
    config.end = config.begin + ring->size[0];
    decoder = pt_pkt_alloc_decoder(&config);
    assert_int_equal(pt_pkt_sync_forward(decoder), 0);
    while (pt_pkt_next(decoder, &p, sizeof(p)) > 0) {
        if (p.type == ppt_tsc) {
            assert_true(p.payload.tsc.tsc >= time);
            time = p.payload.tsc.tsc;
        } else if (p.type == ppt_tip_pgd) {
            out = time;
        } else if (p.type == ppt_tip_pge && out && time - out > *back - *left) {
            *left = out;
            *back = time;
        }
    }
    pt_pkt_free_decoder(decoder);
}

/* The switches told are those of the sleeps: not the steps', and not those of system calls that do not wait.
 */
static void test_real_switches(void **state)
{
    const struct rec_switch *switches;
    const struct rec_ring *rings;
    struct st_error err = {0};
    struct harness x;
    size_t n, nrings;
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, sleeps_twice);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    sleep_ms(600);
    harness_freeze(&x, &rings, &nrings);
    harness_must(ops->switches(x.source, &switches, &n, &err), &err, "switches");
    if (n) { /* nothing where perf events are refused */
        uint64_t slept = 0, left, back, out = 0, in = 0;

        assert_true(n >= 3 && n < 40);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(switches[i].tid, pid);
            assert_int_equal(switches[i].pid, pid);
            assert_true(switches[i].time > rings[0].first_time);
            if (i) {
                assert_true(switches[i].time >= switches[i - 1].time);
                assert_int_equal(switches[i].out, !switches[i - 1].out);
            }
            if (i && !switches[i].out && switches[i].time - switches[i - 1].time > slept) {
                out = switches[i - 1].time;
                in = switches[i].time;
                slept = in - out;
            }
        }
        /* The packets and the kernel's records tell time by one clock. */
        longest_absence(&rings[0], &left, &back);
        assert_true(left <= out && out < in && in <= back);
        assert_true(out - left < SLACK_MS * 1000000ull);
        assert_true(switches[n - 1].out);
        assert_in_range(slept, 119000000, (120 + SLACK_MS) * 1000000ull);
    }
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

/* While frozen nothing moves; afterwards the trace goes on. */
static void test_freezes(void **state)
{
    const struct rec_ring *rings;
    struct harness x;
    uint64_t bytes;
    size_t n;
    pid_t pid;

    (void)state;
    harness_log_begin();
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_arm_pid(&x, &pid);
    harness_let_go(&x);
    sleep_ms(100);
    harness_freeze(&x, &rings, &n);
    assert_int_equal(n, 1);
    bytes = rings[0].size[0];
    assert_int_equal(harness_compare(&rings[0]).differences, 0);
    sleep_ms(50);
    ops->rings(x.source, &rings, &n, NULL);
    assert_int_equal(rings[0].size[0], bytes);
    harness_resume(&x);
    sleep_ms(100);
    harness_freeze(&x, &rings, &n);
    assert_true(rings[0].size[0] > bytes);
    assert_int_equal(harness_compare(&rings[0]).differences, 0);
    harness_resume(&x);
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

static void test_slots_are_used_again(void **state)
{
    struct step_shared *shared;
    struct step_slot *first, *second;

    (void)state;
    assert_int_equal(step_shared_create(4096, &shared, NULL), 0);
    assert_int_equal(shared->nslots, STEP_SLOTS);
    first = step_slot_take(shared, 1, 1, 100);
    second = step_slot_take(shared, 1, 2, 100);
    for (int i = 2; i < STEP_SLOTS; i++)
        assert_non_null(step_slot_take(shared, 1, i + 1, 100));
    assert_null(step_slot_take(shared, 1, 5000, 100));
    second->ring.head = 7;
    step_slot_end(second, 200);
    step_slot_end(first, 300);
    assert_ptr_equal(step_slot_take(shared, 1, 5000, 400), second);
    assert_int_equal(second->ring.head, 0);
    assert_ptr_equal(step_slot_take(shared, 1, 5001, 400), first);
    assert_null(step_slot_take(shared, 1, 5002, 400));
    step_shared_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_epoll),
        cmocka_unit_test(test_wait_epoll_timeout),
        cmocka_unit_test(test_wait_epoll_pwait2),
        cmocka_unit_test(test_wait_nanosleep),
        cmocka_unit_test(test_wait_clock_nanosleep),
        cmocka_unit_test(test_wait_poll),
        cmocka_unit_test(test_wait_select),
        cmocka_unit_test(test_wait_read),
        cmocka_unit_test(test_wait_recv_timeout),
        cmocka_unit_test(test_wait_futex),
        cmocka_unit_test(test_wait_condition),
        cmocka_unit_test(test_wait_semaphore),
        cmocka_unit_test(test_wait_signal),
        cmocka_unit_test(test_wait_child),
        cmocka_unit_test(test_no_wait),
        cmocka_unit_test(test_ignored_signals),
        cmocka_unit_test(test_handled_signal),
        cmocka_unit_test(test_restarted_read),
        cmocka_unit_test(test_own_sigtrap),
        cmocka_unit_test(test_steps_itself),
        cmocka_unit_test(test_is_fair),
        cmocka_unit_test(test_ends_as_it_would),
        cmocka_unit_test(test_stops_and_continues),
        cmocka_unit_test(test_attaches_to_a_stopped_process),
        cmocka_unit_test(test_arm_is_killed),
        cmocka_unit_test(test_leaves_and_comes_back),
        cmocka_unit_test(test_refuses_a_traced_process),
        cmocka_unit_test(test_refuses_what_has_ended),
        cmocka_unit_test(test_tells_that_the_helper_died),
        cmocka_unit_test(test_wrapped_ring),
        cmocka_unit_test(test_real_switches),
        cmocka_unit_test(test_freezes),
        cmocka_unit_test(test_slots_are_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
