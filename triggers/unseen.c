/* What the target calls instead of what a trigger waits for. */
#include "triggers/unseen.h"
#include "base/syscalls.h"
#include "base/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAMED 3
#define MOST  16 /* in a family */

/* Calls that do the same work: who names one of them may mean another. */
static const char *const families[][MOST] = {
    {"fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"},
    {"read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg"},
    {"write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "sendmmsg", "sendfile"},
    {"sendfile", "splice", "tee", "vmsplice", "copy_file_range"},
    {"epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_wait_old", "poll", "ppoll", "select", "pselect6"},
    {"open", "openat", "openat2", "creat"},
    {"stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"},
    {"nanosleep", "clock_nanosleep"},
    {"accept", "accept4"},
    {"futex", "futex_waitv", "futex_wait"},
    {"flock", "fcntl"},
    {"fork", "vfork", "clone", "clone3"},
    {"execve", "execveat"},
    {"wait4", "waitid"},
    {"rename", "renameat", "renameat2"},
    {"unlink", "unlinkat", "rmdir"},
    {"mkdir", "mkdirat"},
    {"link", "linkat", "symlink", "symlinkat"},
    {"getdents", "getdents64"},
    {"truncate", "ftruncate", "fallocate"},
    {"mmap", "munmap", "mremap", "mprotect", "madvise", "brk"},
    {"io_uring_enter", "io_submit", "io_getevents", "io_pgetevents"},
    {"semop", "semtimedop"},
    {"rt_sigtimedwait", "rt_sigsuspend", "pause"},
    {"dup", "dup2", "dup3"},
    {"pipe", "pipe2"},
    {"exit", "exit_group"},
};

static bool is_of(const char *const family[MOST], const char *name)
{
    for (size_t i = 0; i < MOST && family[i]; i++)
        if (!strcmp(family[i], name))
            return true;
    return false;
}

/* Marks in `kin` the numbers of all calls that share a family with `name`. */
static void find_kin(const char *name, bool kin[OFFCPU_SYSCALLS])
{
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
        for (size_t i = 0; is_of(families[f], name) && i < MOST && families[f][i]; i++) {
            int number = st_syscall_number(families[f][i], false);

            if (number >= 0 && number < OFFCPU_SYSCALLS)
                kin[number] = true;
        }
}

/* The most frequent call that is not in `told`, and is in `among` unless that is NULL; -1: there is none. */
static int most_frequent(const struct call_count *calls, const bool *among, const bool *told)
{
    int most = -1;

    for (int i = 0; i < OFFCPU_SYSCALLS; i++)
        if (calls[i].count && !told[i] && (!among || among[i]) &&
            (most < 0 || calls[i].count > calls[most].count))
            most = i;
    return most;
}

static size_t put_call(int number, const struct call_count *c, bool first, char *text, size_t size)
{
    char name[64], count[32], worst[24];
    int n = snprintf(text, size, "; %s%s, %s time%s", st_syscall_name(number, false, name, sizeof(name)),
                     first ? " was" : "", st_format_count(c->count, count, sizeof(count)),
                     c->count > 1 ? "s" : "");

    if (c->worst && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, ", worst %s",
                      st_format_duration((int64_t)c->worst, worst, sizeof(worst)));
    return n > 0 && (size_t)n < size ? (size_t)n : size - 1;
}

void trg_unseen_call(const char *name, const struct call_count calls[OFFCPU_SYSCALLS], char *text,
                     size_t size)
{
    bool kin[OFFCPU_SYSCALLS] = {false}, told[OFFCPU_SYSCALLS] = {false};
    size_t at = (size_t)snprintf(text, size, "not called since armed");
    int first, next;

    find_kin(name, kin);
    first = most_frequent(calls, kin, told);
    next = first >= 0 ? first : most_frequent(calls, NULL, told);
    if (next < 0)
        snprintf(text + at, size - at, "; nor was any other system call");
    for (int i = 0; i < NAMED && next >= 0 && at < size; i++) {
        at += put_call(next, &calls[next], !i, text + at, size - at);
        told[next] = true;
        next = most_frequent(calls, first >= 0 ? kin : NULL, told);
    }
}
