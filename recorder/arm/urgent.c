/* The loop's thread before all others. */
#include "recorder/arm/urgent.h"
#include "recorder/perf/privileges.h"

#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit before;

static volatile sig_atomic_t urgent;

static pid_t owner; /* who began, and has not ended; 0: nobody */

static void be_ordinary(void)
{
    struct sched_param p = {0};

    sched_setscheduler(0, SCHED_OTHER, &p);
    urgent = false;
}

/* The kernel sends it to a thread of SCHED_FIFO that has run for RLIMIT_RTTIME (setrlimit(2)), and to a
 * process whose RLIMIT_CPU is over. */
static void on_time_over(int sig)
{
    if (urgent && getpid() == owner) {
        be_ordinary();
        return;
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static bool limit_time(void)
{
    struct sigaction action = {.sa_handler = on_time_over, .sa_flags = SA_RESTART};
    struct rlimit limit;

    if (getrlimit(RLIMIT_RTTIME, &before))
        return false;
    limit = before;
    limit.rlim_cur = REC_URGENT_MS * 1000;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max)
        return false;
    return !sigaction(SIGXCPU, &action, NULL) && !setrlimit(RLIMIT_RTTIME, &limit);
}

void rec_urgent_restore(void)
{
    if (owner)
        setrlimit(RLIMIT_RTTIME, &before);
}

/* Not what is mapped later (MCL_FUTURE): the kernel would walk through the rings. Where locked memory has a
 * limit they need it. */
void rec_urgent_memory(void)
{
    if (rec_has_capability(CAP_IPC_LOCK))
        mlockall(MCL_CURRENT | MCL_ONFAULT);
}

void rec_urgent_begin(void)
{
    struct sched_param p = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

    if (owner || !limit_time())
        return;
    owner = getpid();
    urgent = true;
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p))
        rec_urgent_end();
}

void rec_urgent_end(void)
{
    if (owner != getpid())
        return;
    be_ordinary();
    rec_urgent_restore();
    signal(SIGXCPU, SIG_DFL);
    owner = 0;
}
