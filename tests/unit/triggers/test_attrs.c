/* What /proc tells about a stall: asked about processes that are in it. */
#include "triggers/attrs.h"
#include "triggers/record_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char state_of(pid_t pid)
{
    char path[64], line[256], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) && sscanf(line, "State: %c", &state) != 1)
        ;
    fclose(f);
    return state;
}

/* Runs until it is killed: fd is open in it. */
static pid_t child(const char *name, int fd, void (*run)(int fd))
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    run(fd);
    for (;;)
        pause();
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void take_flock(int fd)
{
    char path[64];
    int mine;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    mine = open(path, O_RDWR); /* a lock of its own description */
    if (mine < 0 || dup2(mine, fd) < 0 || flock(fd, LOCK_EX))
        _exit(1);
    close(mine);
}

static void take_posix(int fd)
{
    struct flock all = {.l_type = F_WRLCK};

    if (fcntl(fd, F_SETLKW, &all))
        _exit(1);
}

/* How many lines of /proc/locks a process has. */
static int locks_of(pid_t pid, bool waits)
{
    char line[256];
    FILE *f = fopen("/proc/locks", "re");
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        int found = 0;

        sscanf(line, strstr(line, "-> ") ? "%*d: -> %*s %*s %*s %d" : "%*d: %*s %*s %*s %d", &found);
        n += found == pid && waits == (strstr(line, "-> ") != NULL);
    }
    fclose(f);
    return n;
}

static struct st_stall_record record_of(pid_t pid, int call, int fd)
{
    return (struct st_stall_record){.kind = ST_STALL_OFFCPU,
                                    .flags = ST_STALL_ONGOING,
                                    .pid = (st_u32)pid,
                                    .tid = (st_u32)pid,
                                    .state = 1,
                                    .syscall = call,
                                    .syscall_args = {(st_u64)fd}};
}

static void assert_holder(int call, void (*take)(int fd))
{
    char path[] = "/tmp/stalltrap-attrs.XXXXXX", expected[64];
    int fd = mkstemp(path), other = open("/dev/null", O_RDWR);
    pid_t holder, waiter;
    struct st_stall_record r;

    assert_true(fd >= 0 && other >= 0);
    unlink(path);
    holder = child("holder", fd, take);
    while (!locks_of(holder, false))
        sched_yield();
    waiter = child("waiter", fd, take);
    while (!locks_of(waiter, true))
        sched_yield();
    snprintf(expected, sizeof(expected), "process %d \"holder\"", holder);
    r = record_of(waiter, call, fd);
    trg_add_attrs(&r);
    assert_string_equal(trg_attribute(&r, "lock_holder"), expected);
    r = record_of(waiter, call, other); /* another file */
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "lock_holder"));
    r = record_of(waiter, call == SYS_flock ? SYS_fcntl : SYS_flock, fd); /* another kind of lock */
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "lock_holder"));
    r = record_of(waiter, call, fd);
    r.flags = 0; /* it is over: what /proc/locks says is of now */
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "lock_holder"));
    end(waiter);
    end(holder);
    close(fd);
    close(other);
}

static void who_took_a_files_lock_is_told(void **state)
{
    (void)state;
    assert_holder(SYS_flock, take_flock);
    assert_holder(SYS_fcntl, take_posix);
}

static void keep(int fd)
{
    (void)fd;
}

static void who_traces_it_is_told(void **state)
{
    pid_t pid = child("traced", -1, keep);
    struct st_stall_record r = record_of(pid, SYS_pause, 0);
    char expected[64], name[16];

    (void)state;
    prctl(PR_GET_NAME, name);
    snprintf(expected, sizeof(expected), "process %d \"%s\"", getpid(), name);
    r.state = 8;
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "tracer"));
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
    assert_int_equal(state_of(pid), 't');
    trg_add_attrs(&r);
    assert_string_equal(trg_attribute(&r, "tracer"), expected);
    end(pid);
}

/* The longest system call of several has no arguments in the record: descriptor 0 is not its file. */
static void a_file_is_told_of_its_own_call_only(void **state)
{
    int fd = open("/dev/null", O_RDWR);
    struct st_stall_record r = record_of(getpid(), SYS_fsync, fd);

    (void)state;
    assert_true(fd >= 0);
    trg_add_attrs(&r);
    assert_string_equal(trg_attribute(&r, "file"), "/dev/null");
    r = record_of(getpid(), SYS_fsync, fd);
    r.kind = ST_STALL_BUSY;
    trg_add_attribute(&r, "syscall_ns", "3300");
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "file"));
    close(fd);
}

/* A connection on the loopback: this process reads from one end, a child has the other one. */
static void who_is_at_the_other_end_is_told(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, far;
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM, 0),
        other;
    char peer[64], process[64];
    struct st_stall_record r;
    pid_t pid;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size) | listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, size), 0);
    other = accept(listener, NULL, NULL);
    assert_true(other >= 0);
    r = record_of(getpid(), SYS_recvfrom, fd);
    trg_add_attrs(&r);
    snprintf(peer, sizeof(peer), "127.0.0.1:%u", ntohs(at.sin_port));
    assert_string_equal(trg_attribute(&r, "peer"), peer);
    assert_null(trg_attribute(&r, "accepted"));
    pid = child("server", other, keep); /* now two have it */
    r = record_of(getpid(), SYS_recvfrom, fd);
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "peer_process"));
    close(other);
    r = record_of(getpid(), SYS_read, fd);
    trg_add_attrs(&r);
    snprintf(process, sizeof(process), "process %d \"server\"", pid);
    assert_string_equal(trg_attribute(&r, "peer_process"), process);
    r = record_of(pid, SYS_read, other); /* the child listens too: it has the listening socket */
    trg_add_attrs(&r);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&far, &size), 0);
    snprintf(peer, sizeof(peer), "127.0.0.1:%u", ntohs(far.sin_port));
    assert_string_equal(trg_attribute(&r, "peer"), peer);
    assert_string_equal(trg_attribute(&r, "accepted"), "1");
    r = record_of(getpid(), SYS_write, fd); /* it does not wait for data */
    trg_add_attrs(&r);
    assert_null(trg_attribute(&r, "peer"));
    end(pid);
    close(fd);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_took_a_files_lock_is_told),
        cmocka_unit_test(who_traces_it_is_told),
        cmocka_unit_test(who_is_at_the_other_end_is_told),
        cmocka_unit_test(a_file_is_told_of_its_own_call_only),
    };

    return cmocka_run_group_tests_name("attrs", tests, NULL, NULL);
}
