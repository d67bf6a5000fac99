/* Calls through PLTs. Linked twice: plt_lazy binds at the first call (through the dynamic linker), plt_now at
 * start. */
#include "plt_lib.h"
#include "tree.h"

OWN int main_callback(int n)
{
    WORK();
    return n + 1;
}

OWN int first_call(void)
{
    return lib_add(1, 2);
}

OWN int second_call(void)
{
    return lib_add(3, 4) + lib_add(5, 6);
}

int main(void)
{
    int sum = first_call() + second_call();

    sum += lib_sum(3);
    sum += lib_call_back(0);
    return sum == 3 + 7 + 11 + 6 + 2 ? 0 : 1;
}
