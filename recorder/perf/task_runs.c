/* What /proc says of a thread. */
#include "recorder/perf/task_runs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bool rec_task_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool rec_task_runs(pid_t pid, pid_t tid, struct rec_task_runs *runs)
{
    char text[96];

    return rec_task_file(pid, tid, "schedstat", text, sizeof(text)) &&
           sscanf(text, "%" SCNu64 " %*u %" SCNu64, &runs->ns, &runs->times) == 2;
}
