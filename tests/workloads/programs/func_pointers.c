/* Calls through pointers: a table, an argument, a structure of operations, a callback from libc, exit
 * handlers. */
#include "tree.h"

#include <search.h>
#include <stdlib.h>

OWN int add(int a, int b)
{
    WORK();
    return a + b;
}

OWN int subtract(int a, int b)
{
    WORK();
    return a - b;
}

OWN int multiply(int a, int b)
{
    WORK();
    return a * b;
}

static int (*const operations[])(int, int) = {add, subtract, multiply};

OWN int dispatch(unsigned which, int a, int b)
{
    int result = operations[which](a, b);

    WORK();
    return result;
}

OWN int increment(int a)
{
    WORK();
    return add(a, 1);
}

OWN int apply_three_times(int (*function)(int), int a)
{
    for (int i = 0; i < 3; i++)
        a = function(a);
    return a;
}

struct shape {
    int (*area)(const struct shape *);
    int a, b;
};

OWN int square_area(const struct shape *shape)
{
    return multiply(shape->a, shape->a);
}

OWN int rectangle_area(const struct shape *shape)
{
    return multiply(shape->a, shape->b);
}

OWN int total_area(const struct shape *shapes, unsigned count)
{
    int total = 0;

    for (unsigned i = 0; i < count; i++)
        total += shapes[i].area(&shapes[i]);
    return total;
}

OWN int same_key(const void *a, const void *b)
{
    WORK();
    return *(const int *)a - *(const int *)b;
}

/* lfind(3) compares from the front until it finds: three times here. */
OWN int find_third(void)
{
    static const int keys[] = {4, 5, 6, 7};
    int wanted = 6;
    size_t count = 4;

    return lfind(&wanted, keys, &count, sizeof(int), same_key) == &keys[2];
}

OWN void exit_leaf(void)
{
    WORK();
}

OWN void first_registered(int status, void *arg)
{
    (void)status;
    (void)arg;
    WORK();
}

OWN void last_registered(int status, void *arg)
{
    (void)status;
    (void)arg;
    exit_leaf();
}

int main(void)
{
    static const struct shape shapes[] = {{square_area, 2, 0}, {rectangle_area, 2, 3}, {square_area, 1, 0}};
    int sum = dispatch(0, 1, 2) + dispatch(2, 3, 4) + dispatch(1, 5, 6);

    /* not atexit(), which is linked into the program itself and would be a function of its own */
    on_exit(first_registered, NULL);
    on_exit(last_registered, NULL);
    sum += apply_three_times(increment, 0);
    sum += total_area(shapes, 3);
    return sum == 3 + 12 - 1 + 3 + 11 && find_third() ? 0 : 1;
}
