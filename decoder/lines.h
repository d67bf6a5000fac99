/* Source lines of code files, from the line tables of their DWARF: in the file itself or in its separate
 * debug file (found as the symbol tables are: decoder/symbols.h). */
#ifndef ST_DECODER_LINES_H
#define ST_DECODER_LINES_H

#include "decoder/image.h"

struct dec_line {
    const char *file; /* as the compiler was told, behind its folder where it is relative; owned by the image.
                         May hold any byte: base/safetext.h */

    int line;
};

/* The line that the code at an address of the image (symbols.h says in which addresses) was made from. The
 * tables are opened at the first call and read a compilation unit at a time. False: not known; files without
 * DWARF, broken tables and a lack of memory are no errors. */
bool dec_image_line(struct dec_image *image, uint64_t address, struct dec_line *line);

#endif
