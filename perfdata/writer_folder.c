/* Directory form: a folder that gets its name when everything in it is on disk. */
#include "perfdata/writer_state.h"

#include "base/folder.h"
#include "base/tempfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char kcore_dir[] = "kcore_dir";

void pd_folder_init(struct pd_folder *f)
{
    *f = (struct pd_folder){.parent = -1, .fd = -1, .kcore = -1};
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

/* The folder that `f` will be in, into f->parent. */
static int take_parent(struct pd_folder *f, int parent, struct st_error *err)
{
    if (parent < 0) {
        f->parent = st_folder_of(f->path, &f->name, err);
        return f->parent < 0 ? f->parent : 0;
    }
    f->name = st_folder_name(f->path);
    f->parent = fcntl(parent, F_DUPFD_CLOEXEC, 3);
    return f->parent < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create a folder for '%s'", f->path) : 0;
}

int pd_folder_open(struct pd_folder *f, int parent, const char *path, struct st_error *err)
{
    int rc;

    f->path = without_slashes(path);
    if (!f->path)
        return st_nomem(err, "the name of a folder");
    rc = take_parent(f, parent, err);
    if (rc)
        return rc;
    f->fd = st_folder_make_temp(f->parent, f->name, f->temp);
    while (f->fd >= 0 && st_tempfile_lock(f->fd)) {
        close(f->fd);
        f->fd = st_folder_make_temp(f->parent, f->name, f->temp);
    }
    return f->fd < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create a folder for '%s'", path) : 0;
}

/* What stands under the names that were used: a folder that somebody else put there is not empty, or a link,
 * and stays. */
void pd_folder_remove(struct pd_folder *f)
{
    if (f->fd < 0)
        return;
    if (f->kcore >= 0)
        st_folder_empty(f->kcore);
    st_folder_empty(f->fd);
    unlinkat(f->fd, kcore_dir, AT_REMOVEDIR);
    if (st_folder_has(f->parent, f->temp, f->fd))
        unlinkat(f->parent, f->temp, AT_REMOVEDIR);
}

void pd_folder_free(struct pd_folder *f)
{
    const int fds[] = {f->kcore, f->fd, f->parent};

    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(f->path);
    pd_folder_init(f);
    f->path = NULL;
}

static int sync_file(const struct pd_folder *f, const char *name, struct st_error *err)
{
    int fd = openat(f->kcore, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open '%s' of '%s' to sync it", name, f->path);
    st_folder_give(f->parent, fd);
    if (fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s' of '%s' to disk", name, f->path);
    close(fd);
    return rc;
}

static int sync_folder(const struct pd_folder *f, int fd, struct st_error *err)
{
    return st_folder_sync(fd) ? st_fail_errno(err, ST_EFAIL, "cannot write '%s' to disk", f->path) : 0;
}

static int sync_kcore(const struct pd_folder *f, struct st_error *err)
{
    int copy = openat(f->kcore, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    int rc = 0;

    if (!dir) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot list '%s' of '%s'", kcore_dir, f->path);
        if (copy >= 0)
            close(copy);
        return rc;
    }
    while (!rc && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            rc = sync_file(f, entry->d_name, err);
    closedir(dir);
    return rc ? rc : sync_folder(f, f->kcore, err);
}

/* rename() that replaces nothing, on file systems without RENAME_NOREPLACE too. */
static int rename_new(const struct pd_folder *f)
{
    struct stat st;

    if (!renameat2(f->parent, f->temp, f->parent, f->name, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (!fstatat(f->parent, f->name, &st, AT_SYMLINK_NOFOLLOW)) {
        errno = EEXIST;
        return -1;
    }
    return renameat(f->parent, f->temp, f->parent, f->name);
}

int pd_folder_commit(struct pd_folder *f, struct st_error *err)
{
    int rc = 0;

    if (f->kcore >= 0)
        rc = sync_kcore(f, err);
    if (!rc)
        rc = sync_folder(f, f->fd, err);
    if (!rc && !st_folder_has(f->parent, f->temp, f->fd))
        rc = st_fail(err, ST_EFAIL, "cannot name the folder '%s': somebody took it away while it was written",
                     f->path);
    if (!rc && rename_new(f))
        rc = st_fail_errno(err, ST_EFAIL, "cannot name the folder '%s'", f->path);
    if (rc)
        return rc;
    strcpy(f->temp, f->name);
    if (f->kcore >= 0)
        st_folder_give(f->parent, f->kcore);
    st_folder_give(f->parent, f->fd);
    return sync_folder(f, f->parent, err);
}

int pd_writer_kcore_dir(struct pd_writer *w, struct st_error *err)
{
    struct pd_folder *f = &w->folder;

    if (f->kcore >= 0)
        return f->kcore;
    if (f->fd < 0)
        return st_fail(err, ST_EFAIL, "'%s' is no folder: the kernel's code has no place in it", w->out.path);
    f->kcore = st_folder_make(f->fd, kcore_dir);
    return f->kcore < 0
               ? st_fail_errno(err, ST_EFAIL, "cannot create the folder '%s' of '%s'", kcore_dir, f->path)
               : f->kcore;
}
