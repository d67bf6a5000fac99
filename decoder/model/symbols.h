/* Symbols and modules of the database, and the functions that the stack builder asks for. */
#ifndef ST_DECODER_MODEL_SYMBOLS_H
#define ST_DECODER_MODEL_SYMBOLS_H

#include "base/vec.h"
#include "decoder/callstack/stack.h"
#include "decoder/image/space.h"

struct dec_module_row {
    const char *name, *path; /* owned by the images, or static */

    char build_id[2 * DEC_BUILD_ID_MAX + 1]; /* "": none */

    bool kernel;
};

struct dec_symbol_row {
    uint32_t module; /* index */

    const char *name; /* owned by the images, the side-band, or static */

    uint64_t address, size; /* in the module's own addresses */

    struct dec_image *image; /* NULL: of none, or inlined */

    const char *file; /* inlined: where it is declared; else NULL */

    int line;
};

struct dec_symbols;

/* ST_ENOMEM. */
int dec_symbols_new(struct dec_symbols **symbols, struct st_error *err);
void dec_symbols_free(struct dec_symbols *symbols);

/* The functions that one thread was told of late. Several threads may ask, each by a view of its own. */
struct dec_symbols_view;

/* ST_ENOMEM. */
int dec_symbols_view_new(struct dec_symbols *s, struct dec_symbols_view **view, struct st_error *err);
void dec_symbols_view_free(struct dec_symbols_view *view);

/* That of the thread that asks without one; it stays with `s`. */
struct dec_symbols_view *dec_symbols_own(struct dec_symbols *s);

/* The function at an address of a space at a time; NULL: no memory. Its `symbol` is an index into the rows,
 * whose order depends on which thread asked first. */
const struct dec_function *dec_symbols_function_by(struct dec_symbols_view *view,
                                                   const struct dec_space *space, uint64_t time,
                                                   uint64_t address);
const struct dec_function *dec_symbols_function(struct dec_symbols *s, const struct dec_space *space,
                                                uint64_t time, uint64_t address);

/* From here on dec_symbols_function() tells what was inlined in functions. Stays the caller's, and must
 * live as long as `s`. */
void dec_symbols_set_inlines(struct dec_symbols *s, struct dec_inlines *inlines);

/* A function that was inlined; UINT32_MAX: no memory. One of the same name, module and place in the
 * source is the same symbol. */
uint32_t dec_symbols_inlined(struct dec_symbols *s, const struct dec_function *function, uint32_t node);

/* The symbol's index; UINT32_MAX: no memory. */
uint32_t dec_symbols_pseudo(struct dec_symbols *s, enum dec_pseudo pseudo);

/* A kernel function by its name, "name" or "name [module]" (the string must live as long as `s`). UINT32_MAX:
 * no memory. */
uint32_t dec_symbols_kernel(struct dec_symbols *s, const char *name, uint64_t start);

size_t dec_symbols_count(const struct dec_symbols *s);
const struct dec_symbol_row *dec_symbols_at(const struct dec_symbols *s, size_t index);

size_t dec_modules_count(const struct dec_symbols *s);
const struct dec_module_row *dec_modules_at(const struct dec_symbols *s, size_t index);

/* The name that the family of a symbol has: "foo" for "foo.cold" and "foo [clone .cold]". Returns its length
 * within `name`. */
size_t dec_family_length(const char *name);

/* What a function is by its name. */
enum dec_role dec_role_of(const char *name, bool kernel);

#endif
