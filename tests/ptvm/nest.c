// A program whose calls are known: check_nest.py makes the same sequence. Build with -O1 (at -O2 `rec ->
// leaf` is a tail call). `nest N counted` prints at its end how often it was in each of its functions, as it
// counted itself.
#include <stdio.h>
#include <stdlib.h>

#define NI __attribute__((noinline, noclone))

volatile int sink;

static unsigned long leafs, mids, recs, viaptrs, outers;

NI int leaf(int x)
{
    leafs++;
    sink += x;
    return x * 3 + 1;
}

NI int mid(int x)
{
    int r = 0;

    mids++;
    for (int i = 0; i < 3; i++)
        r += leaf(x + i);
    return r;
}

NI int rec(int n)
{
    recs++;
    return n <= 0 ? leaf(n) : rec(n - 1) + mid(n);
}

typedef int (*fn)(int);

NI int viaptr(fn f, int x)
{
    viaptrs++;
    return f(x) + 1;
}

NI int outer(int n)
{
    int s = 0;

    outers++;
    for (int i = 0; i < n; i++) {
        s += rec(i % 5);
        s += viaptr(i & 1 ? leaf : mid, i);
    }
    return s;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10;
    int r = outer(n);

    if (argc > 2)
        printf("leaf %lu\nmid %lu\nrec %lu\nviaptr %lu\nouter %lu\n", leafs, mids, recs, viaptrs, outers);
    return r == 12345;
}
