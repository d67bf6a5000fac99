/* Source lines of code files, from the line tables of their DWARF: in the file itself or in its separate
 * debug file (found as the symbol tables are: decoder/symbols.h). */
#ifndef ST_DECODER_LINES_H
#define ST_DECODER_LINES_H

#include "decoder/image.h"

struct dec_line_query {
    struct dec_image *image; /* NULL: there is no answer */

    uint64_t address; /* symbols.h says in which addresses */
};

/* The line that the code at the address of query number `query` was made from. file: as the compiler was
 * told, behind its folder where it is relative; it may hold any byte (base/safetext.h) and lives for the
 * call. Non-zero ends it. */
typedef int dec_line_fn(void *ctx, size_t query, const char *file, int line);

/* Tells of each query that has an answer, in their order. Where any of the images has line tables, a child
 * process reads them, a compilation unit at a time: libdw ends the process when memory runs out, and tables
 * that are damaged on purpose may do worse. Whatever ends the child (it has half a minute), the lines that
 * are not told of are unknown. Returns 0 or what fn returned. Not for processes with other threads. */
int dec_lines(const struct dec_line_query *queries, size_t n, dec_line_fn *fn, void *ctx);

#endif
