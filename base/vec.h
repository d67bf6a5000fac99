/* A growable array of any type: ST_VEC(struct foo) list = {0}; st_vec_push(&list, foo); list.at[i];
 * st_vec_free(&list). */
#ifndef ST_BASE_VEC_H
#define ST_BASE_VEC_H

#include <stddef.h>

#define ST_VEC(type)                                                                                         \
    struct {                                                                                                 \
        type *at;                                                                                            \
        size_t n;                                                                                            \
        size_t room;                                                                                         \
    }

/* Makes room for `more` further elements of `size` bytes behind n. Returns 0, or -1 when memory ran out or
 * the count would overflow; the array is then as it was. */
int st_vec_reserve_raw(void **at, size_t *room, size_t n, size_t more, size_t size);

/* 0, or -1 with the vector as it was. */
#define st_vec_reserve(v, more)                                                                              \
    st_vec_reserve_raw((void **)&(v)->at, &(v)->room, (v)->n, (more), sizeof(*(v)->at))

/* 0, or -1 with the vector as it was and the item not taken over. The item may be a compound literal. */
#define st_vec_push(v, ...) (st_vec_reserve((v), 1) ? -1 : ((v)->at[(v)->n++] = (__VA_ARGS__), 0))

#define st_vec_free(v)                                                                                       \
    do {                                                                                                     \
        free((v)->at);                                                                                       \
        (v)->at = NULL;                                                                                      \
        (v)->n = (v)->room = 0;                                                                              \
    } while (0)

#endif
