/* O_PATH, fstat, and only then open. */
#include "base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int (*ask)(const char *path, enum st_infile_kind kind);

static bool fits(mode_t mode, enum st_infile_kind kind)
{
    if (kind == ST_INFILE_FOLDER)
        return S_ISDIR(mode);
    return S_ISREG(mode) || (kind == ST_INFILE_INPUT && (S_ISDIR(mode) || S_ISFIFO(mode)));
}

/* What was looked at is what is opened: by its descriptor in /proc. */
int st_infile_reopen(int place, enum st_infile_kind kind)
{
    char path[32];
    struct stat st;

    if (fstat(place, &st))
        return -1;
    if (!fits(st.st_mode, kind)) {
        errno = ENODEV;
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static int open_place(int place, enum st_infile_kind kind)
{
    int fd, error;

    if (place < 0)
        return -1;
    fd = st_infile_reopen(place, kind);
    error = errno;
    close(place);
    errno = error;
    return fd;
}

int st_infile_open(const char *path, enum st_infile_kind kind)
{
    return ask ? ask(path, kind) : open_place(open(path, O_PATH | O_CLOEXEC), kind);
}

int st_infile_open_below(int folder, const char *path, enum st_infile_kind kind)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

    return open_place((int)syscall(SYS_openat2, folder, path, &how, sizeof(how)), kind);
}

int st_infile_stat(const char *path, struct stat *st)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    int rc = fd < 0 ? -1 : fstat(fd, st);

    if (fd >= 0)
        close(fd);
    return rc;
}

void st_infile_by(int (*open)(const char *path, enum st_infile_kind kind))
{
    ask = open;
}
