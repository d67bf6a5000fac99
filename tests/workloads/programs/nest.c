/* Counts its own calls, main's included, and prints the number. An argument N does N rounds instead of 3;
 * each round is 10 calls. */
#include "tree.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t calls;

OWN void leaf(void)
{
    calls = calls + 1;
}

OWN void inner(void)
{
    calls = calls + 1;
    leaf();
    leaf();
}

OWN void outer(void)
{
    calls = calls + 1;
    inner();
    inner();
    inner();
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 3;

    calls = 1;
    for (uint64_t i = 0; i < rounds; i++)
        outer();
    printf("%" PRIu64 "\n", calls);
    return 0;
}
