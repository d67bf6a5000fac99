/* Handlers that are interrupted: by another signal, by the same one (SA_NODEFER), and one that waits its
 * turn. */
#include "tree.h"

#include <signal.h>

static volatile sig_atomic_t depth;

OWN void inner_work(void)
{
    WORK();
}

OWN void on_inner(int signal)
{
    (void)signal;
    inner_work();
}

OWN void on_outer(int signal)
{
    (void)signal;
    WORK();
    raise(SIGUSR2);
    inner_work();
}

OWN void on_itself(int signal)
{
    if (++depth < 4)
        raise(signal);
    WORK();
}

/* SIGHUP stays blocked while its handler runs: the second one comes after the first has returned. */
OWN void on_deferred(int signal)
{
    if (++depth == 5)
        raise(signal);
    inner_work();
}

OWN void install(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigaction(signal, &action, NULL);
}

OWN void raise_nested(void)
{
    raise(SIGUSR1);
    WORK();
}

OWN void raise_itself(void)
{
    raise(SIGURG);
    WORK();
}

OWN void raise_deferred(void)
{
    raise(SIGHUP);
    WORK();
}

int main(void)
{
    install(SIGUSR1, on_outer, 0);
    install(SIGUSR2, on_inner, 0);
    install(SIGURG, on_itself, SA_NODEFER);
    install(SIGHUP, on_deferred, 0);
    raise_nested();
    raise_itself();
    raise_deferred();
    return depth == 6 ? 0 : 1;
}
