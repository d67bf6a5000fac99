/* Finds a snapshot again: O_PATH opens nothing that could start or wait. */
#include "recorder/snapshot/written.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static int look(int folder, const char *name)
{
    return openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_folder(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISDIR(st.st_mode);
}

static bool is_it(const struct rec_written *file, int fd)
{
    struct stat st;

    return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_dev == file->dev &&
           st.st_ino == file->ino;
}

int rec_written_find(const struct rec_written *file, int folder, const char *name, enum rec_written_part part)
{
    int all = look(folder, name);
    int data = all >= 0 && is_folder(all) ? look(all, "data") : all;
    int found = !is_it(file, data) ? -1 : part == REC_WRITTEN_ALL ? all : data;

    if (data >= 0 && data != found && data != all)
        close(data);
    if (all >= 0 && all != found)
        close(all);
    return found;
}
