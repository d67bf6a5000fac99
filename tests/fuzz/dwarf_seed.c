/* A library with line tables and functions that are inlined, as small as they come. */
static inline __attribute__((always_inline)) int inner(int x)
{
    return x * 3 + 1;
}

static inline __attribute__((always_inline)) int middle(int x)
{
    int y = inner(x);

    return y ^ inner(y + 5);
}

int outer(volatile int *p);
int outer(volatile int *p)
{
    int sum = 0;

    for (int i = 0; i < 4; i++)
        sum += middle(p[i]);
    return sum + inner(*p);
}

int other(volatile int *p);
int other(volatile int *p)
{
    *p = middle(*p);
    return outer(p);
}
