/* An indirect function (IFUNC): the dynamic linker calls the resolver to choose the function behind the name.
 */
#include "tree.h"

#include <stdio.h>

int resolver_runs;

OWN int compute_plain(int n)
{
    WORK();
    return n + 1;
}

OWN int compute_fast_step(int n)
{
    WORK();
    return n + 2;
}

OWN int compute_fast(int n)
{
    return compute_fast_step(n);
}

/* Runs while the program is being relocated: nothing outside this file may be used, instrumentation neither.
 */
OWN_QUIET int (*resolve_compute(void))(int)
{
    resolver_runs++;
    return resolver_runs ? compute_fast : compute_plain;
}

int compute(int n) __attribute__((ifunc("resolve_compute")));

OWN int use_compute(int n)
{
    return compute(n) + compute(n);
}

int main(void)
{
    int sum = use_compute(1);

    printf("resolver runs: %d\n", resolver_runs);
    return sum == 6 ? 0 : 1;
}
