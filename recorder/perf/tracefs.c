/* Tracepoints as tracefs describes them. */
#include "recorder/perf/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_NAME = 128 };

/* tracefs, mounted nowhere: seen through this descriptor only. -1: the user may not. */
static int own_mount(void)
{
    int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), mount = -1;

    if (fs < 0)
        return -1;
    if (!syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    close(fs);
    return mount;
}

static int open_in_own_mount(const char *path)
{
    char full[512];
    int mount = own_mount(), fd;

    if (mount < 0)
        return -1;
    snprintf(full, sizeof(full), "events/%s", path);
    fd = openat(mount, full, O_RDONLY | O_CLOEXEC);
    close(mount);
    return fd;
}

static int open_file(const char *path)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    int fd = -1;

    for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        char full[512];

        snprintf(full, sizeof(full), "%s/events/%s", places[i], path);
        fd = open(full, O_RDONLY | O_CLOEXEC);
    }
    return fd < 0 ? open_in_own_mount(path) : fd;
}

static int add(rec_text *text, const void *bytes, size_t n)
{
    if (st_vec_reserve(text, n))
        return -1;
    memcpy(text->at + text->n, bytes, n);
    text->n += n;
    return 0;
}

static int read_all(int fd, rec_text *text)
{
    char piece[4096];
    ssize_t n;

    while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && add(text, piece, (size_t)n))
            return ST_ENOMEM;
    return n ? ST_ECANNOT : 0;
}

/* Appends the file, with its size as 8 bytes before it. */
static int add_file(rec_text *text, const char *path, struct st_error *err)
{
    uint64_t size = 0;
    size_t at = text->n;
    int fd = open_file(path), rc;

    if (fd < 0) {
        st_fail_errno(err, ST_ECANNOT, "cannot read what tracefs says of %s", path);
        return st_hint(err, "as root: mount -t tracefs tracefs /sys/kernel/tracing");
    }
    rc = add(text, &size, sizeof(size)) ? ST_ENOMEM : read_all(fd, text);
    close(fd);
    if (rc == ST_ENOMEM)
        return st_nomem(err, "the description of tracepoints");
    if (rc)
        return st_fail_errno(err, ST_ECANNOT, "cannot read what tracefs says of %s", path);
    size = text->n - at - sizeof(size);
    memcpy(text->at + at, &size, sizeof(size));
    return 0;
}

/* "sched:sched_waking", "id" -> "sched/sched_waking/id" */
static void path_of(const char *name, const char *file, char *path, size_t size)
{
    int system = (int)strcspn(name, ":");

    snprintf(path, size, "%.*s/%s/%s", system, name, name[system] ? name + system + 1 : "", file);
}

int rec_tracepoint_id(const char *name, uint64_t *id, struct st_error *err)
{
    char path[MOST_NAME];
    rec_text text = {0};
    int rc;

    path_of(name, "id", path, sizeof(path));
    rc = add_file(&text, path, err);
    if (!rc && add(&text, "", 1))
        rc = st_nomem(err, "the description of tracepoints");
    if (!rc && sscanf(text.at + sizeof(uint64_t), "%" SCNu64, id) != 1)
        rc = st_fail(err, ST_ECANNOT, "tracefs gives %s no number", name);
    st_vec_free(&text);
    return rc;
}

int rec_tracepoint_format(const char *name, rec_text *text, struct st_error *err)
{
    char path[MOST_NAME];
    int rc;

    path_of(name, "format", path, sizeof(path));
    rc = add_file(text, path, err);
    if (rc)
        return rc;
    memmove(text->at, text->at + sizeof(uint64_t), text->n - sizeof(uint64_t));
    text->n -= sizeof(uint64_t);
    return add(text, "", 1) ? st_nomem(err, "the description of tracepoints") : 0;
}

static int add_u32(rec_text *text, uint32_t value)
{
    return add(text, &value, sizeof(value));
}

/* The file's magic, its version, byte order, size of a long and of a page. */
static int add_head(rec_text *text)
{
    static const char magic[] = "\x17\x08\x44tracing0.6"; /* with the NUL behind the version */
    const char little_endian[] = {0, sizeof(long)};

    return add(text, magic, sizeof(magic)) || add(text, little_endian, sizeof(little_endian)) ||
           add_u32(text, (uint32_t)sysconf(_SC_PAGESIZE));
}

/* A system of its own for each: a name may come again. */
static int add_format(rec_text *text, const char *name, struct st_error *err)
{
    char path[MOST_NAME];

    if (add(text, name, strcspn(name, ":")) || add(text, "", 1) || add_u32(text, 1))
        return st_nomem(err, "the description of tracepoints");
    path_of(name, "format", path, sizeof(path));
    return add_file(text, path, err);
}

int rec_tracing_data(const char *const *names, size_t n, rec_text *text, struct st_error *err)
{
    static const char page[] = "header_page", event[] = "header_event";
    static const uint64_t none[2]; /* kallsyms, formats of printk: 4 bytes each, the names of threads: 8 */
    int rc = add_head(text) || add(text, page, sizeof(page)) ? ST_ENOMEM : 0;

    if (!rc)
        rc = add_file(text, page, err);
    if (!rc && add(text, event, sizeof(event)))
        rc = ST_ENOMEM;
    if (!rc)
        rc = add_file(text, event, err);
    if (!rc && (add_u32(text, 0) || add_u32(text, (uint32_t)n))) /* none of ftrace's own */
        rc = ST_ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_format(text, names[i], err);
    if (!rc && add(text, none, sizeof(none)))
        rc = ST_ENOMEM;
    return rc == ST_ENOMEM ? st_nomem(err, "the description of tracepoints") : rc;
}
