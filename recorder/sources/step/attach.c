/* Attaching to the target's threads. */
#include "recorder/sources/step/helper.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

enum {
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
              PTRACE_O_TRACEEXEC,
};

static long status_number(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            value = strtol(line + strlen(key), NULL, 10);
    fclose(f);
    return value;
}

/* Whether it has ended and only waits to be reaped. */
static bool is_zombie(pid_t tid)
{
    char path[64], state = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", tid);
    f = fopen(path, "re");
    if (!f)
        return true;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(f);
    return state == 'Z' || state == 'X';
}

static int refused(pid_t pid, struct st_error *err)
{
    int why = errno;
    char path[64], text[PATH_MAX];
    long tracer;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    tracer = status_number(pid, "TracerPid:");
    if (tracer > 0) {
        st_fail(err, ST_ECANNOT, "cannot trace process %d: process %ld traces it already", pid, tracer);
        return st_hint(err, "a process has one tracer at a time: end that debugger or strace first");
    }
    if (readlink(path, text, sizeof(text)) < 0 && errno == ENOENT)
        return st_fail(err, ST_ECANNOT, "cannot trace process %d: it is a thread of the kernel", pid);
    errno = why;
    if (why != EPERM)
        return st_fail_errno(err, ST_EFAIL, "cannot trace process %d", pid);
    st_fail(err, ST_ECANNOT, "no permission to trace process %d", pid);
    return st_hint(
        err,
        "run as root or with CAP_SYS_PTRACE; for your own processes kernel.yama.ptrace_scope may forbid it");
}

/* 1: seized now, 0: was traced already or is gone; negative: refused. */
static int seize(struct step_helper *h, pid_t pid, pid_t tid, struct st_error *err)
{
    struct step_thread *t;
    int rc;

    if (step_thread_find(h, tid))
        return 0;
    if (ptrace(PTRACE_SEIZE, tid, 0, (long)OPTIONS)) {
        /* A thread that was created a moment ago is ours already, by way of the one that created it. */
        int why = errno;

        if (why == ESRCH || status_number(tid, "TracerPid:") == getpid() || is_zombie(tid))
            return 0;
        errno = why;
        return refused(pid, err);
    }
    rc = step_thread_add(h, tid, &t, err);
    return rc == ST_EFAIL ? 0 : rc ? rc : 1;
}

/* Until a look at the list finds nobody new: threads create threads meanwhile. */
static int seize_process(struct step_helper *h, pid_t pid, struct st_error *err)
{
    int found, rc = 0;

    do {
        pid_t *tids;
        int n = st_target_threads(pid, &tids, err);

        if (n < 0)
            return n;
        found = 0;
        for (int i = 0; i < n && rc >= 0; i++) {
            rc = seize(h, pid, tids[i], err);
            found += rc > 0;
        }
        free(tids);
    } while (found && rc >= 0);
    return rc < 0 ? rc : 0;
}

int step_attach(struct step_helper *h, struct st_error *err)
{
    int rc = 0;

    if (h->command)
        rc = seize_process(h, h->command, err);
    for (size_t i = 0; !rc && i < h->target->npids; i++)
        rc = seize_process(h, h->target->pids[i], err);
    if (!rc && !h->threads && !st_target_waits(h->target))
        rc = st_fail(err, ST_EFAIL, "every process of the target has ended");
    return rc;
}

static void interrupt(struct step_thread *t)
{
    t->interrupted = true;
    ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
}

/* Those that are new are asked to stop; the program that they are in goes on meanwhile. */
int step_attach_joined(struct step_helper *h, pid_t pid, struct st_error *err)
{
    int rc = seize_process(h, pid, err);
    struct step_thread *t, *next;

    HASH_ITER(hh, h->threads, t, next)
    {
        if (h->started && t->proc->pid == pid && !t->slot && t->run == STEP_RUN_FREE && !t->interrupted)
            interrupt(t);
    }
    h->ended = h->ended && !h->threads;
    return rc;
}

void step_attach_start(struct step_helper *h)
{
    struct step_thread *t, *next;

    h->started = true;
    HASH_ITER(hh, h->threads, t, next)
    {
        if (t->proc->pid == h->command)
            continue;
        interrupt(t);
    }
}
