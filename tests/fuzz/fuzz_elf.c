/* libFuzzer: any bytes as a code file: its segments, symbols, PLT, unwind table, build id, links and mangled
 * names. */
#include "decoder/elf.h"
#include "decoder/symbols.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_tables(data, size);
    read_image(data, size);
    if (size < 4096)
        demangle(data, size);
    return 0;
}
