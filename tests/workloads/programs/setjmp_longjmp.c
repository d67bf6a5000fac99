/* longjmp out of three frames, twice; out of a signal handler; and a setjmp that nobody jumps to. */
#include "tree.h"

#include <setjmp.h>
#include <signal.h>

static jmp_buf place;
static sigjmp_buf signal_place;

OWN void jump_out(int value)
{
    WORK();
    longjmp(place, value);
}

OWN void middle_frame(int value)
{
    jump_out(value);
    WORK();
}

OWN void outer_frame(int value)
{
    middle_frame(value);
    WORK();
}

OWN void after_jump(void)
{
    WORK();
}

OWN int jump_twice(void)
{
    volatile int jumps = 0;

    if (setjmp(place)) {
        jumps++;
        after_jump();
    }
    if (jumps < 2)
        outer_frame(jumps + 1);
    return jumps;
}

OWN void on_signal(int signal)
{
    (void)signal;
    WORK();
    siglongjmp(signal_place, 1);
}

OWN void raise_signal(void)
{
    raise(SIGUSR1);
    WORK();
}

OWN int jump_from_handler(void)
{
    signal(SIGUSR1, on_signal);
    if (sigsetjmp(signal_place, 1) == 0) {
        raise_signal();
        return 0;
    }
    after_jump();
    return 1;
}

OWN int no_jump(void)
{
    if (setjmp(place))
        return 0;
    after_jump();
    return 1;
}

int main(void)
{
    int jumps = jump_twice();

    jumps += jump_from_handler();
    jumps += jump_from_handler();
    return jumps == 4 && no_jump() ? 0 : 1;
}
