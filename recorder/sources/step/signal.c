/* What a process does with a signal, and which are pending: from /proc/TID/status. */
#include "recorder/sources/step/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct masks {
    uint64_t pending, shared, blocked, ignored, caught;
};

static uint64_t mask_of(const char *status, const char *key)
{
    const char *at = strstr(status, key);

    return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

static struct masks read_masks(pid_t tid)
{
    struct masks m = {0};
    char status[16384], path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/status", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return m;
    n = read(fd, status, sizeof(status) - 1);
    close(fd);
    status[n > 0 ? n : 0] = '\0';
    m.pending = mask_of(status, "\nSigPnd:");
    m.shared = mask_of(status, "\nShdPnd:");
    m.blocked = mask_of(status, "\nSigBlk:");
    m.ignored = mask_of(status, "\nSigIgn:");
    m.caught = mask_of(status, "\nSigCgt:");
    return m;
}

static uint64_t bit(int sig)
{
    return 1ull << (sig - 1);
}

enum step_action step_signal_action(pid_t tid, int sig)
{
    struct masks m = read_masks(tid);

    if (m.caught & bit(sig))
        return STEP_SIG_CAUGHT;
    if (m.ignored & bit(sig) || sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH)
        return STEP_SIG_IGNORED;
    return STEP_SIG_DEFAULT;
}

bool step_signal_due(pid_t tid)
{
    struct masks m = read_masks(tid);

    return (m.pending | m.shared) & ~m.blocked & m.caught;
}

bool step_signal_pending(pid_t tid, int sig)
{
    struct masks m = read_masks(tid);

    return m.pending & ~m.blocked & bit(sig);
}
