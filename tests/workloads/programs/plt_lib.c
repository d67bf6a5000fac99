/* Functions behind a PLT. */
#include "plt_lib.h"

#include "tree.h"

OWN int lib_add(int a, int b)
{
    WORK();
    return a + b;
}

OWN int lib_sum(int n)
{
    int sum = 0;

    for (int i = 1; i <= n; i++)
        sum = lib_add(sum, i);
    return sum;
}

OWN int lib_call_back(int n)
{
    WORK();
    return main_callback(n) + 1;
}
