/* Dies of SIGSEGV three calls deep: calls that have no return. */
#include "tree.h"

#include <stddef.h>
#include <sys/resource.h>

static int *volatile nowhere;

OWN int read_nowhere(void)
{
    WORK();
    return *nowhere;
}

OWN int before_crash(void)
{
    WORK();
    return 1;
}

OWN int walk_into_it(void)
{
    return before_crash() + read_nowhere();
}

int main(void)
{
    const struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    before_crash();
    return walk_into_it();
}
