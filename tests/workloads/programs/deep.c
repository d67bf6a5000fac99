/* Works long enough to fill a small ring 30 calls deep, then returns from all of them. */
#include "tree.h"

enum { DEPTH = 30, ROUNDS = 4000 };

static void (*volatile called)(void);

OWN void leaf(void)
{
    WORK();
}

/* Calls through a pointer need a packet each. */
OWN void busy(void)
{
    for (int i = 0; i < ROUNDS; i++)
        called();
}

OWN void descend(unsigned left)
{
    if (left > 1)
        descend(left - 1);
    else
        busy();
    WORK();
}

OWN void last(void)
{
    WORK();
}

int main(void)
{
    called = leaf;
    descend(DEPTH);
    last();
    return 0;
}
