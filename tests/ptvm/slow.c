// slow: calls beat() for ever. Each call takes about a millisecond and leaves little trace, for its time goes
// into one instruction.
#include <stddef.h>

#define NI __attribute__((noinline))

static char memory[1 << 20];

NI int beat(int x)
{
    void *to = memory;
    size_t n = sizeof(memory);

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(x) : "memory");
    return memory[x & 0xff];
}

int main(void)
{
    for (int x = 0;; x++)
        beat(x);
}
