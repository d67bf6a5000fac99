/* The child that queues asynchronous direct writes, and the parent's side of talking to it. */
#include "disk_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What goes over the socket: parent to child a number of writes to queue (0: reap), back a count or -errno.
 */
typedef int32_t message_t;

struct child {
    int socket, direct_fd;
    aio_context_t aio;
    char *buffer;
    int queued;
};

static int queue_writes(const struct child *child, unsigned count)
{
    static struct iocb blocks[DISK_WRITES_MAX];
    static struct iocb *list[DISK_WRITES_MAX];

    for (unsigned i = 0; i < count; i++) {
        blocks[i] = (struct iocb){.aio_fildes = (uint32_t)child->direct_fd,
                                  .aio_lio_opcode = IOCB_CMD_PWRITE,
                                  .aio_buf = (uint64_t)(uintptr_t)child->buffer,
                                  .aio_nbytes = DISK_WRITE_BYTES,
                                  .aio_offset = (int64_t)(1 + i % DISK_FILE_WRITES) * DISK_WRITE_BYTES};
        list[i] = &blocks[i];
    }
    return (int)syscall(SYS_io_submit, child->aio, (long)count, list);
}

/* Takes finished writes, waiting for MINIMUM of them. Returns how many, or -1. */
static int take_finished(const struct child *child, long minimum)
{
    static struct io_event events[DISK_WRITES_MAX];
    int got;

    do
        got = (int)syscall(SYS_io_getevents, child->aio, minimum, (long)DISK_WRITES_MAX, events, NULL);
    while (got < 0 && errno == EINTR);
    return got;
}

static int reap(struct child *child)
{
    int done = child->queued ? take_finished(child, 0) : 0;

    if (done < 0 || (done < child->queued && take_finished(child, child->queued - done) < 0))
        return -1;
    child->queued = 0;
    return done;
}

static message_t serve(struct child *child, message_t request)
{
    int result;

    if (request)
        result = child->queued = queue_writes(child, (unsigned)request);
    else
        result = reap(child);
    return result < 0 ? -errno : result;
}

/* Huge pages, where there are any, make one request of one write. */
static char *map_buffer(void)
{
    void *buffer =
        mmap(NULL, 2 * DISK_WRITE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (buffer == MAP_FAILED)
        return NULL;
    madvise(buffer, 2 * DISK_WRITE_BYTES, MADV_HUGEPAGE);
    memset(buffer, 'x', 2 * DISK_WRITE_BYTES);
    return buffer;
}

/* Every block is written once, so that later writes change no metadata. */
static int write_file_once(const struct child *child)
{
    if (fallocate(child->direct_fd, 0, 0, (off_t)(1 + DISK_FILE_WRITES) * DISK_WRITE_BYTES))
        return -1;
    for (unsigned i = 0; i <= DISK_FILE_WRITES; i++)
        if (pwrite(child->direct_fd, child->buffer, DISK_WRITE_BYTES, (off_t)i * DISK_WRITE_BYTES) !=
            DISK_WRITE_BYTES)
            return -1;
    return fsync(child->direct_fd);
}

static int set_up(struct child *child)
{
    child->buffer = map_buffer();
    if (!child->buffer || syscall(SYS_io_setup, DISK_WRITES_MAX, &child->aio))
        return -1;
    return write_file_once(child);
}

/* The child: says how its setting up went, then serves until the parent closes the socket. */
static void __attribute__((noreturn)) serve_parent(int socket, int direct_fd)
{
    struct child child = {.socket = socket, .direct_fd = direct_fd};
    message_t message;

    prctl(PR_SET_NAME, "disk-writer");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    message = set_up(&child) ? -errno : 0;
    while (send(socket, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message) &&
           recv(socket, &message, sizeof(message), 0) == sizeof(message))
        message = serve(&child, message);
    _exit(0);
}

/* Waits in poll(), which is waiting for work and no stall. Returns the child's answer, or -1 with errno set.
 */
static int receive_answer(const struct disk_writer *writer)
{
    struct pollfd readable = {.fd = writer->socket, .events = POLLIN};
    message_t answer;

    while (poll(&readable, 1, -1) < 0 && errno == EINTR)
        ;
    if (recv(writer->socket, &answer, sizeof(answer), 0) != sizeof(answer)) {
        errno = ECHILD;
        return -1;
    }
    if (answer < 0) {
        errno = -answer;
        return -1;
    }
    return answer;
}

static int ask(const struct disk_writer *writer, message_t request)
{
    if (send(writer->socket, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
        return -1;
    return receive_answer(writer);
}

static int start_child(struct disk_writer *writer, int direct_fd)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return -1;
    writer->socket = ends[0];
    writer->pid = fork();
    if (writer->pid == 0) {
        close(ends[0]);
        serve_parent(ends[1], direct_fd);
    }
    int error = errno;
    close(ends[1]);
    errno = error;
    return writer->pid < 0 ? -1 : receive_answer(writer);
}

int disk_writer_start(struct disk_writer *writer, const char *dir)
{
    char path[4096];
    int direct_fd = -1;

    *writer = (struct disk_writer){.pid = -1, .socket = -1, .fd = -1};
    if (snprintf(path, sizeof(path), "%s/forwarder-fsync-XXXXXX", dir) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    writer->fd = mkostemp(path, O_CLOEXEC);
    if (writer->fd < 0)
        return -1;
    direct_fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    int result = direct_fd < 0 ? -1 : start_child(writer, direct_fd);
    int error = errno;
    unlink(path);
    if (direct_fd >= 0)
        close(direct_fd);
    if (result < 0)
        disk_writer_stop(writer);
    errno = error;
    return result;
}

int disk_writer_queue(const struct disk_writer *writer, unsigned count)
{
    return ask(writer, (message_t)count);
}

int disk_writer_reap(const struct disk_writer *writer)
{
    return ask(writer, 0);
}

void disk_writer_stop(struct disk_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    if (writer->socket >= 0)
        close(writer->socket);
    if (writer->pid > 0)
        while (waitpid(writer->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    *writer = (struct disk_writer){.pid = -1, .socket = -1, .fd = -1};
}
