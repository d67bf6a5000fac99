/* Write beside, fsync, rename. */
#include "base/outfile.h"

#include "base/folder.h"
#include "base/progress.h"
#include "base/tempfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 1 << 20 };

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : "device or pipe";
}

/* What stands under the name may be a file, or nothing. */
static int check_name(const struct st_outfile *out, struct st_error *err)
{
    struct stat st;

    if (fstatat(out->folder, out->name, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode))
        return 0;
    st_fail(err, ST_EFAIL, "cannot write '%s': it is a %s, and only files are replaced", out->path,
            kind_of(st.st_mode));
    return S_ISLNK(st.st_mode) ? st_hint(err, "name the file that the link leads to") : ST_EFAIL;
}

static int start(struct st_outfile *out, struct st_error *err)
{
    int rc = check_name(out, err);

    if (!rc)
        out->fd = st_folder_create_temp(out->folder, out->name, out->temp);
    while (!rc && out->fd >= 0 && st_tempfile_begin(out->folder, out->temp, out->fd)) {
        close(out->fd);
        out->fd = st_folder_create_temp(out->folder, out->name, out->temp);
    }
    if (!rc && out->fd < 0)
        rc = st_fail_errno(err, ST_EFAIL, "cannot create a file for '%s'", out->path);
    if (rc)
        close(out->folder);
    return rc;
}

static int set_names(struct st_outfile *out, const char *name, const char *path, struct st_error *err)
{
    memset(out, 0, sizeof(*out));
    out->fd = out->folder = -1;
    if (strlen(path) >= sizeof(out->path) || strlen(name) >= sizeof(out->name))
        return st_fail(err, ST_EUSAGE, "cannot write '%.200s...': the name is too long", path);
    strcpy(out->path, path);
    strcpy(out->name, name);
    return 0;
}

int st_outfile_open(struct st_outfile *out, const char *path, struct st_error *err)
{
    const char *name;
    int folder = st_folder_of(path, &name, err);
    int rc = folder < 0 ? folder : 0;

    if (rc) {
        set_names(out, "", "", NULL);
        return rc;
    }
    rc = set_names(out, name, path, err);
    if (rc)
        close(folder);
    out->folder = rc ? -1 : folder;
    return rc ? rc : start(out, err);
}

int st_outfile_open_at(struct st_outfile *out, int folder, const char *name, const char *path,
                       struct st_error *err)
{
    int rc = set_names(out, name, path, err);

    if (rc)
        return rc;
    out->folder = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    return out->folder < 0 ? st_fail_errno(err, ST_EFAIL, "cannot create a file for '%s'", path)
                           : start(out, err);
}

static int put_on_disk(struct st_outfile *out, struct st_error *err)
{
    int fd = out->fd;
    int rc = 0;

    st_folder_give(out->folder, fd);
    if (fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s' to disk", out->path);
    out->fd = -1;
    if (close(fd) && !rc)
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", out->path);
    return rc;
}

static bool cannot_at_all(int error)
{
    return error == EINVAL || error == ENOSYS || error == EPERM || error == EOPNOTSUPP;
}

/* The name is taken by an empty file, which the whole one replaces: for an instant that is what readers find,
 * but no file of anybody else is lost. */
static int claim_and_rename(const struct st_outfile *out)
{
    int error, fd = st_folder_create(out->folder, out->name);

    if (fd < 0)
        return -1;
    close(fd);
    if (!renameat(out->folder, out->temp, out->folder, out->name))
        return 0;
    error = errno;
    unlinkat(out->folder, out->name, 0);
    errno = error;
    return -1;
}

/* Fails where a file of that name is. NFS and some of FUSE know no RENAME_NOREPLACE, FAT and exFAT no links,
 * exFAT by way of FUSE neither. */
static int give_new_name(const struct st_outfile *out)
{
    if (!renameat2(out->folder, out->temp, out->folder, out->name, RENAME_NOREPLACE))
        return 0;
    if (!cannot_at_all(errno))
        return -1;
    if (!linkat(out->folder, out->temp, out->folder, out->name, 0)) {
        unlinkat(out->folder, out->temp, 0);
        return 0;
    }
    return cannot_at_all(errno) ? claim_and_rename(out) : -1;
}

static int give_name(const struct st_outfile *out, bool replace)
{
    return replace ? renameat(out->folder, out->temp, out->folder, out->name) : give_new_name(out);
}

int st_outfile_commit(struct st_outfile *out, bool replace, struct st_error *err)
{
    int rc = put_on_disk(out, err);

    if (!rc)
        rc = check_name(out, err);
    if (!rc && give_name(out, replace))
        rc = st_fail_errno(err, ST_EFAIL, "cannot name the file '%s'", out->path);
    if (rc)
        unlinkat(out->folder, out->temp, 0);
    st_tempfile_done(out->folder);
    out->temp[0] = '\0';
    if (!rc && st_folder_sync(out->folder)) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot sync the folder of '%s'", out->path);
        if (!replace)
            unlinkat(out->folder, out->name, 0);
    }
    close(out->folder);
    out->folder = -1;
    return rc;
}

void st_outfile_abort(struct st_outfile *out)
{
    if (!out->temp[0])
        return;
    if (out->fd >= 0)
        close(out->fd);
    unlinkat(out->folder, out->temp, 0);
    st_tempfile_done(out->folder);
    close(out->folder);
    out->fd = out->folder = -1;
    out->temp[0] = '\0';
}

int st_outfile_write(struct st_outfile *out, const void *data, size_t len, struct st_error *err)
{
    const char *at = data;

    while (len) {
        ssize_t n = write(out->fd, at, len < MOST_AT_ONCE ? len : MOST_AT_ONCE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return st_fail_errno(err, ST_EFAIL, "cannot write '%s'", out->path);
        st_progress_add((uint64_t)n);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
