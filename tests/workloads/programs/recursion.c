/* Direct recursion, mutual recursion, and a recursion that branches. An argument N counts down from N instead
 * of 10. */
#include "tree.h"

#include <stdlib.h>

OWN void countdown(unsigned n)
{
    WORK();
    if (n > 0)
        countdown(n - 1);
    WORK();
}

OWN int is_odd(unsigned n);

OWN int is_even(unsigned n)
{
    WORK();
    return n == 0 ? 1 : is_odd(n - 1);
}

OWN int is_odd(unsigned n)
{
    WORK();
    return n == 0 ? 0 : is_even(n - 1);
}

OWN unsigned fibonacci(unsigned n)
{
    WORK();
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main(int argc, char **argv)
{
    countdown(argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10);
    return is_odd(5) && fibonacci(5) == 5 ? 0 : 1;
}
