/* libFuzzer: any bytes as a code file with DWARF: what the processes that read it tell of lines and of
 * inlined functions. They may end as they like; what they tell must make sense, and the decoder goes on. */
#include "fuzz.h"

#include "base/log.h"
#include "decoder/dwarf/inlines.h"
#include "decoder/dwarf/lines.h"

enum { QUERIES = 12 };

static volatile size_t sink;

static int open_bytes(void *ctx, const char *path)
{
    (void)path;
    return dup(*(int *)ctx);
}

static int take_line(void *ctx, const struct dec_line *line)
{
    (void)ctx;
    fuzz_must(line->query < QUERIES && line->line > 0 && line->file[0]);
    sink += strlen(line->file) + strlen(line->function);
    return 0;
}

static void check_tree(const struct dec_inline_tree *tree)
{
    for (size_t i = 0; i < tree->nnodes; i++) {
        fuzz_must(tree->nodes[i].parent == DEC_NO_INLINE || tree->nodes[i].parent < i);
        sink += strlen(tree->nodes[i].name) + strlen(tree->nodes[i].file);
    }
    for (size_t i = 0; i < tree->nspans; i++) {
        fuzz_must(tree->spans[i].start < tree->spans[i].end && tree->spans[i].node < tree->nnodes);
        fuzz_must(!i || tree->spans[i].start >= tree->spans[i - 1].end);
    }
}

static void ask(struct dec_images *images, struct dec_image *image, uint64_t base)
{
    struct dec_line_query queries[QUERIES];
    struct dec_inlines *inlines;

    for (size_t i = 0; i < QUERIES; i++)
        queries[i] = (struct dec_line_query){image, base + 9 * i, base & 1};
    dec_lines(queries, QUERIES, take_line, NULL);
    if (dec_inlines_open(images, &inlines, NULL))
        return;
    for (size_t i = 0; i < QUERIES; i++) {
        const struct dec_inline_tree *tree = dec_inlines_tree(inlines, image, queries[i].address);

        if (tree)
            check_tree(tree);
    }
    dec_inlines_close(inlines);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    st_log_level(ST_LOG_QUIET);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = fuzz_file(data, size);
    const struct dec_images_options options = {.open = open_bytes, .open_ctx = &fd};
    const struct dec_image_id id = {.path = "/fuzz", .pid = 1};
    struct dec_images *images;
    struct dec_image *image;

    if (dec_images_new(&options, &images, NULL) == 0) {
        if (dec_images_get(images, &id, &image, NULL) == 0)
            ask(images, image, 0x1000 + size % 512);
        dec_images_free(images);
    }
    close(fd);
    return 0;
}
