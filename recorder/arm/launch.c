/* The command of `-- COMMAND`. */
#include "recorder/arm/launch.h"
#include "recorder/arm/rlimits.h"
#include "recorder/arm/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Whether execvp would find a program. It is asked before anything is opened: the answer comes at once. */
static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    char full[4096];

    if (strchr(name, '/'))
        return is_program(name);
    for (path = path ? path : "/bin:/usr/bin"; *path; path += path[0] == ':') {
        size_t len = strcspn(path, ":");

        snprintf(full, sizeof(full), "%.*s/%s", (int)len, len ? path : ".", name);
        path += len;
        if (is_program(full))
            return true;
    }
    return false;
}

static _Noreturn void run_child(char **argv, int go, int result)
{
    char byte;
    ssize_t n;

    rec_signals_restore();
    rec_limits_restore();
    do
        n = read(go, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1) {
        execvp(argv[0], argv);
        n = write(result, &errno, sizeof(errno));
    }
    _exit(127);
}

int rec_launch_open(struct rec_launch *launch, char **argv, struct st_error *err)
{
    int go[2], result[2];

    *launch = (struct rec_launch){.go = -1, .result = -1};
    if (!is_in_path(argv[0]))
        return st_fail(err, ST_EFAIL, "cannot run '%s': %s", argv[0],
                       strchr(argv[0], '/') ? "no such program, or it may not be executed"
                                            : "no such program in PATH");
    if (pipe2(go, O_CLOEXEC))
        return st_fail_errno(err, ST_EFAIL, "cannot make a pipe");
    if (pipe2(result, O_CLOEXEC)) {
        st_fail_errno(err, ST_EFAIL, "cannot make a pipe");
        close(go[0]);
        close(go[1]);
        return ST_EFAIL;
    }
    launch->pid = fork();
    if (launch->pid == 0) {
        close(go[1]);
        close(result[0]);
        run_child(argv, go[0], result[1]);
    }
    close(go[0]);
    close(result[1]);
    launch->go = go[1];
    launch->result = result[0];
    if (launch->pid > 0)
        return 0;
    launch->pid = 0;
    st_fail_errno(err, ST_EFAIL, "cannot fork for '%s'", argv[0]);
    rec_launch_close(launch);
    return ST_EFAIL;
}

int rec_launch_go(struct rec_launch *launch, struct st_error *err)
{
    ssize_t n = write(launch->go, "g", 1);

    close(launch->go);
    launch->go = -1;
    return n == 1 ? 0 : st_fail_errno(err, ST_EFAIL, "cannot start the command");
}

int rec_launch_result(struct rec_launch *launch, const char *command, struct st_error *err)
{
    int why = 0;
    ssize_t n = read(launch->result, &why, sizeof(why));

    close(launch->result);
    launch->result = -1;
    if (n != (ssize_t)sizeof(why))
        return 0;
    errno = why;
    return st_fail_errno(err, ST_EFAIL, "cannot run '%s'", command);
}

void rec_launch_close(struct rec_launch *launch)
{
    if (!launch->pid)
        return;
    if (launch->go >= 0) {
        close(launch->go);
        while (waitpid(launch->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (launch->result >= 0)
        close(launch->result);
    *launch = (struct rec_launch){.go = -1, .result = -1};
}
