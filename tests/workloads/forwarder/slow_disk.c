/* A FUSE server for one file, spoken straight over /dev/fuse (linux/fuse.h), in a process of its own. */
#include "slow_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The kernel wants room for a header and max_write, and never less than FUSE_MIN_READ_BUFFER (8192). */
#define MAX_WRITE    65536
#define REQUEST_ROOM (MAX_WRITE + 4096)

struct server {
    int fuse_fd;
    unsigned ms;
    uint64_t size;
};

static void reply(const struct server *server, uint64_t unique, int error, const void *body, size_t bytes)
{
    struct fuse_out_header header = {
        .unique = unique, .error = error, .len = (uint32_t)(sizeof(header) + bytes)};
    struct iovec parts[2] = {{&header, sizeof(header)}, {(void *)body, bytes}};

    /* An error means that the request was interrupted or the file is gone: nobody waits for this answer. */
    if (writev(server->fuse_fd, parts, bytes ? 2 : 1) < 0)
        return;
}

static void reply_init(const struct server *server, uint64_t unique, const struct fuse_init_in *in)
{
    struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                .minor = FUSE_KERNEL_MINOR_VERSION,
                                .max_readahead = in->max_readahead,
                                .max_write = MAX_WRITE};

    reply(server, unique, 0, &out, sizeof(out));
}

static void reply_attr(const struct server *server, uint64_t unique)
{
    struct fuse_attr_out out = {.attr_valid = 3600,
                                .attr = {.ino = FUSE_ROOT_ID,
                                         .size = server->size,
                                         .mode = S_IFREG | 0600,
                                         .nlink = 1,
                                         .uid = getuid(),
                                         .gid = getgid(),
                                         .blksize = 4096}};

    reply(server, unique, 0, &out, sizeof(out));
}

static void take_write(struct server *server, uint64_t unique, const struct fuse_write_in *in)
{
    struct fuse_write_out out = {.size = in->size};

    if (in->offset + in->size > server->size)
        server->size = in->offset + in->size;
    reply(server, unique, 0, &out, sizeof(out));
}

static void slow_fsync(const struct server *server, uint64_t unique)
{
    struct timespec left = {.tv_sec = server->ms / 1000, .tv_nsec = server->ms % 1000 * 1000000L};

    while (nanosleep(&left, &left) && errno == EINTR)
        ;
    reply(server, unique, 0, NULL, 0);
}

static void serve(struct server *server, const struct fuse_in_header *request)
{
    const void *body = request + 1;
    struct fuse_open_out opened = {0};

    switch (request->opcode) {
    case FUSE_INIT:
        reply_init(server, request->unique, body);
        break;
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        reply_attr(server, request->unique);
        break;
    case FUSE_OPEN:
        reply(server, request->unique, 0, &opened, sizeof(opened));
        break;
    case FUSE_WRITE:
        take_write(server, request->unique, body);
        break;
    case FUSE_FSYNC:
        slow_fsync(server, request->unique);
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        reply(server, request->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        reply(server, request->unique, -ENOSYS, NULL, 0);
    }
}

/* The child: serves until the file is closed (ENODEV after the lazy unmount) or the parent is gone. */
static void __attribute__((noreturn)) serve_until_unmounted(int fuse_fd, unsigned ms)
{
    static char room[REQUEST_ROOM] __attribute__((aligned(8)));
    struct server server = {.fuse_fd = fuse_fd, .ms = ms};

    prctl(PR_SET_NAME, "slow-disk");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    for (;;) {
        ssize_t got = read(fuse_fd, room, sizeof(room));
        if (got >= (ssize_t)sizeof(struct fuse_in_header))
            serve(&server, (const struct fuse_in_header *)room);
        else if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
            continue;
        else
            _exit(0);
    }
}

/* Mounts on the file PATH, opens what is mounted there, and unmounts lazily at once: the file lives as long
 * as it is open, and a crash leaves no mount behind. Returns the file or -1 with errno set. */
static int open_mounted(const char *path, int fuse_fd, unsigned ms, pid_t *pid)
{
    char options[128];

    snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=%u,group_id=%u", fuse_fd, getuid(),
             getgid());
    if (mount("slow-disk", path, "fuse", MS_NOSUID | MS_NODEV, options))
        return -1;
    *pid = fork();
    if (*pid == 0)
        serve_until_unmounted(fuse_fd, ms);
    int fd = *pid > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    int error = errno;
    umount2(path, MNT_DETACH);
    errno = error;
    return fd;
}

int slow_disk_start(unsigned ms, int *fd, pid_t *pid)
{
    char path[] = "/tmp/slow-disk-XXXXXX";
    int place = mkstemp(path);
    int fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    *pid = -1;
    *fd = place >= 0 && fuse_fd >= 0 ? open_mounted(path, fuse_fd, ms, pid) : -1;
    if (*fd < 0)
        fprintf(stderr, "forwarder: cannot make a slow disk over /dev/fuse: %s (it needs root)\n",
                strerror(errno));
    if (fuse_fd >= 0)
        close(fuse_fd);
    if (place >= 0) {
        close(place);
        unlink(path);
    }
    if (*fd < 0) {
        slow_disk_stop(-1, *pid);
        *pid = -1;
    }
    return *fd < 0 ? -1 : 0;
}

void slow_disk_stop(int fd, pid_t pid)
{
    if (fd >= 0)
        close(fd);
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
