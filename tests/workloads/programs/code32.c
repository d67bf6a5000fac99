/* 32-bit code without any library, so that it can be built where only 64-bit libraries are: calls, a table of
 * functions, a thunk as position-independent code has it, a string operation, and system calls by int 0x80.
 */
#include "tree.h"

static char from[64], to[64];

OWN int add(int value)
{
    WORK();
    return value + 1;
}

OWN int twice(int value)
{
    WORK();
    return add(value) + add(value);
}

static int (*volatile const table[])(int) = {add, twice};

OWN int pick(unsigned which, int value)
{
    return table[which & 1](value);
}

OWN void copy(void)
{
    char *source = from, *target = to;
    unsigned bytes = sizeof(from);

    __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(bytes)::"memory");
}

OWN long system_call(long number, long argument)
{
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(argument) : "memory");
    return result;
}

OWN void leave(int status)
{
    system_call(1, status); /* exit */
}

OWN int run(void)
{
    int sum = 0;

    for (unsigned i = 0; i < 4; i++)
        sum += pick(i, (int)i);
    copy();
    system_call(20, 0); /* getpid */
    return sum == 16 ? 0 : 1;
}

void _start(void)
{
    leave(run());
}
