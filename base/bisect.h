/* Binary search. */
#ifndef ST_BASE_BISECT_H
#define ST_BASE_BISECT_H

#include <stdbool.h>
#include <stddef.h>

/* The first i of 0..n-1 for which holds(ctx, i) is true; n: there is none. It is true of all behind the
 * first. `ctx` is the caller's, and only passed on. */
static inline size_t st_bisect(size_t n, bool (*holds)(const void *ctx, size_t i), const void *ctx)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (holds(ctx, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
