/* The messages' way over the socket. */
#include "recorder/sources/step/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int step_message_send(int sock, const struct step_message *m)
{
    ssize_t n;

    do
        n = send(sock, m, sizeof(*m), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*m) ? 0 : -1;
}

int step_message_receive(int sock, struct step_message *m, int wait)
{
    ssize_t n;

    do
        n = recv(sock, m, sizeof(*m), wait ? 0 : MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? 0 : -1;
    if (n != (ssize_t)sizeof(*m))
        return 0;
    m->text[sizeof(m->text) - 1] = '\0';
    return 1;
}
