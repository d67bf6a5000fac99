/* Calls, tail calls and returns by thunks: compiled so that every indirect branch is a retpoline and every
 * return a jump to a return thunk, as kernels are. */
#include "tree.h"

#include <setjmp.h>

typedef int function(int);

static jmp_buf back;

OWN int leaf(int n)
{
    WORK();
    return n + 1;
}

OWN int other_leaf(int n)
{
    WORK();
    return n + 2;
}

/* calls through a retpoline, in a frame that goes on */
OWN int call_twice(function *volatile called, int n)
{
    n = called(n);
    WORK();
    return called(n);
}

/* a jump through a retpoline */
OWN int jump_through(function *volatile called, int n)
{
    WORK();
    return called(n);
}

OWN int descend(function *called, int n)
{
    if (n == 0)
        return jump_through(called, n) + 0;
    n = descend(called, n - 1);
    WORK();
    return n;
}

OWN int throw_back(int n)
{
    WORK();
    longjmp(back, n);
}

OWN int catch_it(function *volatile called)
{
    int n = setjmp(back);

    if (n == 0)
        n = called(5);
    WORK();
    return n;
}

int main(void)
{
    int sum = call_twice(leaf, 0);

    sum += jump_through(other_leaf, sum);
    sum += descend(leaf, 3);
    sum += catch_it(throw_back);
    sum += call_twice(other_leaf, 0);
    return sum == 16 ? 0 : 1;
}
