/* Actions: signals are sent by ourselves, commands run in a shell. */
#include "recorder/arm/action.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- parsing ---- */

static int signal_number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*text && !*end)
        return n > 0 && n < NSIG ? (int)n : 0;
    if (!strncasecmp(text, "SIG", 3))
        text += 3;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && !strcasecmp(sigabbrev_np(i), text))
            return i;
    return 0;
}

static int parse_signal(const char *option, const char *text, struct rec_action *a, struct st_error *err)
{
    const char *colon = strchr(text, ':');
    char name[32];
    long pid;

    if (!colon || colon == text || !colon[1]) {
        st_fail(err, ST_EUSAGE, "%s: a signal is written as signal:NUM:PID, not '%s'", option, a->text);
        return ST_EUSAGE;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
    a->signal = signal_number(name);
    if (!a->signal)
        return st_fail(err, ST_EUSAGE, "%s: '%s' is no signal (a number or a name, as in signal:USR1:4312)",
                       option, name);
    if (st_parse_number("the process id", colon + 1, 1, INT_MAX, &pid, err))
        return st_prefix(err, "%s '%s': ", option, a->text);
    a->pid = (pid_t)pid;
    return 0;
}

int rec_action_parse(const char *option, const char *text, struct rec_action *a, struct st_error *err)
{
    *a = (struct rec_action){.kind = REC_ACTION_SHELL, .text = text, .command = text};
    if (!strcmp(text, "snapshot")) {
        a->kind = REC_ACTION_SNAPSHOT;
        return 0;
    }
    if (!strncmp(text, "signal:", 7)) {
        a->kind = REC_ACTION_SIGNAL;
        return parse_signal(option, text + 7, a, err);
    }
    if (!strncmp(text, "shell:", 6))
        a->command = text + 6;
    if (!a->command[strspn(a->command, " \t\n")])
        return st_fail(err, ST_EUSAGE, "%s: the command is empty", option);
    return 0;
}

/* ---- running ---- */

static int next(struct rec_action_run *run, struct st_error *err);

static int failed(struct rec_action_run *run, const char *why, struct st_error *err)
{
    st_log_warn("%s '%s' failed: %s%s", run->option, run->list[run->next - 1].text, why,
                run->next < run->n ? "; the actions behind it do not run" : "");
    return run->done(run->ctx, false, err);
}

static int on_end(void *ctx, int status, struct st_error *err)
{
    struct rec_action_run *run = ctx;
    char text[80];

    if (status == 0)
        return next(run, err);
    if (WIFSIGNALED(status))
        snprintf(text, sizeof(text), "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
    return failed(run, text, err);
}

/* An action may go to another folder: it gets the whole path. */
static void set_path(const char *variable, const char *path)
{
    char *full = path ? realpath(path, NULL) : NULL;

    if (path)
        setenv(variable, full ? full : path, 1);
    else
        unsetenv(variable);
    free(full);
}

static void run_shell(void *arg)
{
    const struct rec_action_run *run = arg;

    set_path("STALLTRAP_DATA", run->env.data);
    set_path("STALLTRAP_DB", run->env.db);
    if (run->env.reason)
        setenv("STALLTRAP_REASON", run->env.reason, 1);
    execl("/bin/sh", "sh", "-c", run->list[run->next - 1].command, (char *)NULL);
    fprintf(stderr, "stalltrap arm: cannot run /bin/sh: %s\n", strerror(errno));
}

static int next(struct rec_action_run *run, struct st_error *err)
{
    while (run->next < run->n) {
        const struct rec_action *a = &run->list[run->next++];

        if (a->kind == REC_ACTION_SIGNAL && kill(a->pid, a->signal))
            return failed(run, strerror(errno), err);
        if (a->kind == REC_ACTION_SHELL)
            return rec_child_start(&run->child, run->loop, run_shell, run, false, on_end, run, err)
                       ? failed(run, err->text, err)
                       : 0;
    }
    return run->done(run->ctx, true, err);
}

int rec_action_start(struct rec_action_run *run, struct st_error *err)
{
    run->next = 0;
    return next(run, err);
}

void rec_action_stop(struct rec_action_run *run)
{
    rec_child_stop(&run->child);
}
