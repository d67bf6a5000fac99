/* Where control sockets are. */
#include "recorder/arm/control_folder.h"
#include "recorder/arm/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int own_folder(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        return snprintf(path, size, "/run/stalltrap");
    if (runtime && runtime[0] == '/')
        return snprintf(path, size, "%s/stalltrap", runtime);
    return snprintf(path, size, "/tmp/stalltrap-%u", (unsigned)geteuid());
}

int rec_control_own_folder(char *path, size_t size, struct st_error *err)
{
    struct stat st;
    int n = own_folder(path, size);

    if (n < 0 || (size_t)n >= size)
        return st_fail(err, ST_EFAIL, "the name of the folder for control sockets is too long");
    mkdir(path, 0700);
    /* Another user could have put something there first. */
    if (lstat(path, &st))
        return st_fail_errno(err, ST_EFAIL, "cannot make the folder '%s'", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return st_fail(err, ST_EFAIL, "'%s' is not a folder that only this user can write to", path);
    return 0;
}

/* Nobody listens. So it is, too, in the moment between its bind() and listen(): there the process is alive.
 */
static bool is_dead(const char *folder, const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", folder, name);
    pid_t pid = (pid_t)strtol(name, NULL, 10);
    bool refused;
    int fd;

    if (n < 0 || (size_t)n >= sizeof(a.sun_path) || pid <= 0 || !kill(pid, 0) || errno != ESRCH)
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    refused = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

void rec_control_sweep(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    struct stat st;

    while (d && (e = readdir(d))) {
        size_t digits = strspn(e->d_name, "0123456789");

        if (digits && !strcmp(e->d_name + digits, ".sock") &&
            !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
            st.st_uid == geteuid() && is_dead(folder, e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

/* Of what is PARENT/NAME<rest>, where NAME begins with `prefix`; it may be no folder. -1 with errno: too much
 * is open, or no memory. (glob()
 * of the C library frees twice when it has none.) */
static int each_in(const char *parent, const char *prefix, const char *rest, rec_folder_fn *fn, void *ctx)
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *d = opendir(parent);
    int rc = !d && (errno == ENOMEM || errno == EMFILE || errno == ENFILE) ? -1 : 0;

    while (d && !rc && (e = readdir(d))) {
        int n = snprintf(path, sizeof(path), "%s/%s%s", parent, e->d_name, rest);

        if (e->d_name[0] != '.' && !strncmp(e->d_name, prefix, strlen(prefix)) && n > 0 &&
            (size_t)n < sizeof(path))
            rc = fn(ctx, path);
    }
    if (d)
        closedir(d);
    return rc;
}

int rec_control_folders(rec_folder_fn *fn, void *ctx)
{
    char own[PATH_MAX];
    int rc;

    own_folder(own, sizeof(own));
    rc = access(own, X_OK) ? 0 : fn(ctx, own);
    if (rc || geteuid() != 0)
        return rc;
    rc = each_in("/run/user", "", "/stalltrap", fn, ctx);
    if (!rc)
        rc = each_in("/tmp", "stalltrap-", "", fn, ctx);
    return rc;
}
