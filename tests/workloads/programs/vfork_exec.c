/* vfork and exec: the child runs on the parent's stack and memory until it has become exec_target. */
#include "tree.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char target[PATH_MAX];

OWN void child_before_exec(void)
{
    WORK();
}

OWN void parent_after_vfork(void)
{
    WORK();
}

OWN pid_t start_child(void)
{
    pid_t child = vfork();

    if (child == 0) {
        child_before_exec();
        execl(target, "exec_target", (char *)NULL);
        _exit(127);
    }
    parent_after_vfork();
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
    return wait_for_child(start_child()) == 7 ? 0 : 1;
}
