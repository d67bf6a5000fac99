/* The system calls that decoding needs. Whatever else is asked for ends the worker; to look for files by path
 * is answered as if there were none, since libraries do so and can do without. */
#include "decoder/cmd/worker.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(preadv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(pwrite64),
    SCMP_SYS(pwritev),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(fstatfs),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(fadvise64),
    SCMP_SYS(getdents64),
    SCMP_SYS(dup),
    SCMP_SYS(pipe2),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(memfd_create),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(wait4),
    SCMP_SYS(waitid),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(alarm),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getppid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(getrandom),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(membarrier),
};

/* Ways to a file by its path. */
static const int no_such_file[] = {
    SCMP_SYS(open),       SCMP_SYS(openat), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(stat),   SCMP_SYS(lstat),  SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(statx),  SCMP_SYS(getcwd),
};

static const int commands[] = {F_GETFD,         F_SETFD, F_GETFL,  F_DUPFD,
                               F_DUPFD_CLOEXEC, F_SETLK, F_SETLKW, F_GETLK};

/* Allows a call with this argument: that is `a` (SCMP_CMP_EQ), is not (SCMP_CMP_NE), or has of the bits `a`
 * just those of `b`. */
static bool allow_if(scmp_filter_ctx filter, int call, unsigned argument, enum scmp_compare how,
                     scmp_datum_t a, scmp_datum_t b)
{
    struct scmp_arg_cmp compare = {argument, how, a, b};

    return !seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compare);
}

static bool allow_equal(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t value)
{
    return allow_if(filter, call, argument, SCMP_CMP_EQ, value, 0);
}

static bool allow_without(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t bits)
{
    return allow_if(filter, call, argument, SCMP_CMP_MASKED_EQ, bits, 0);
}

static bool allow_lists(scmp_filter_ctx filter)
{
    bool good = true;

    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && good; i++)
        good = !seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; i < sizeof(no_such_file) / sizeof(no_such_file[0]) && good; i++)
        good = !seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), no_such_file[i], 0);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && good; i++)
        good = allow_equal(filter, SCMP_SYS(fcntl), 1, (scmp_datum_t)commands[i]);
    return good;
}

/* New threads and processes, but no new name spaces. clone3() has its flags where a filter cannot see them:
 * the C library goes back to clone(). */
static bool allow_children(scmp_filter_ctx filter)
{
    const scmp_datum_t spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_PTRACE | CLONE_PARENT;

    return allow_without(filter, SCMP_SYS(clone), 0, spaces) &&
           !seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* Memory that is never code. */
static bool allow_memory(scmp_filter_ctx filter)
{
    return allow_without(filter, SCMP_SYS(mmap), 2, PROT_EXEC) &&
           allow_without(filter, SCMP_SYS(mprotect), 2, PROT_EXEC);
}

/* Of sockets only pairs that lead nowhere else. */
static bool allow_pairs(scmp_filter_ctx filter)
{
    static const scmp_datum_t types[] = {SOCK_STREAM | SOCK_CLOEXEC, SOCK_SEQPACKET | SOCK_CLOEXEC};
    bool good = true;

    for (int i = 0; i < 2 && good; i++) {
        struct scmp_arg_cmp compare[] = {{0, SCMP_CMP_EQ, AF_UNIX, 0}, {1, SCMP_CMP_EQ, types[i], 0}};

        good = !seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 2, compare);
    }
    return good;
}

/* fstat() of newer C libraries; by path there are no files. */
static bool allow_fstat(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp by_path = {3, SCMP_CMP_NE, AT_EMPTY_PATH, 0};

    return allow_equal(filter, SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH) &&
           !seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(newfstatat), 1, &by_path);
}

/* Calls that do other things too: of a terminal only its size, of signals only those to itself, of its own
 * limits and death what can only make them narrower. */
static bool allow_by_argument(scmp_filter_ctx filter)
{
    return allow_equal(filter, SCMP_SYS(ioctl), 1, TCGETS) &&
           allow_equal(filter, SCMP_SYS(ioctl), 1, TIOCGWINSZ) &&
           allow_if(filter, SCMP_SYS(rt_sigaction), 0, SCMP_CMP_NE, SIGSYS, 0) &&
           allow_equal(filter, SCMP_SYS(tgkill), 0, (scmp_datum_t)getpid()) &&
           allow_equal(filter, SCMP_SYS(prlimit64), 0, 0) &&
           allow_equal(filter, SCMP_SYS(prctl), 0, PR_SET_PDEATHSIG) &&
           allow_equal(filter, SCMP_SYS(prctl), 0, PR_SET_NAME);
}

/* The kernel did not run the call. It is named to the other process, and this one ends. */
static void denied(int signal, siginfo_t *info, void *context)
{
    struct dec_request request;

    (void)signal;
    (void)context;
    request.what = DEC_DENIED;
    request.number = info->si_syscall;
    request.path[0] = '\0';
    send(DEC_WORKER_FD, &request, offsetof(struct dec_request, path) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    _exit(128 + SIGSYS);
}

static bool load(scmp_filter_ctx filter)
{
    return allow_lists(filter) && allow_children(filter) && allow_memory(filter) && allow_pairs(filter) &&
           allow_fstat(filter) && allow_by_argument(filter) && !seccomp_load(filter);
}

/* libseccomp does not bear allocations that fail: some it passes over, and the filter lacks a rule then. What
 * it takes is a third of this. It is there when the last of these is held until the filter is made. */
static void *reserve_memory(void)
{
    enum { BLOCKS = 16, BLOCK = 64 << 10 };
    void *at[BLOCKS];
    int n = 0;

    while (n < BLOCKS && (at[n] = malloc(BLOCK)))
        n++;
    for (int i = 0; i < n - 1 + (n < BLOCKS); i++)
        free(at[i]);
    return n < BLOCKS ? NULL : at[n - 1];
}

int dec_filter_calls(struct st_error *err)
{
    void *reserved = reserve_memory();
    struct sigaction action = {.sa_sigaction = denied, .sa_flags = SA_SIGINFO};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    bool good = reserved && filter && !sigaction(SIGSYS, &action, NULL) && load(filter);

    seccomp_release(filter);
    free(reserved);
    if (!reserved)
        return st_nomem(err, "the filter of system calls");
    return good ? 0
                : st_fail_errno(err, ST_ECANNOT,
                                "cannot limit the system calls of the process that decodes (seccomp)");
}
