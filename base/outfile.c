/* Write beside, fsync, rename. */
#include "base/outfile.h"

#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 1 << 20 };

static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash - path) + 1 : 0;
}

int st_outfile_open(struct st_outfile *out, const char *path, struct st_error *err)
{
    int folder = folder_length(path);
    int n;

    memset(out, 0, sizeof(*out));
    out->fd = -1;
    if (!path[folder])
        return st_fail(err, ST_EUSAGE, "cannot write '%s': it names no file", path);
    n = snprintf(out->temp, sizeof(out->temp), "%.*s.%s.XXXXXX", folder, path, path + folder);
    if (n < 0 || (size_t)n >= sizeof(out->temp)) {
        out->temp[0] = '\0';
        return st_fail(err, ST_EUSAGE, "cannot write '%.200s...': the name is too long", path);
    }
    strcpy(out->path, path);
    out->fd = mkostemp(out->temp, O_CLOEXEC);
    if (out->fd < 0) {
        out->temp[0] = '\0';
        return st_fail_errno(err, ST_EFAIL, "cannot create a file for '%s'", path);
    }
    return 0;
}

static int sync_folder(const char *path)
{
    char folder[PATH_MAX];
    int len = folder_length(path);
    int fd, rc;

    snprintf(folder, sizeof(folder), "%.*s", len ? len : 1, len ? path : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    rc = fsync(fd);
    close(fd);
    /* Some file systems cannot sync a folder; the file itself is synced. */
    return rc && errno != EINVAL ? -1 : 0;
}

int st_outfile_commit(struct st_outfile *out, bool replace, struct st_error *err)
{
    int fd = out->fd;
    int rc = 0;

    if (fsync(fd))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s' to disk", out->path);
    out->fd = -1;
    if (close(fd) && !rc)
        rc = st_fail_errno(err, ST_EFAIL, "cannot write '%s'", out->path);
    /* link() fails where a file of that name is; rename() would replace it. */
    if (!rc && replace && rename(out->temp, out->path))
        rc = st_fail_errno(err, ST_EFAIL, "cannot name the file '%s'", out->path);
    if (!rc && !replace && link(out->temp, out->path))
        rc = st_fail_errno(err, ST_EFAIL, "cannot name the file '%s'", out->path);
    if (rc || !replace)
        unlink(out->temp);
    out->temp[0] = '\0';
    if (!rc && sync_folder(out->path)) {
        rc = st_fail_errno(err, ST_EFAIL, "cannot sync the folder of '%s'", out->path);
        if (!replace)
            unlink(out->path);
    }
    return rc;
}

void st_outfile_abort(struct st_outfile *out)
{
    if (!out->temp[0])
        return;
    if (out->fd >= 0)
        close(out->fd);
    unlink(out->temp);
    out->fd = -1;
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
