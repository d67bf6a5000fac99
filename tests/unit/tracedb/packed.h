/* Arrays of calls, packed as the writer takes them; freed at the end of the program. */
#ifndef TESTS_UNIT_TRACEDB_PACKED_H
#define TESTS_UNIT_TRACEDB_PACKED_H

#include "tracedb/calls.h"

#include <stdlib.h>

static ST_VEC(struct tdb_calls *) packed;

static void free_packed(void)
{
    for (size_t i = 0; i < packed.n; i++) {
        tdb_calls_free(packed.at[i]);
        free(packed.at[i]);
    }
    st_vec_free(&packed);
}

/* NULL: no memory. */
static const struct tdb_calls *pack(const struct tdb_span *spans, const struct tdb_work *work, size_t n)
{
    struct tdb_calls *calls = calloc(1, sizeof(*calls));

    if (!packed.n)
        atexit(free_packed);
    if (!calls || st_vec_push(&packed, calls) || tdb_calls_add(calls, spans, work, n, NULL))
        return NULL;
    return calls;
}

#endif
