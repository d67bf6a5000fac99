/* The DWARF of a code file, its own or its separate debug file's, as a child process of the decoder reads it:
 * libdw ends the process when memory runs out, and tables that are damaged on purpose may do worse. */
#ifndef ST_DECODER_DWARF_DEBUG_TABLES_H
#define ST_DECODER_DWARF_DEBUG_TABLES_H

#include "base/vec.h"
#include "decoder/image/image_impl.h"

#include <elfutils/libdw.h>

/* Code of a compilation unit. */
struct unit_range {
    uint64_t start, end;

    Dwarf_Off unit; /* of its DIE */
};

struct image_lines {
    int fd; /* of the separate debug file; -1: none */

    struct dec_elf elf;

    bool open; /* elf is */

    Dwarf *dwarf; /* NULL: there is none */

    uint64_t shift; /* its addresses -> those of the image */

    ST_VEC(struct unit_range) ranges; /* ascending */
};

/* The tables of a file, opened at the first call; NULL, or its `dwarf` is: there are none. Kept until the
 * process ends. */
struct image_lines *debug_tables_of(struct image_file *file);

/* The code that holds an address (of the tables' own); NULL: none. */
const struct unit_range *debug_unit_at(const struct image_lines *lines, uint64_t address);

/* Whether the file may have tables, or a debug file: cheap, and fit for the decoder's own process. */
bool debug_may_have(const struct image_file *file);

/* Whether the compressed sections of a file take no more memory than such sections do: libdw opens all of
 * them. Where not, a warning names the first one. */
bool debug_is_affordable(const struct dec_elf *elf, const char *path);

/* What the child does first: it ends with its parent, on any signal, and leaves nothing behind. */
void debug_be_child(void);

#endif
