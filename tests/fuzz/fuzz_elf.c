/* libFuzzer: any bytes as a code file: its segments, symbols, PLT, unwind table, build id, links and mangled
 * names; and as what the process that reads DWARF says about inlined functions. */
#include "decoder/dwarf/inline_runs.h"
#include "decoder/image/elf.h"
#include "decoder/image/symbols.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static int take_symbol(void *ctx, const struct dec_elf_symbol *symbol)
{
    size_t *n = ctx;
    sink += strlen(symbol->name);
    return ++*n > 100000;
}

static void read_tables(const uint8_t *data, size_t size)
{
    struct dec_elf elf;
    dec_elf_ranges ranges = {0};
    dec_elf_addresses starts = {0};
    uint32_t crc;
    size_t n = 0;
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, data, size);
    if (dec_elf_open_bytes(copy, size, &elf) == 0) {
        dec_elf_segments(&elf, &ranges);
        dec_elf_code_sections(&elf, &ranges);
        dec_elf_unwind_starts(&elf, &starts);
        dec_elf_symbols(&elf, take_symbol, &n, NULL);
        dec_elf_go(&elf, take_symbol, &n);
        dec_elf_plt(&elf, take_symbol, &n);
        const char *link = dec_elf_debuglink(&elf, &crc);
        sink += link ? strlen(link) : 0;
        dec_elf_close(&elf);
    }
    st_vec_free(&ranges);
    st_vec_free(&starts);
    free(copy);
}

/* As a whole: what the decoder asks of an image. */
static void read_image(const uint8_t *data, size_t size)
{
    struct dec_images *images;
    struct dec_image *image;
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, data, size);
    if (dec_images_new(NULL, &images, NULL)) {
        free(copy);
        return;
    }
    if (dec_images_add_bytes(images, "fuzz", copy, size, &image, NULL) == 0) {
        for (uint64_t address = 0; address < 0x8000; address += 0x35)
            sink += strlen(dec_image_symbol(image, dec_image_address(image, address))->name);
        sink += strlen(dec_image_symbol(image, UINT64_MAX)->name);
    }
    dec_images_free(images);
}

static void demangle(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 3);
    memcpy(name, "_Z", 2);
    memcpy(name + 2, data, size);
    name[size + 2] = '\0';
    free(dec_demangle(name));
    name[1] = 'R';
    free(dec_demangle(name));
    free(name);
}

struct bytes {
    const uint8_t *at, *end;
};

static unsigned take(struct bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

static unsigned length_of(void *ctx, uint64_t address)
{
    const struct bytes *b = ctx;
    size_t n = (size_t)(b->end - b->at);
    return n ? b->at[address % n] & 15 : 0;
}

static void run_through(struct dec_inline_tree *tree, struct bytes *b)
{
    for (int i = 0; i < 8; i++) {
        struct dec_inline_pieces pieces;
        uint64_t start = take(b), end = take(b) * 4;
        uint32_t before = take(b);
        if (before >= tree->nnodes)
            before = DEC_NO_INLINE;
        if (dec_inline_pieces_of(tree, start, end, before, length_of, b, &pieces))
            continue;
        for (uint32_t k = 0; k < pieces.n; k++) {
            if (pieces.at[k].node != DEC_NO_INLINE && pieces.at[k].node >= tree->nnodes)
                abort();
            if (k ? pieces.at[k].node == pieces.at[k - 1].node || pieces.at[k].at <= pieces.at[k - 1].at
                  : pieces.at[k].at != 0)
                abort();
        }
    }
}

/* Numbers are kept small, so that some make sense; one in some does not. */
static void build_tree(const uint8_t *data, size_t size)
{
    struct bytes b = {data, data + size};
    struct dec_inline_told nodes[32];
    struct dec_inline_span spans[32];
    size_t nnodes = take(&b) % 33, nspans = take(&b) % 33, nstrings = take(&b) % 33;
    char *strings = calloc(nstrings + 1, 1);
    struct dec_inline_tree *tree;
    for (size_t i = 0; i < nnodes; i++) {
        unsigned parent = take(&b), name = take(&b);
        nodes[i] = (struct dec_inline_told){parent < 128 ? parent % (unsigned)(i + 1) : DEC_NO_INLINE,
                                            name & 31, name >> 5, (int32_t)name};
        if (parent < 128 && parent % (i + 1) == i && parent & 1)
            nodes[i].parent = DEC_NO_INLINE;
    }
    for (size_t i = 0; i < nspans; i++) {
        unsigned start = take(&b);
        spans[i] =
            (struct dec_inline_span){start, start + 1 + take(&b) % 64, (uint32_t)(i * nnodes / nspans)};
        if (start == 255)
            spans[i].end = UINT64_MAX;
    }
    for (size_t i = 0; i + 1 < nstrings; i++)
        strings[i] = (char)take(&b);
    tree = dec_inline_tree_new(nodes, nnodes, spans, nspans, strings, nstrings);
    if (!tree)
        return;
    for (uint64_t address = 0; address < 400; address += 7) {
        uint32_t node = dec_inline_at(tree, address);
        sink += node == DEC_NO_INLINE ? 0 : strlen(tree->nodes[node].name);
    }
    run_through(tree, &b);
    dec_inline_tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    build_tree(data, size);
    read_tables(data, size);
    read_image(data, size);
    if (size < 4096)
        demangle(data, size);
    return 0;
}
