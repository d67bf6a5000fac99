/* Tail calls; compiled with -O2, where a call in tail position is a jump. */
#include "tree.h"

OWN int leaf(int n)
{
    WORK();
    return n + 1;
}

/* a direct tail call */
OWN int last_link(int n)
{
    WORK();
    return leaf(n);
}

/* a call, then a tail call */
OWN int middle_link(int n)
{
    n = leaf(n);
    WORK();
    return last_link(n);
}

OWN int first_link(int n)
{
    WORK();
    return middle_link(n);
}

/* a tail call through a pointer */
OWN int jump_through(int (*function)(int), int n)
{
    WORK();
    return function(n);
}

OWN int pong(int n);

/* two functions that tail-call each other until n is 0 */
OWN int ping(int n)
{
    WORK();
    return pong(n - 1);
}

OWN int pong(int n)
{
    WORK();
    if (n <= 0)
        return n;
    return ping(n - 1);
}

OWN int run_chain(int n)
{
    int result = first_link(n);

    WORK();
    return result + first_link(n);
}

int main(void)
{
    int sum = run_chain(0);

    sum += jump_through(leaf, sum);
    sum += jump_through(last_link, sum);
    return ping(5) == 0 && sum == 19 ? 0 : 1;
}
