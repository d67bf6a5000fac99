/* Source lines of code files, from the line tables of their DWARF: in the file itself or in its separate
 * debug file (found as the symbol tables are: decoder/image/symbols.h). */
#ifndef ST_DECODER_DWARF_LINES_H
#define ST_DECODER_DWARF_LINES_H

#include "decoder/image/image.h"

struct dec_line_query {
    struct dec_image *image; /* NULL: there is no answer */

    uint64_t address; /* decoder/image/symbols.h says in which addresses */

    bool inlined; /* the functions are wanted too whose code the compiler inlined there */
};

/* The line that the code of a query's address was made from. The strings live for the call and may hold any
 * byte (base/safetext.h). */
struct dec_line {
    size_t query; /* its number */

    /* 0: innermost. With `inlined` each function that was inlined is a level, and the one that stands
     * around them the last: its line is that of the call. */
    int level;

    const char *function; /* that was inlined; "": the one that has the code, or its name is not told */

    const char *file; /* as the compiler was told, behind its folder where it is relative */

    int line;
};

/* Non-zero ends it. */
typedef int dec_line_fn(void *ctx, const struct dec_line *line);

/* Tells of each query that has an answer, in their order. Where any of the images has line tables, a child
 * process reads them, a compilation unit at a time: libdw ends the process when memory runs out, and tables
 * that are damaged on purpose may do worse. Whatever ends the child (it has half a minute), the lines that
 * are not told of are unknown. Returns 0 or what fn returned. Not for processes with other threads, but
 * that of base/progress.h. */
int dec_lines(const struct dec_line_query *queries, size_t n, dec_line_fn *fn, void *ctx);

#endif
