/* The child that decodes. */
#include "recorder/arm/decode_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whoever is recorded should not notice. That it cannot be had is no failure. Of the recorder's own nice
 * value, so that one who puts the recorder before all else has its databases too. */
static void step_back(void)
{
    if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 19))
        return;
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

void rec_decode_hurry(pid_t pid)
{
    if (setpriority(PRIO_PGRP, (id_t)pid, getpriority(PRIO_PROCESS, 0)))
        return;
    syscall(SYS_ioprio_set, IOPRIO_WHO_PGRP, pid, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0));
}

/* "--OPTION=FD" for a descriptor that the program which is started then has. */
static char *hand_over(const char *option, int fd)
{
    char *word;

    return fcntl(fd, F_SETFD, 0) || asprintf(&word, "--%s=%d", option, fd) < 0 ? NULL : word;
}

void rec_decode_run(void *arg)
{
    const struct rec_decode *d = arg;
    char *argv[] = {"stalltrap",
                    "decode",
                    strdup(d->data),
                    "-o",
                    strdup(d->db),
                    hand_over("given-input", d->in),
                    hand_over("given-folder", d->folder),
                    d->again ? "--force" : NULL,
                    NULL};

    /* Without them it would go by the paths. */
    if (!argv[2] || !argv[4] || !argv[5] || !argv[6]) {
        fprintf(stderr, "stalltrap arm: cannot start `stalltrap decode`: out of memory\n");
        return;
    }
    /* Ctrl-C is for the recorder, which then decides about this child. */
    setpgid(0, 0);
    if (d->beside)
        step_back();
    execv("/proc/self/exe", argv);
    fprintf(stderr, "stalltrap arm: cannot start `stalltrap decode`: %s\n", strerror(errno));
}
