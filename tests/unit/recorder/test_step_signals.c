/* Signals, and what ends or stops a process, are as without us while it is stepped. */
#include "tests/unit/recorder/step_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>

#include <cmocka.h>

static volatile sig_atomic_t seen;

static void count(int sig)
{
    (void)sig;
    seen++;
}

/* Children end during an epoll_wait; nobody handles SIGCHLD, so nothing of it may be noticed: the wait
 * neither fails nor lasts longer. */
static int ignored_signals(void)
{
    enum { WAIT_MS = 600, SLACK_MS = 15000 };
    struct epoll_event event;
    int ep = epoll_create1(0), rc;
    uint64_t since, took;

    for (unsigned i = 1; i <= 3; i++)
        if (!fork()) {
            sleep_ms(i * WAIT_MS / 4);
            _exit(0);
        }
    since = now_ms();
    rc = epoll_wait(ep, &event, 1, WAIT_MS);
    took = now_ms() - since;
    if (rc)
        return errno;
    return took < WAIT_MS - 1 ? 210 : took > WAIT_MS + SLACK_MS ? 211 : 0;
}

static void test_ignored_signals(void **state)
{
    (void)state;
    assert_int_equal(step_through(ignored_signals), 0);
}

/* Where a program is, and how many signals it handled; in memory that it shares with the test. */
static struct {
    _Atomic int phase, handled;
} * shared;

static void handle(int sig)
{
    (void)sig;
    shared->handled++;
}

/* Starts a program that is stepped from before its first line. */
static void begin(struct harness *x, int (*program)(void))
{
    shared->phase = shared->handled = 0;
    harness_fork(x, NULL, program);
    harness_arm_pid(x, &(pid_t){x->child});
    harness_let_go(x);
}

static int end(struct harness *x)
{
    harness_wait(x);
    harness_close(x);
    return x->status;
}

/* It waits in the kernel, having come so far. */
static bool waits_in(const struct harness *x, int phase)
{
    return shared->phase == phase && state_of(x->child) == 'S';
}

/* A handler without SA_RESTART ends a wait, and tells what was left of it. */
static int handled_signal(void)
{
    struct sigaction action = {.sa_handler = handle};
    struct timespec t = {.tv_sec = 1000};
    struct epoll_event event;
    int ep = epoll_create1(0);

    sigaction(SIGALRM, &action, NULL);
    shared->phase = 1;
    if (epoll_wait(ep, &event, 1, -1) != -1 || errno != EINTR || shared->handled != 1)
        return 1;
    shared->phase = 2;
    if (nanosleep(&t, &t) != -1 || errno != EINTR || shared->handled != 2 || t.tv_sec < 900)
        return 2;
    shared->phase = 3;
    pause();
    return shared->handled == 3 ? 0 : 3;
}

static void test_handled_signal(void **state)
{
    struct harness x;

    (void)state;
    begin(&x, handled_signal);
    for (int phase = 1; phase <= 3; phase++) {
        assert_true(UNTIL(waits_in(&x, phase)));
        kill(x.child, SIGALRM);
    }
    assert_int_equal(end(&x), 0);
}

static int pipes[2];

/* With SA_RESTART the read goes on after the handler. */
static int restarted_read(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    char byte;

    sigaction(SIGALRM, &action, NULL);
    shared->phase = 1;
    return read(pipes[0], &byte, 1) == 1 && shared->handled == 2 ? 0 : 2;
}

static void test_restarted_read(void **state)
{
    struct harness x;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    begin(&x, restarted_read);
    for (int i = 0; i < 2; i++) {
        assert_true(UNTIL(waits_in(&x, 1)));
        kill(x.child, SIGALRM);
        assert_true(UNTIL(shared->handled == i + 1));
    }
    assert_true(UNTIL(waits_in(&x, 1)));
    assert_int_equal(write(pipes[1], "x", 1), 1);
    assert_int_equal(end(&x), 0);
    close(pipes[0]);
    close(pipes[1]);
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
    assert_true(UNTIL(state_of(pid) == 'T'));
    kill(pid, SIGCONT);
    assert_true(UNTIL(state_of(pid) == 'S'));
    kill(pid, SIGTERM);
    harness_wait(&x);
    assert_int_equal(x.status, SIGTERM);
}

/* A process that was stopped before we came stays stopped, and is stepped once it goes on. */
static void test_attaches_to_a_stopped_process(void **state)
{
    struct harness x;
    pid_t pid;

    (void)state;
    harness_fork(&x, NULL, works_on);
    pid = x.child;
    harness_let_go(&x);
    kill(pid, SIGSTOP);
    assert_true(UNTIL(state_of(pid) == 'T'));
    harness_arm_pid(&x, &pid);
    sleep_ms(30);
    assert_true(strchr("Tt", state_of(pid)));
    assert_int_equal(step_count(x.source), 0);
    kill(pid, SIGCONT);
    assert_true(UNTIL(step_count(x.source) > 100));
    kill(pid, SIGTERM);
    harness_wait(&x);
    harness_close(&x);
    assert_int_equal(x.status, SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ignored_signals),     cmocka_unit_test(test_handled_signal),
        cmocka_unit_test(test_restarted_read),      cmocka_unit_test(test_own_sigtrap),
        cmocka_unit_test(test_steps_itself),        cmocka_unit_test(test_ends_as_it_would),
        cmocka_unit_test(test_stops_and_continues), cmocka_unit_test(test_attaches_to_a_stopped_process),
    };

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
