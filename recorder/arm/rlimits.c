/* The limits of this process. */
#include "recorder/arm/rlimits.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit before;

static bool raised;

void rec_limits_raise(void)
{
    struct rlimit l;

    if (raised || getrlimit(RLIMIT_NOFILE, &before))
        return;
    l = before;
    l.rlim_cur = l.rlim_max;
    raised = !setrlimit(RLIMIT_NOFILE, &l);
}

void rec_limits_restore(void)
{
    if (raised)
        setrlimit(RLIMIT_NOFILE, &before);
}
