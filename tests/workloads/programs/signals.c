/* Signal handlers: raised, sent to itself, from a timer in a loop and in a wait, and on a stack of their own.
 */
#include "tree.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;

OWN void note_signal(void)
{
    WORK();
}

OWN void on_usr1(int signal)
{
    (void)signal;
    note_signal();
}

OWN void on_usr2(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    note_signal();
    note_signal();
}

OWN void on_alarm(int signal)
{
    (void)signal;
    alarms++;
    note_signal();
}

OWN void raise_one(void)
{
    raise(SIGUSR1);
    WORK();
}

OWN void kill_self(void)
{
    kill(getpid(), SIGUSR2);
    WORK();
}

OWN void set_timer(void)
{
    struct itimerval soon = {.it_value.tv_usec = 20000};

    setitimer(ITIMER_REAL, &soon, NULL);
}

/* The signal stays blocked until it is spun for, so it cannot come too early: in set_timer(), on a slow
 * machine. */
OWN void spin_until_alarm(void)
{
    sigset_t blocked, before;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    set_timer();
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (alarms == 0)
        WORK();
}

/* The same outside the wait. */
OWN void wait_for_alarm(void)
{
    sigset_t blocked, before;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    set_timer();
    while (alarms == 1)
        sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

OWN void install(int signal, void (*handler)(int), void (*handler_info)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_flags = flags};

    if (handler_info)
        action.sa_sigaction = handler_info;
    else
        action.sa_handler = handler;
    sigaction(signal, &action, NULL);
}

static char other_stack[65536];

OWN void use_other_stack(void)
{
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};

    OWN_STACK("", other_stack, sizeof(other_stack));
    sigaltstack(&stack, NULL);
    install(SIGUSR1, on_usr1, NULL, SA_ONSTACK);
    raise_one();
}

int main(void)
{
    install(SIGUSR1, on_usr1, NULL, 0);
    install(SIGUSR2, NULL, on_usr2, SA_SIGINFO);
    install(SIGALRM, on_alarm, NULL, 0);
    raise_one();
    kill_self();
    spin_until_alarm();
    wait_for_alarm();
    use_other_stack();
    return alarms == 2 ? 0 : 1;
}
