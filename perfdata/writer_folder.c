/* Directory form: a folder that gets its name when everything in it is on disk. */
#include "perfdata/writer_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

int pd_folder_open(struct pd_writer *w, const char *path, struct st_error *err)
{
    char *folder;
    size_t parent;

    w->name = without_slashes(path);
    if (!w->name)
        return st_nomem(err, "the name of a folder");
    parent = parent_length(w->name);
    if (!w->name[parent])
        return st_fail(err, ST_EUSAGE, "cannot write '%s': it names no folder", path);
    if (asprintf(&folder, "%.*s.%s.XXXXXX", (int)parent, w->name, w->name + parent) < 0)
        return st_nomem(err, "the name of a folder");
    if (!mkdtemp(folder)) {
        st_fail_errno(err, ST_EFAIL, "cannot create a folder for '%s'", path);
        free(folder);
        return ST_EFAIL;
    }
    w->folder = folder;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

void pd_folder_remove(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int sync_path(const char *path, int flags, struct st_error *err)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
    int rc = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open '%s' to sync it", path);
    /* Some file systems cannot sync a folder; the files in it are synced. */
    if (fsync(fd) && !(flags & O_DIRECTORY && errno == EINVAL))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s' to disk", path);
    close(fd);
    return rc;
}

static int sync_entry(const char *folder, const char *name, struct st_error *err)
{
    char *path;
    int rc;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return st_nomem(err, "the name of a file");
    rc = sync_path(path, 0, err);
    free(path);
    return rc;
}

static int sync_files(const char *folder, struct st_error *err)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return st_fail_errno(err, ST_EFAIL, "cannot list '%s'", folder);
    while (!rc && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            rc = sync_entry(folder, entry->d_name, err);
    closedir(dir);
    return rc ? rc : sync_path(folder, O_DIRECTORY, err);
}

/* rename() that replaces nothing, on file systems without RENAME_NOREPLACE too. */
static int rename_new(const char *from, const char *to)
{
    struct stat st;

    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (!lstat(to, &st)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

int pd_folder_commit(struct pd_writer *w, struct st_error *err)
{
    size_t parent = parent_length(w->name);
    char *above = parent ? strndup(w->name, parent) : strdup(".");
    int rc = 0;

    if (!above)
        return st_nomem(err, "the name of a folder");
    if (w->kcore_dir)
        rc = sync_files(w->kcore_dir, err);
    if (!rc)
        rc = sync_path(w->folder, O_DIRECTORY, err);
    if (!rc && rename_new(w->folder, w->name))
        rc = st_fail_errno(err, ST_EFAIL, "cannot name the folder '%s'", w->name);
    if (!rc) {
        rc = sync_path(above, O_DIRECTORY, err);
        if (rc)
            pd_folder_remove(w->name);
    }
    free(above);
    return rc;
}

const char *pd_writer_kcore_dir(struct pd_writer *w, struct st_error *err)
{
    char *path;

    if (!w->folder || w->kcore_dir)
        return w->kcore_dir;
    if (asprintf(&path, "%s/kcore_dir", w->folder) < 0) {
        st_nomem(err, "the name of a folder");
        return NULL;
    }
    if (mkdir(path, 0700)) {
        st_fail_errno(err, ST_EFAIL, "cannot create the folder '%s'", path);
        free(path);
        return NULL;
    }
    return w->kcore_dir = path;
}
