/* A temporary file is locked (flock) by whoever writes it: one that can be locked is nobody's. */
#include "base/tempfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
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
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct sigaction ours = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &ours, NULL);
}

int st_tempfile_begin(int folder, const char *name, int fd)
{
    struct stat st;

    /* A file system without locks has no sweeping either. */
    if ((flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || (!fstat(fd, &st) && !st.st_nlink))
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

static void sweep_one(int folder, const char *name)
{
    struct stat st, there;
    int fd;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return;
    fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
        !fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) && there.st_ino == st.st_ino &&
        there.st_dev == st.st_dev)
        unlinkat(folder, name, 0);
    close(fd);
}

void st_tempfile_sweep(int folder, const char *prefix)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (is_temp(e->d_name, prefix))
            sweep_one(folder, e->d_name);
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
}
