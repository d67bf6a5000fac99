/* "Did you mean": the known word nearest to a mistyped one. */
#ifndef ST_BASE_NEAREST_H
#define ST_BASE_NEAREST_H

#include <stddef.h>

/* The word of words[0..n) with the least edit distance (insert, delete, replace, swap of neighbours) to the
 * first len bytes of text, or NULL when none is within a third of the length (at least 1, at most 3). Case is
 * folded. */
const char *st_nearest(const char *text, size_t len, const char *const *words, size_t n);

#endif
