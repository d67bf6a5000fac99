/* Everything by descriptor. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANDOM = 6 /* characters */, TRIES = 100 };

const char *st_folder_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool st_folder_holds(int folder, const char *name)
{
    struct stat st;

    return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW);
}

int st_folder_of(const char *path, const char **name, struct st_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    int len = slash ? (int)(slash - path) + 1 : 0;
    int fd;

    if (!path[len])
        return st_fail(err, ST_EUSAGE, "cannot write '%s': it names no file", path);
    if (len >= PATH_MAX || strlen(path + len) > NAME_MAX)
        return st_fail(err, ST_EUSAGE, "cannot write '%.200s...': the name is too long", path);
    snprintf(folder, sizeof(folder), "%.*s", len ? len : 1, len ? path : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot create a file for '%s'", path);
    *name = path + len;
    return fd;
}

int st_folder_create(int folder, const char *name)
{
    return openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int temp_name(const char *name, char temp[NAME_MAX + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    unsigned char random[RANDOM];
    char end[RANDOM + 1] = "";

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -1;
    for (int i = 0; i < RANDOM; i++)
        end[i] = letters[random[i] % (sizeof(letters) - 1)];
    snprintf(temp, NAME_MAX + 1, ".%.*s.%s", NAME_MAX - RANDOM - 2, name, end);
    return 0;
}

/* Creates by names of chance until one is free. */
static int by_chance(int folder, const char *name, char temp[NAME_MAX + 1], int (*make)(int, const char *))
{
    int fd = -1;

    for (int i = 0; i < TRIES; i++) {
        if (temp_name(name, temp))
            break;
        fd = make(folder, temp);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    if (fd < 0)
        temp[0] = '\0';
    return fd;
}

int st_folder_create_temp(int folder, const char *name, char temp[NAME_MAX + 1])
{
    return by_chance(folder, name, temp, st_folder_create);
}

/* File systems that know no O_TMPFILE get a name for a moment. */
int st_folder_create_nameless(int folder)
{
    char temp[NAME_MAX + 1];
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
        return fd;
    fd = st_folder_create_temp(folder, "stalltrap", temp);
    if (fd >= 0)
        unlinkat(folder, temp, 0);
    return fd;
}

static int make(int parent, const char *name, mode_t mode)
{
    struct stat st;
    int fd;

    if (mkdirat(parent, name, mode))
        return -1;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Whoever owns the parent may have put another folder there since. */
    if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid()))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

int st_folder_make(int parent, const char *name)
{
    return make(parent, name, 0700);
}

int st_folder_make_unfinished(int parent, const char *name)
{
    return make(parent, name, S_ISVTX | 0700);
}

void st_folder_finish(int folder)
{
    struct stat st;

    if (!fstat(folder, &st) && st.st_mode & S_ISVTX && fchmod(folder, 0700))
        return; /* it is looked at again by the next st_tempfile_sweep */
}

int st_folder_make_temp(int parent, const char *name, char temp[NAME_MAX + 1])
{
    return by_chance(parent, name, temp, st_folder_make);
}

void st_folder_empty(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;

    while (d && (e = readdir(d)))
        unlinkat(folder, e->d_name, 0);
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
}

int st_folder_sync(int folder)
{
    return fsync(folder) && errno != EINVAL ? -1 : 0;
}

bool st_folder_has(int folder, const char *name, int fd)
{
    struct stat there, own;

    return !fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &own) &&
           there.st_dev == own.st_dev && there.st_ino == own.st_ino;
}

/* A number of the environment; -1: none, or not one that can be. */
static long long number_of(const char *variable)
{
    const char *text = getenv(variable);
    char *end;
    long long n;

    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    n = strtoll(text, &end, 10);
    return *end || errno || n >= UINT32_MAX ? -1 : n;
}

void st_folder_give(int folder, int fd)
{
    long long uid = number_of("SUDO_UID"), gid = number_of("SUDO_GID");
    struct stat st;

    if (geteuid() || uid <= 0 || gid < 0 || fstat(folder, &st))
        return;
    if (st.st_uid != (uid_t)uid && (st.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
        return;
    if (fchown(fd, (uid_t)uid, (gid_t)gid))
        return; /* it stays root's */
}
