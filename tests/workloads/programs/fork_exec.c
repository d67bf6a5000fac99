/* Forks a child that works and execs exec_target, and one that works and ends; waits for both. */
#include "tree.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char target[PATH_MAX];

OWN void child_leaf(void)
{
    WORK();
}

OWN void child_before_exec(void)
{
    child_leaf();
    child_leaf();
}

OWN void child_before_exit(void)
{
    child_leaf();
}

/* The child never comes back from here. */
OWN pid_t start_exec_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        child_before_exec();
        execl(target, "exec_target", (char *)NULL);
        _exit(127);
    }
    return child;
}

OWN pid_t start_plain_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_NAME, "plain_child");
        child_before_exit();
        _exit(8);
    }
    return child;
}

OWN int wait_for_child(pid_t child)
{
    int status;

    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    (void)argc;
    snprintf(target, sizeof(target), "%s/exec_target", dirname(argv[0]));
    int first = wait_for_child(start_exec_child());

    return first == 7 && wait_for_child(start_plain_child()) == 8 ? 0 : 1;
}
