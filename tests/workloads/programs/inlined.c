/* Functions that are inlined: in one another, in a loop, with a call within, partly in a cold part, left
 * by longjmp. Compiled with -O2. */
#include "tree.h"

#include <setjmp.h>

/* A function that is always inlined, and in the instrumented build never: that one logs the calls. */
#ifdef TREE_LOG
#define IN_LINE OWN
#else
#define IN_LINE static inline __attribute__((always_inline))
#endif

static jmp_buf place;

OWN int leaf(int n)
{
    WORK();
    return n + 1;
}

OWN __attribute__((cold)) int complain(int n)
{
    WORK();
    return n - 1;
}

IN_LINE int innermost(int n)
{
    WORK();
    return n * 3;
}

IN_LINE int middle(int n)
{
    WORK();
    n = innermost(n) ^ 5;
    WORK();
    return n;
}

/* two deep */
IN_LINE int outer(int n)
{
    WORK();
    n = middle(n) + 7;
    WORK();
    return n;
}

/* a call within, and something behind it */
IN_LINE int calling(int n)
{
    WORK();
    n = leaf(n);
    WORK();
    return n * 2;
}

/* what few need stands in a part of the function that is split off */
IN_LINE int checked(int n)
{
    WORK();
    if (__builtin_expect(n < 0, 0)) {
        WORK();
        n = complain(n);
        WORK();
    }
    return n + 1;
}

/* the same function inlined at two places */
OWN int two_places(int n)
{
    n = outer(n);
    WORK();
    return outer(n);
}

/* a loop around, and one within */
OWN int loops(int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++) {
        sum += middle(i);
        WORK();
    }
    return sum;
}

IN_LINE int has_loop(int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++) {
        WORK();
        sum += leaf(i);
    }
    return sum;
}

OWN int calls(int n)
{
    n = calling(n);
    WORK();
    return has_loop(n & 3) + 1;
}

OWN int cold(int n)
{
    n = checked(n);
    WORK();
    return checked(n);
}

OWN int down(int n);

IN_LINE int deeper(int n)
{
    WORK();
    n = down(n - 1) + 1;
    WORK();
    return n;
}

/* calls itself out of what is inlined in it */
OWN int down(int n)
{
    WORK();
    return n > 0 ? deeper(n) : 0;
}

IN_LINE void leave(int n)
{
    WORK();
    if (n > 0)
        longjmp(place, n);
    WORK();
}

OWN int jump_out(int n)
{
    WORK();
    leave(n);
    return leaf(n);
}

OWN int jumps(int n)
{
    volatile int from = n;

    if (setjmp(place) == 0)
        return jump_out(from);
    return calling(from);
}

int main(void)
{
    int sum = two_places(1);

    sum += loops(4);
    sum += calls(2);
    sum += cold(3);
    sum += cold(-3);
    sum += down(3);
    sum += jumps(1);
    sum += jumps(0);
    return sum == -1;
}
