/* The child that decodes. */
#include "recorder/decode_child.h"
#include "base/outfile.h"
#include "recorder/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make_folder(struct rec_decode *d, struct st_error *err)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(d->folder, sizeof(d->folder), "%s/stalltrap.XXXXXX", tmp && *tmp == '/' ? tmp : "/var/tmp");
    if (!mkdtemp(d->folder)) {
        int rc = st_fail_errno(err, ST_EFAIL, "cannot make a folder for decoding '%s'", d->folder);

        d->folder[0] = '\0';
        return rc;
    }
    snprintf(d->out, sizeof(d->out), "%s/trace.db", d->folder);
    return 0;
}

int rec_decode_plan(struct rec_decode *d, const char *data, const char *db, struct st_error *err)
{
    const char *slash = strrchr(db, '/');
    char folder[PATH_MAX];

    *d = (struct rec_decode){.data = data, .db = db, .fd = -1};
    snprintf(d->out, sizeof(d->out), "%s", db);
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - db) + 1 : 1, slash ? db : ".");
    if (!rec_has_capabilities() || rec_unprivileged_can_write(folder))
        return 0;
    d->fd = open(data, O_RDONLY | O_CLOEXEC);
    if (d->fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s'", data);
    if (make_folder(d, err)) {
        close(d->fd);
        return ST_EFAIL;
    }
    return 0;
}

void rec_decode_run(void *arg)
{
    struct rec_decode *d = arg;
    char in[PATH_MAX];
    char *argv[] = {"stalltrap", "decode", in, "-o", d->out, NULL};

    /* Ctrl-C is for the recorder, which then decides about this child. */
    setpgid(0, 0);
    snprintf(in, sizeof(in), "%s", d->data);
    if (d->fd >= 0) {
        snprintf(in, sizeof(in), "/proc/self/fd/%d", d->fd);
        fcntl(d->fd, F_SETFD, 0);
    }
    if (rec_drop_privileges()) {
        fprintf(stderr, "stalltrap arm: cannot drop privileges for decoding: %s\n", strerror(errno));
        return;
    }
    execv("/proc/self/exe", argv);
    fprintf(stderr, "stalltrap arm: cannot start `stalltrap decode`: %s\n", strerror(errno));
}

static int copy_file(const char *from, const char *to, struct st_error *err)
{
    struct st_outfile out;
    static char buffer[1 << 16];
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    int rc;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot read '%s'", from);
    rc = st_outfile_open(&out, to, err);
    if (rc) {
        close(fd);
        return rc;
    }
    while (!rc && (n = read(fd, buffer, sizeof(buffer))) > 0)
        rc = st_outfile_write(&out, buffer, (size_t)n, err);
    if (!rc && n < 0)
        rc = st_fail_errno(err, ST_EFAIL, "cannot read '%s'", from);
    close(fd);
    if (!rc)
        return st_outfile_commit(&out, false, err);
    st_outfile_abort(&out);
    return rc;
}

int rec_decode_finish(struct rec_decode *d, bool succeeded, struct st_error *err)
{
    int rc = 0;

    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    if (!d->folder[0])
        return 0;
    if (succeeded)
        rc = copy_file(d->out, d->db, err);
    unlink(d->out);
    rmdir(d->folder);
    d->folder[0] = '\0';
    return rc;
}
