/* What fork_exec and vfork_exec start. Its exit status is 7. */
#include "tree.h"

OWN int target_leaf(int n)
{
    WORK();
    return n;
}

OWN int target_work(void)
{
    return target_leaf(3) + target_leaf(4);
}

int main(void)
{
    return target_work();
}
