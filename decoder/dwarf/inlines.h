/* Functions that the compiler inlined: which of them holds an address, from the DWARF of code files
 * (decoder/dwarf/debug_tables.h). A child process reads it, a function at a time as it is asked for. */
#ifndef ST_DECODER_DWARF_INLINES_H
#define ST_DECODER_DWARF_INLINES_H

#include "decoder/image/image.h"

#define DEC_NO_INLINE UINT32_MAX

/* A place where a function was inlined (DW_TAG_inlined_subroutine). */
struct dec_inline_node {
    uint32_t parent; /* that it was inlined in; DEC_NO_INLINE: the function that has the code */

    uint32_t depth; /* 0: of the outermost */

    const char *name; /* demangled, without parameters; may hold any byte */

    const char *file; /* where it is declared; "": not told */

    int line;

    uint32_t symbol; /* for the user of the tree; DEC_NO_INLINE at first */
};

struct dec_inline_span {
    uint64_t start, end; /* [start, end), in the image's own addresses (decoder/image/symbols.h) */

    uint32_t node; /* the innermost one */
};

struct dec_inline_run;

/* All that was inlined in one function, its split-off parts included. */
struct dec_inline_tree {
    struct dec_inline_node *nodes; /* parents before their children */

    size_t nnodes;

    struct dec_inline_span *spans; /* ascending, disjoint */

    size_t nspans;

    struct dec_inline_run *runs; /* inline_runs.c */

    char *strings;
};

struct dec_inlines;

/* Starts the child, which knows the images that the store has now; it stays the caller's and must live
 * longer. Not for processes with other threads (but that of
 * base/progress.h). ST_ENOMEM; ST_EFAIL: there is no child to be had. */
int dec_inlines_open(struct dec_images *images, struct dec_inlines **inlines, struct st_error *err);

/* Ends the child. NULL is allowed. The trees are gone. */
void dec_inlines_close(struct dec_inlines *inlines);

/* What was inlined in the function that has the code at an address of an image. NULL: nothing, or nothing
 * tells. Parts of one function have one tree. When the child ended (it has half a minute for an answer),
 * nothing tells any more. */
struct dec_inline_tree *dec_inlines_tree(struct dec_inlines *inlines, struct dec_image *image,
                                         uint64_t address);

/* The span that holds an address, or the first one behind it; NULL: none. */
const struct dec_inline_span *dec_inline_span_from(const struct dec_inline_tree *tree, uint64_t address);

/* The innermost node whose code an address is; DEC_NO_INLINE: none. */
uint32_t dec_inline_at(const struct dec_inline_tree *tree, uint64_t address);

/* Images that were asked for and have no DWARF. */
size_t dec_inlines_without(const struct dec_inlines *inlines);
const struct dec_image *dec_inlines_without_at(const struct dec_inlines *inlines, size_t index);

/* Whether the child ended before its time. */
bool dec_inlines_broke(const struct dec_inlines *inlines);

/* ---- between inlines.c and its child, inlines_read.c: a question, an answer with its parts behind it ----
 */

enum {
    DEC_INLINE_NODES = 8192,
    DEC_INLINE_SPANS = 8192,
    DEC_INLINE_STRINGS = 1 << 20,
    DEC_INLINE_DEPTH = 256
};

struct dec_inline_question {
    const struct dec_image *image;

    uint64_t address;
};

struct dec_inline_answer {
    uint64_t function; /* which it is, of the image's; 0: none is there */

    uint32_t nodes, spans, strings; /* of the last, bytes; none: nothing is inlined in it */

    uint32_t has_dwarf;
};

struct dec_inline_told {
    uint32_t parent, name, file; /* the last two: where in the strings */

    int32_t line;
};

/* The child: answers until the other end is closed. Returns then. */
void dec_inlines_serve(struct dec_images *images, int fd);

/* Makes a tree of an answer's parts: `spans` may overlap, later ones and those of later nodes lie within.
 * What makes no sense (parents behind their children, strings that do not end) makes NULL, as does no memory.
 * strings: malloc'd, taken over. */
struct dec_inline_tree *dec_inline_tree_new(const struct dec_inline_told *nodes, size_t nnodes,
                                            const struct dec_inline_span *spans, size_t nspans, char *strings,
                                            size_t nstrings);
void dec_inline_tree_free(struct dec_inline_tree *tree);

/* What is remembered of runs (inline_runs.c). */
void dec_inline_runs_free(struct dec_inline_tree *tree);

#endif
