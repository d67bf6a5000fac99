/* Growth of the arrays of vec.h. */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

int st_vec_reserve_raw(void **at, size_t *room, size_t n, size_t more, size_t size)
{
    size_t want = *room ? *room : 8;
    void *grown;

    if (more > SIZE_MAX / size - n)
        return -1;
    if (n + more <= *room)
        return 0;
    while (want < n + more)
        want = want > SIZE_MAX / size / 2 ? n + more : want * 2;
    grown = reallocarray(*at, want, size);
    if (!grown)
        return -1;
    *at = grown;
    *room = want;
    return 0;
}
