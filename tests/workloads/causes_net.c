/* The modes of causes that wait for a socket: TCP, and names and datagrams by UDP. */
#include "causes.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- TCP: a client and a server on the loopback, the server another process ---- */

static void serve(int listener, unsigned think_ms)
{
    char request[64];
    int fd = accept(listener, NULL, NULL);
    size_t have = 0;
    ssize_t n;

    prctl(PR_SET_NAME, "server");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((n = read(fd, request + have, sizeof(request) - have)) > 0) {
        have += (size_t)n;
        if (have < sizeof(request))
            continue;
        if (think_ms)
            compute(think_ms);
        have = 0;
        if (write(fd, "done", 4) != 4)
            break;
    }
    _exit(0);
}

static int connect_to_server(unsigned think_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork())
        serve(listener, think_ms);
    check(!connect(fd, (struct sockaddr *)&at, size), "connect");
    return fd;
}

static void wait_for_answer(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char answer[4];

    check(ppoll(&wait, 1, NULL, NULL) == 1, "ppoll");
    check(read(fd, answer, sizeof(answer)) == 4, "the answer");
}

static void send_header(int fd)
{
    char header[16] = "header";

    check(write(fd, header, sizeof(header)) == (ssize_t)sizeof(header), "write");
}

static void send_body(int fd)
{
    char body[48] = "body";

    check(write(fd, body, sizeof(body)) == (ssize_t)sizeof(body), "write");
}

/* Two small writes, then a wait: the second one is held until the first is acknowledged. */
void ask_in_two(void)
{
    int fd = connect_to_server(0), one = 1;

    if (argument)
        check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
    for (;;) {
        send_header(fd);
        send_body(fd);
        wait_for_answer(fd);
        rest(5);
    }
}

static void ask_in_one(unsigned think_ms)
{
    char request[64] = "request";
    int fd = connect_to_server(think_ms);

    for (;;) {
        check(write(fd, request, sizeof(request)) == (ssize_t)sizeof(request), "write");
        wait_for_answer(fd);
        rest(5);
    }
}

/* The other way round: the client is slow to ask. */
void serve_requests(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        check(!connect(fd, (struct sockaddr *)&at, size), "connect");
        for (;;) {
            rest(LONG_MS);
            check(write(fd, "give", 4) == 4, "write");
        }
    }
    fd = accept(listener, NULL, NULL);
    for (;;) {
        wait_for_answer(fd);
        check(write(fd, "take", 4) == 4, "write");
    }
}

void ask_slow_server(void)
{
    ask_in_one(LONG_MS);
}

void ask_fast_server(void)
{
    ask_in_one(0);
}

/* The buffer of the socket is full for most of the time: the other end reads late. */
static void read_late(int listener)
{
    static char block[1 << 16];
    int fd = accept(listener, NULL, NULL);

    prctl(PR_SET_NAME, "server");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t left = 8 * (ssize_t)sizeof(block), n;

        rest(LONG_MS);
        while (left > 0 && (n = recv(fd, block, sizeof(block), MSG_DONTWAIT)) > 0)
            left -= n;
    }
}

void send_to_slow_reader(void)
{
    static char block[1 << 16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    check(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    if (!fork())
        read_late(listener);
    check(!connect(fd, (struct sockaddr *)&at, size), "connect");
    for (;;)
        check(send(fd, block, sizeof(block), 0) > 0, "send");
}

/* ---- UDP: a name server that takes its time, and another server that does ---- */

static void answer_late(int fd)
{
    char packet[512];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t n;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((n = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size)) > 0) {
        rest(LONG_MS);
        if (n > 3) {
            packet[2] |= (char)0x80;
            packet[3] = (char)((packet[3] & 0xf0) | 3); /* there is no such name */
        }
        sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, size);
    }
    _exit(0);
}

static struct sockaddr_in late_server(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f350035), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    check(!bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
    if (!fork())
        answer_late(fd);
    close(fd);
    return at;
}

void look_up_names(void)
{
    struct sockaddr_in at = late_server(53);
    struct addrinfo *found;

    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0] = at;
    for (;;) {
        if (!getaddrinfo("no-such-name.invalid.", NULL, NULL, &found))
            freeaddrinfo(found);
        rest(5);
    }
}

void ask_datagrams(void)
{
    struct sockaddr_in at = late_server(5353);
    struct pollfd wait = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};
    char packet[16] = "question";

    check(!connect(wait.fd, (struct sockaddr *)&at, sizeof(at)), "connect");
    for (;;) {
        send(wait.fd, packet, sizeof(packet), 0);
        poll(&wait, 1, 1000);
        recv(wait.fd, packet, sizeof(packet), 0);
        rest(5);
    }
}
