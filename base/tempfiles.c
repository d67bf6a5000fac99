/* A temporary file is locked (flock) by whoever writes it: one that can be locked is nobody's. */
#include "base/tempfiles.h"

#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 16, RANDOM = 6 };

/* The handler reads it: `folder` is set last, and cleared first. */
static struct {
    volatile sig_atomic_t folder; /* a descriptor, plus 1; 0: free */

    pid_t owner; /* children have their parent's list */

    char name[NAME_MAX + 1];
} files[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_end(int sig)
{
    int saved = errno;

    for (int i = 0; i < MOST; i++)
        if (files[i].folder && files[i].owner == getpid())
            unlinkat((int)files[i].folder - 1, files[i].name, 0);
    errno = saved;
    raise(sig); /* SA_RESETHAND: ends the process, once the handler returns */
}

void st_tempfile_catch(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    const struct sigaction ours = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &ours, NULL);
}

/* A file system without locks has no sweeping either. */
int st_tempfile_lock(int fd)
{
    struct stat st;

    return (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || (!fstat(fd, &st) && !st.st_nlink) ? -1
                                                                                                       : 0;
}

int st_tempfile_begin(int folder, const char *name, int fd)
{
    if (st_tempfile_lock(fd))
        return -1;
    pthread_mutex_lock(&lock);
    st_tempfile_catch();
    for (int i = 0; i < MOST; i++) {
        if (files[i].folder && files[i].owner == getpid())
            continue;
        files[i].folder = 0;
        strncpy(files[i].name, name, NAME_MAX);
        files[i].owner = getpid();
        files[i].folder = folder + 1;
        break;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

void st_tempfile_done(int folder)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++)
        if (files[i].folder == folder + 1 && files[i].owner == getpid())
            files[i].folder = 0;
    pthread_mutex_unlock(&lock);
}

/* ".PREFIX….xxxxxx" */
static bool is_temp(const char *name, const char *prefix)
{
    size_t n = strlen(name), len = strlen(prefix);

    return name[0] == '.' && n > len + RANDOM + 2 && !strncmp(name + 1, prefix, len) &&
           name[n - RANDOM - 1] == '.' &&
           strspn(name + n - RANDOM, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
               RANDOM;
}

/* Whether it stays, as somebody writes it. */
static bool sweep_file(int folder, const char *name)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool written;

    if (fd < 0)
        return false;
    written = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!written && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
        st_folder_has(folder, name, fd))
        unlinkat(folder, name, 0);
    close(fd);
    return written;
}

/* ---- folders ---- */

/* "PREFIXn" and this behind it, where n is a number. */
static bool is_numbered(const char *name, const char *prefix, const char *suffix)
{
    size_t len = strlen(prefix), digits;

    if (strncmp(name, prefix, len) != 0)
        return false;
    digits = strspn(name + len, "0123456789");
    return digits && !strncmp(name + len + digits, suffix, strlen(suffix));
}

/* The folder, when it is ours and nobody writes it; -1. */
static int open_left(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -1;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB) &&
        st_folder_has(folder, name, fd))
        return fd;
    close(fd);
    return -1;
}

/* What the recorder puts into one: files, and a folder of files. */
static void empty(int fd)
{
    static const char inner[] = "kcore_dir";
    int below = openat(fd, inner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (below >= 0) {
        st_folder_empty(below);
        close(below);
        unlinkat(fd, inner, AT_REMOVEDIR);
    }
    st_folder_empty(fd);
}

static void remove_folder(int folder, const char *name, int fd)
{
    empty(fd);
    if (st_folder_has(folder, name, fd))
        unlinkat(folder, name, AT_REMOVEDIR);
}

static void sweep_snapshot(int folder, const char *name)
{
    int fd = open_left(folder, name);

    if (fd < 0)
        return;
    remove_folder(folder, name, fd);
    close(fd);
}

/* Whoever wrote it may have been killed after the snapshot that needs it got its name. */
static void sweep_code(int folder, const char *name)
{
    char data[NAME_MAX + 1];
    struct stat st;
    int fd = open_left(folder, name);

    if (fd < 0)
        return;
    snprintf(data, sizeof(data), "%.*s.data", (int)(strrchr(name, '.') - name), name);
    if (fstatat(folder, data, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
        remove_folder(folder, name, fd);
    else
        st_folder_finish(fd);
    close(fd);
}

/* Whether it stays, as somebody writes it. */
static bool sweep_one(int folder, const char *name, const char *prefix)
{
    const char *end = strrchr(name, '.');
    bool temp = is_temp(name, prefix);
    struct stat st;

    if (!temp && !is_numbered(name, prefix, ".code"))
        return false;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid())
        return false;
    if (S_ISREG(st.st_mode) && temp)
        return sweep_file(folder, name);
    if (S_ISDIR(st.st_mode) && temp && is_numbered(name + 1, prefix, ".data."))
        sweep_snapshot(folder, name);
    else if (S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX && !temp && !strcmp(end, ".code"))
        sweep_code(folder, name);
    return false;
}

size_t st_tempfile_sweep(int folder, const char *prefix)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;
    size_t written = 0;

    while (d && (e = readdir(d)))
        written += sweep_one(folder, e->d_name, prefix);
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
    return written;
}
