/* Names of code: .symtab or .dynsym, the table that Go programs have beside them, PLT entries, separate debug
 * files, and symbols that the caller adds (kallsyms, JIT maps).
 *
 * Which name an address has:
 *   1. the symbol that holds it; of nested ones the innermost (the highest start). Of several that start at
 * the same address one is kept: one with a size over one without, strong over weak, global over local, fewer
 * leading underscores, then the longer name, then the first in the table (the rules by which perf chooses). A
 * symbol without a size reaches to the next symbol or the end of its section;
 *   2. a PLT entry: "name@plt", taken from the GOT slot that the entry jumps through and the relocation of
 * that slot;
 *   3. a function that the unwind table (.eh_frame_hdr) knows and no symbol names: "[libfoo.so+0x1234]", its
 * start address in the file's own addresses (as objdump shows them);
 *   4. else the whole hole between the neighbours of 1 to 3 within its section: the same form, with the start
 * of the hole;
 *   5. outside every section (or a file that is no ELF): "[name]", one for the whole image.
 * Names are demangled (C++ and Rust) without parameter lists, as perf shows them, and without symbol
 * versions. They may hold any byte: base/safetext.h. */
#ifndef ST_DECODER_IMAGE_SYMBOLS_H
#define ST_DECODER_IMAGE_SYMBOLS_H

#include "decoder/image/image.h"

enum dec_symbol_flag {
    DEC_SYM_PLT = 1,
    DEC_SYM_MADE_UP = 2, /* a placeholder: cases 3 to 5 */
};

/* Owned by the image. The pointer is the symbol's identity: the same address gives the same pointer. */
struct dec_symbol {
    const char *name;

    uint64_t start; /* in the image's own addresses (ELF: virtual addresses of the file; else file offsets) */

    uint64_t size;

    struct dec_image *image;

    const char
        *module; /* "[sch_netem]": of the kernel's modules that share one image whose it is; NULL: none's */

    uint32_t flags;

    int64_t tag; /* for the user of the symbol (a database id); 0 at first */
};

/* The symbol at an address of the image. Never NULL: without memory it is the image's "[name]". Loads the
 * tables at the first call; a broken table is as if it were not there. */
struct dec_symbol *dec_image_symbol(struct dec_image *image, uint64_t address);

/* File offset -> the image's own address (through PT_LOAD; for a non-ELF the offset itself). */
uint64_t dec_image_address(struct dec_image *image, uint64_t offset);

/* Adds a symbol from elsewhere, named as it is; before the first dec_image_symbol of that image or between
 * two. size 0: up to the next one; module: dec_symbol's, copied. ST_ENOMEM. */
int dec_image_add_symbol(struct dec_image *image, uint64_t start, uint64_t size, const char *name,
                         const char *module, struct st_error *err);

/* The readable form of a mangled C++ or Rust name as a malloc'd string; NULL when it is not mangled or memory
 * ran out. */
char *dec_demangle(const char *name);

#endif
