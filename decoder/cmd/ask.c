/* The worker's side: requests over a socket, each with a socket for its answer, so that children and threads
 * may ask at the same time. */
#include "decoder/cmd/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a request; `answer` is the end of a socket that goes with it, or -1. */
static int send_request(const struct dec_request *request, int answer)
{
    size_t size = offsetof(struct dec_request, path) + strlen(request->path) + 1;
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec bytes = {(void *)(uintptr_t)request, size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    struct cmsghdr *head;
    ssize_t n;

    if (answer >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &answer, sizeof(int));
    }
    do
        n = sendmsg(DEC_WORKER_FD, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : -1;
}

/* The descriptor of an answer, or -1 with errno. */
static int receive(int from)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct dec_reply reply = {.error = EIO};
    struct iovec bytes = {&reply, sizeof(reply)};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *head;
    ssize_t n;
    int fd = -1;

    do
        n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    head = n == (ssize_t)sizeof(reply) ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    if (fd < 0)
        errno = reply.error ? reply.error : EIO;
    return fd;
}

static int ask_for(const struct dec_request *request)
{
    int ends[2], fd = -1, error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return -1;
    if (!send_request(request, ends[1])) {
        close(ends[1]); /* so that the end of the other process is the end of the wait */
        ends[1] = -1;
        fd = receive(ends[0]);
    }
    error = errno;
    close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    errno = error;
    return fd;
}

static int ask_file(const char *path, enum st_infile_kind kind)
{
    struct dec_request request = {.what = DEC_ASK_FILE, .kind = kind};

    if (strlen(path) >= sizeof(request.path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(request.path, path);
    return ask_for(&request);
}

void dec_ask_begin(void)
{
    fcntl(DEC_WORKER_FD, F_SETFD, FD_CLOEXEC);
    st_infile_by(ask_file);
}

int dec_ask(enum dec_request_kind what)
{
    struct dec_request request = {.what = what};

    return ask_for(&request);
}

void dec_tell(const char *line)
{
    struct dec_request request = {.what = DEC_TELL};

    snprintf(request.path, sizeof(request.path), "%s", line);
    send_request(&request, -1);
}
