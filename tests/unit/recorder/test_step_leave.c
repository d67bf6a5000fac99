/* Leaving: the target goes on as if nobody had come, whether we detach, arm is killed at any moment, or we
 * may not come at all. */
#include "tests/unit/recorder/step_harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cmocka.h>

enum {
    ENOUGH_MS = 4000, /* of one thing, on a busy machine */
    LEAST_ROUNDS = 6,
};

/* How often each thread of the program has gone round; in memory that it shares with the test. */
static struct {
    _Atomic uint64_t loops[3];

    _Atomic int stop, alarms, children, bad_children;
} * counters;

static void count_alarm(int sig)
{
    (void)sig;
    counters->alarms++;
}

/* A trap flag that stayed would end them with SIGTRAP. */
static void reap(void)
{
    int status;

    while (waitpid(-1, &status, WNOHANG) > 0) {
        counters->children++;
        counters->bad_children += status != 6 << 8;
    }
}

static void have_child(void)
{
    if (!fork()) {
        static char a[3000], b[3000];

        memmove(a, b, sizeof(a));
        sleep_ms(1);
        _exit(getppid() ? 6 : 7);
    }
}

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
        if (*loops % 50 == 0)
            have_child();
        reap();
        ++*loops;
    }
    return NULL;
}

/* Threads in all kinds of places: system calls, sleeps, forks, string instructions, POPF. */
static int busy_program(void)
{
    struct sigaction action = {.sa_handler = count_alarm, .sa_flags = SA_RESTART};
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

/* Every thread of it makes headway. */
static void all_go_on(pid_t pid)
{
    uint64_t until = slowest() + 3;
    int status = 0;

    assert_true(UNTIL(slowest() >= until || waitpid(pid, &status, WNOHANG)));
    assert_int_equal(status, 0);
}

static void begin(struct harness *x)
{
    memset(counters, 0, sizeof(*counters));
    harness_fork(x, NULL, busy_program);
    harness_let_go(x);
    all_go_on(x->child);
}

/* It ends as it would have, and all that it did was done well. */
static void end(struct harness *x)
{
    counters->stop = 1;
    harness_wait(x);
    close(x->go);
    assert_int_equal(x->status, 33 << 8);
    assert_true(counters->alarms > 0);
    assert_true(counters->children > 0);
    assert_int_equal(counters->bad_children, 0);
}

/* Reaps the helper that outlived the arm of ours that was killed. Whether there is none (left): one that has
 * not attached yet when arm dies may still do so, and leaves then. */
static bool helper_is_gone(pid_t target)
{
    char path[64], children[256] = "";
    FILE *f;

    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    assert_non_null(f);
    if (!fgets(children, sizeof(children), f))
        children[0] = '\0';
    fclose(f);
    return atoi(children) == target && !strchr(strchr(children, ' ') + 1, ' ');
}

/* A process that arms the target, as `arm` does, and gets SIGKILL at some moment. */
static void arm_and_die(pid_t pid, unsigned after_us)
{
    pid_t arm = fork();

    if (!arm) {
        struct harness y = {.go = -1};

        harness_arm_pid(&y, &pid);
        for (;;)
            pause();
    }
    usleep(after_us);
    kill(arm, SIGKILL);
    assert_int_equal(waitpid(arm, NULL, 0), arm);
    assert_true(UNTIL(helper_is_gone(pid)));
    assert_false(is_traced(pid));
}

static void test_arm_is_killed(void **state)
{
    uint64_t begun = now_ms();
    struct harness x;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    begin(&x);
    srand(11);
    for (int i = 0; i < 50 && (i < LEAST_ROUNDS || now_ms() - begun < ENOUGH_MS); i++) {
        arm_and_die(x.child, (unsigned)rand() % 40000);
        all_go_on(x.child);
    }
    end(&x);
}

static void leave_and_come_back(void)
{
    uint64_t begun = now_ms();
    struct harness x;

    begin(&x);
    for (int i = 0; i < 20 && (i < LEAST_ROUNDS || now_ms() - begun < ENOUGH_MS); i++) {
        struct harness y = {.go = -1};

        harness_arm_pid(&y, &x.child);
        sleep_ms((unsigned)rand() % 20);
        harness_close(&y);
        assert_false(is_traced(x.child));
        all_go_on(x.child);
    }
    end(&x);
}

static void test_leaves_and_comes_back(void **state)
{
    (void)state;
    leave_and_come_back();
}

static void test_leaves_without_breakpoints(void **state)
{
    (void)state;
    step_no_breaks = true;
    leave_and_come_back();
    step_no_breaks = false;
}

/* Hardly anything but flags that are written to memory and read again: we leave behind every one of these
 * instructions, and a trap flag of ours among them would kill it. */
static int pushes_flags(void)
{
    while (!counters->stop) {
        for (int i = 0; i < 1000; i++)
            __asm__ volatile(
                "lea -128(%%rsp), %%rsp\n pushfq\n popfq\n pushfq\n popfq\n lea 128(%%rsp), %%rsp" ::
                    : "memory", "cc");
        ++counters->loops[0];
    }
    return 33;
}

static void leave_amid_flags(void)
{
    struct harness x;

    memset(counters, 0, sizeof(*counters));
    harness_fork(&x, NULL, pushes_flags);
    harness_let_go(&x);
    for (int i = 0; i < 30; i++) {
        uint64_t loops = counters->loops[0];
        struct harness y = {.go = -1};

        assert_true(UNTIL(counters->loops[0] > loops));
        harness_arm_pid(&y, &x.child);
        assert_true(UNTIL(step_count(y.source) > 20));
        harness_close(&y);
    }
    counters->stop = 1;
    harness_wait(&x);
    close(x.go);
    assert_int_equal(x.status, 33 << 8);
}

static void test_leaves_amid_flags(void **state)
{
    (void)state;
    leave_amid_flags();
    step_no_breaks = true;
    leave_amid_flags();
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

static int exits_7(void)
{
    return 7;
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
    assert_true(UNTIL(ops->service(x.source, &err) < 0));
    assert_int_equal(err.code, ST_EFAIL);
    assert_non_null(strstr(err.text, "helper"));
    kill(pid, SIGKILL);
    harness_wait(&x);
    harness_close(&x);
}

/* ------------------------------------------------------------------ */
/* On the way into a wait                                              */

enum { RECEIVERS = 16, VISITS = 60 };

/* How a wait of 1 ms for a byte that never comes ended, each time. */
static struct {
    _Atomic unsigned timed_out, interrupted;
} * receives;

/* A few instructions lead from a wait to the next one, so that many of these threads are about to enter it.
 */
static void *receive(void *arg)
{
    int *fd = arg;
    char byte;

    for (;;) {
        register long flags asm("r10") = 0;
        register long no_address asm("r8") = 0;
        register long no_length asm("r9") = 0;
        long rc;

        asm volatile("syscall"
                     : "=a"(rc)
                     : "a"((long)SYS_recvfrom), "D"((long)*fd), "S"(&byte), "d"(1l), "r"(flags),
                       "r"(no_address), "r"(no_length)
                     : "rcx", "r11", "memory");
        if (rc == -EAGAIN)
            receives->timed_out++;
        else if (rc == -EINTR)
            receives->interrupted++;
    }
    return NULL;
}

static int receiving_program(void)
{
    const struct timeval wait = {.tv_usec = 1000};
    pthread_t threads[RECEIVERS];
    int pairs[RECEIVERS][2];

    for (size_t i = 0; i < RECEIVERS; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) ||
            setsockopt(pairs[i][0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
            pthread_create(&threads[i], NULL, receive, pairs[i]))
            return 1;
    pause();
    return 0;
}

static void test_leaves_on_the_way_into_a_wait(void **state)
{
    struct harness x;
    pid_t pid;

    (void)state;
    receives = mmap(NULL, sizeof(*receives), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(receives, MAP_FAILED);
    harness_fork(&x, NULL, receiving_program);
    pid = x.child;
    harness_let_go(&x);
    for (int i = 0; i < VISITS; i++) {
        unsigned before = receives->timed_out;
        struct harness arm = {.go = -1};

        harness_arm_pid(&arm, &pid);
        assert_true(UNTIL(receives->timed_out > before + RECEIVERS));
        harness_close(&arm);
    }
    kill(pid, SIGKILL);
    harness_wait(&x);
    assert_int_equal(receives->interrupted, 0);
    munmap(receives, sizeof(*receives));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arm_is_killed),
        cmocka_unit_test(test_leaves_and_comes_back),
        cmocka_unit_test(test_leaves_without_breakpoints),
        cmocka_unit_test(test_leaves_amid_flags),
        cmocka_unit_test(test_leaves_on_the_way_into_a_wait),
        cmocka_unit_test(test_refuses_a_traced_process),
        cmocka_unit_test(test_refuses_what_has_ended),
        cmocka_unit_test(test_tells_that_the_helper_died),
    };

    counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return counters == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
