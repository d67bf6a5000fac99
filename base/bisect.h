/* Binary search. */
#ifndef ST_BASE_BISECT_H
#define ST_BASE_BISECT_H

#include <stddef.h>

/* The first of the numbers 0 to n - 1 for which `before`, an expression of the variable `i`, is not true; n:
 * it is true of all. It has to be true of none behind the first of which it is not. */
#define st_bisect(i, n, before)                                                                              \
    ({                                                                                                       \
        size_t _low = 0, _high = (n);                                                                        \
                                                                                                             \
        while (_low < _high) {                                                                               \
            size_t i = _low + (_high - _low) / 2;                                                            \
                                                                                                             \
            if (before)                                                                                      \
                _low = i + 1;                                                                                \
            else                                                                                             \
                _high = i;                                                                                   \
        }                                                                                                    \
        _low;                                                                                                \
    })

#endif
