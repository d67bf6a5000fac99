/* Signals as a descriptor. */
#include "recorder/arm/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t mask_before;
static struct sigaction pipe_before;
static int opened;

int rec_signals_open(struct st_error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t ours;
    int fd;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGUSR2);
    if (sigprocmask(SIG_BLOCK, &ours, &mask_before) || sigaction(SIGPIPE, &ignore, &pipe_before))
        return st_fail_errno(err, ST_EFAIL, "cannot take over the signals");
    opened = 1;
    fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot read signals (signalfd)") : fd;
}

int rec_signals_read(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void rec_signals_forget(int signal)
{
    const struct timespec no_wait = {0};
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, signal);
    while (sigtimedwait(&only, NULL, &no_wait) == signal)
        ;
}

void rec_signals_restore(void)
{
    if (!opened)
        return;
    sigaction(SIGPIPE, &pipe_before, NULL);
    signal(SIGXFSZ, SIG_DFL); /* main() ignores it */
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}
