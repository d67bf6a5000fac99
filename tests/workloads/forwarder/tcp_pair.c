/* A pair of connected TCP sockets over loopback, for the stalls that need a network. */
#include "stall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        pair[i] = -1;
    }
}

static int connect_pair(int pair[2], int listener)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    if (getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(pair[0], (struct sockaddr *)&address, length))
        return -1;
    pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return pair[1] < 0 ? -1 : 0;
}

/* The accepted socket takes its options from the listener; a receive buffer set later would not bound the
 * window. */
static int set_limits(int client, int listener, int buffer, int segment)
{
    if (buffer && (setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) ||
                   setsockopt(client, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer))))
        return -1;
    if (segment && (setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)) ||
                    setsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment))))
        return -1;
    return 0;
}

int tcp_pair(int pair[2], int buffer_bytes, int segment_bytes)
{
    struct sockaddr_in any_port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pair[1] = -1;
    bool good = listener >= 0 && pair[0] >= 0 &&
                !set_limits(pair[0], listener, buffer_bytes, segment_bytes) &&
                !bind(listener, (struct sockaddr *)&any_port, sizeof(any_port)) && !listen(listener, 1) &&
                !connect_pair(pair, listener);
    int error = errno;
    if (listener >= 0)
        close(listener);
    if (!good)
        close_pair(pair);
    errno = error;
    return good ? 0 : -1;
}
