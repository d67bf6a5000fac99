/* Threads that are off their CPU as a snapshot is made. */
#include "recorder/sideband/away.h"
#include "base/clock.h"
#include "base/target.h"
#include "recorder/perf/task_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a task's flags, field 9 of /proc/PID/stat (include/linux/sched.h): what its registers hold is not the
 * system call that it waits in. */
enum { PF_EXITING = 0x4, PF_SIGNALED = 0x400, PF_KTHREAD = 0x200000 };

/* The name in front may hold anything, ") " too. */
static bool read_state(pid_t pid, pid_t tid, char *state, unsigned *flags)
{
    char text[512];
    const char *end;

    if (!rec_task_file(pid, tid, "stat", text, sizeof(text)))
        return false;
    end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

/* Whether the state is one of a thread that waits; a stop is in no system call. */
static bool is_wait(char state)
{
    return strchr("SDI", state) != NULL;
}

static bool is_away(char state)
{
    return is_wait(state) || strchr("TtP", state) != NULL;
}

/* Its number, or -1. False: the thread is not away after all. The file holds "running", or the number (-1: in
 * none) and what belongs to it (fs/proc/base.c, proc_pid_syscall). */
static bool read_syscall(pid_t pid, pid_t tid, int *number)
{
    char text[192];

    if (!rec_task_file(pid, tid, "syscall", text, sizeof(text)))
        return true; /* this user may not read it */
    if (*text == 'r')
        return false;
    if (sscanf(text, "%d", number) != 1)
        *number = -1;
    return true;
}

static bool read_thread(pid_t pid, pid_t tid, struct rec_away *away)
{
    struct rec_task_runs before, after;
    unsigned flags;

    *away = (struct rec_away){.pid = pid, .tid = tid, .syscall = -1};
    if (!rec_task_runs(pid, tid, &before) || !read_state(pid, tid, &away->state, &flags) ||
        !is_away(away->state))
        return false;
    away->time = st_mono_ns();
    if (is_wait(away->state) && !(flags & (PF_EXITING | PF_SIGNALED | PF_KTHREAD)) &&
        !read_syscall(pid, tid, &away->syscall))
        return false;
    return rec_task_runs(pid, tid, &after) && after.ns == before.ns && after.times == before.times;
}

static int take(const struct rec_away_wanted *w, pid_t pid, pid_t tid, rec_away_list *list,
                struct st_error *err)
{
    struct rec_away away;

    if (!read_thread(pid, tid, &away) || (w->stepped && away.state == 't'))
        return 0;
    return st_vec_push(list, away) ? st_nomem(err, "the threads that wait") : 0;
}

static int take_process(const struct rec_away_wanted *w, pid_t pid, uint64_t until, rec_away_list *list,
                        struct st_error *err)
{
    pid_t *tids = NULL;
    struct st_error ended = {0};
    int n = st_target_threads(pid, &tids, &ended), left = 0, rc = n == ST_ENOMEM ? n : 0;

    for (int i = 0; !rc && i < n; i++)
        if (tids[i] == w->tid)
            continue;
        else if (st_mono_ns() >= until)
            left++;
        else
            rc = take(w, pid, tids[i], list, err);
    free(tids);
    return rc ? rc : left;
}

int rec_away_read(const struct rec_away_wanted *w, rec_away_list *list, struct st_error *err)
{
    uint64_t until = st_mono_ns() + w->most_ns;
    int left = 0, rc = w->tid ? take(w, w->pid, w->tid, list, err) : 0;

    if (!rc && w->pid)
        left = rc = take_process(w, w->pid, until, list, err);
    for (size_t i = 0; rc >= 0 && i < w->npids; i++)
        if (w->pids[i] != w->pid && (rc = take_process(w, w->pids[i], until, list, err)) > 0)
            left += rc;
    return rc < 0 ? rc : left;
}
