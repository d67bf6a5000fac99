/* libipt's instruction decoder over raw trace with images: the reference that other walks are compared to.
 * Prints a line a taken branch, "FROM TO", a line "error TEXT" an error, and at the end the counts as JSON.
 * usage: insn_walk TRACE LIST FAMILY/MODEL/STEPPING [32|64]    LIST: a line FILE OFFSET SIZE ADDRESS an image
 */
#include <intel-pt.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    struct pt_insn_decoder *decoder;

    struct pt_insn last; /* the instruction before; none at the beginning of a continuous piece */

    bool has_last;

    enum pt_exec_mode mode; /* where the trace does not say */

    uint64_t instructions, errors, classes[ptic_ptwrite + 1];
};

static _Noreturn void die(const char *what, const char *of, int code)
{
    fprintf(stderr, "insn_walk: %s %s: %s\n", what, of, code < 0 ? pt_errstr(pt_errcode(code)) : "");
    exit(2);
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    uint8_t *bytes;
    if (!in || fseek(in, 0, SEEK_END))
        die("cannot read", path, 0);
    *size = (size_t)ftell(in);
    rewind(in);
    bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, in) != *size)
        die("cannot read", path, 0);
    fclose(in);
    return bytes;
}

static void add_images(const char *list, struct pt_image *image, struct pt_image_section_cache *cache)
{
    char file[4096];
    uint64_t offset, size, address;
    FILE *in = fopen(list, "r");
    if (!in)
        die("cannot read", list, 0);
    while (fscanf(in, "%4095s %" SCNi64 " %" SCNi64 " %" SCNi64, file, &offset, &size, &address) == 4) {
        int isid = pt_iscache_add_file(cache, file, offset, size, address);
        int code = isid < 0 ? isid : pt_image_add_cached(image, cache, isid, NULL);
        if (code < 0)
            die("cannot use the image", file, code);
    }
    fclose(in);
}

static bool is_branch(enum pt_insn_class class)
{
    return class != ptic_other && class != ptic_ptwrite && class != ptic_error;
}

/* What the instruction before did, now that the next one is known. */
static void put_branch(struct walk *w, uint64_t next)
{
    const struct pt_insn *last = &w->last;
    if (!w->has_last)
        return;
    w->has_last = false;
    if (is_branch(last->iclass) && (last->iclass != ptic_cond_jump || next != last->ip + last->size))
        printf("%" PRIx64 " %" PRIx64 "\n", last->ip, next);
}

static void take_event(struct walk *w, const struct pt_event *event)
{
    if (event->type == ptev_enabled || event->type == ptev_overflow) {
        w->has_last = false;
    } else if (event->type == ptev_async_branch) {
        put_branch(w, event->variant.async_branch.from);
        printf("%" PRIx64 " %" PRIx64 "\n", event->variant.async_branch.from, event->variant.async_branch.to);
    } else if (event->type == ptev_async_disabled) {
        put_branch(w, event->variant.async_disabled.at);
    }
}

static int drain_events(struct walk *w, int status)
{
    struct pt_event event;
    while (status >= 0 && (status & pts_event_pending)) {
        status = pt_insn_event(w->decoder, &event, sizeof(event));
        if (status >= 0)
            take_event(w, &event);
    }
    return status;
}

static void take_instruction(struct walk *w, const struct pt_insn *insn)
{
    put_branch(w, insn->ip);
    w->last = *insn;
    w->has_last = true;
    w->instructions++;
    w->classes[insn->iclass]++;
}

/* From one synchronisation to the next error. */
static int walk_piece(struct walk *w, int status)
{
    struct pt_insn insn;
    w->has_last = false;
    while (status >= 0) {
        status = drain_events(w, status);
        if (status < 0 || (status & pts_eos))
            break;
        memset(&insn, 0, sizeof(insn));
        insn.mode = w->mode;
        status = pt_insn_next(w->decoder, &insn, sizeof(insn));
        if (status >= 0)
            take_instruction(w, &insn);
        else if (status == -pte_nomap && insn.ip)
            put_branch(w, insn.ip); /* it led to where there is no image */
    }
    return status;
}

static void walk(struct walk *w)
{
    int status = pt_insn_sync_forward(w->decoder);
    while (status != -pte_eos) {
        status = walk_piece(w, status);
        if (status >= 0 || status == -pte_eos)
            break;
        w->errors++;
        printf("error %s\n", pt_errstr(pt_errcode(status)));
        status = pt_insn_sync_forward(w->decoder);
    }
}

static void put_counts(const struct walk *w)
{
    const uint64_t *c = w->classes;
    printf("{\"instructions\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"cond_jump\":%" PRIu64 ",\"jump\":%" PRIu64
           ",\"call\":%" PRIu64 ",\"return\":%" PRIu64 ",\"far_call\":%" PRIu64 ",\"far_return\":%" PRIu64
           ",\"far_jump\":%" PRIu64 "}\n",
           w->instructions, w->errors, c[ptic_cond_jump], c[ptic_jump], c[ptic_call], c[ptic_return],
           c[ptic_far_call], c[ptic_far_return], c[ptic_far_jump]);
}

static void configure(struct pt_config *config, const char *cpu)
{
    unsigned family, model, stepping;
    int code;
    if (sscanf(cpu, "%u/%u/%u", &family, &model, &stepping) != 3)
        die("what CPU is", cpu, 0);
    config->cpu = (struct pt_cpu){pcv_intel, (uint16_t)family, (uint8_t)model, (uint8_t)stepping};
    code = pt_cpu_errata(&config->errata, &config->cpu);
    if (code < 0 && code != -pte_bad_cpu)
        die("errata of", cpu, code);
}

int main(int argc, char **argv)
{
    struct walk w = {.mode = argc > 4 && !strcmp(argv[4], "32") ? ptem_32bit : ptem_64bit};
    struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
    struct pt_image *image = pt_image_alloc(NULL);
    struct pt_config config;
    size_t size;
    if (argc < 4 || !cache || !image)
        return 2;
    pt_config_init(&config);
    config.begin = read_file(argv[1], &size);
    config.end = config.begin + size;
    configure(&config, argv[3]);
    add_images(argv[2], image, cache);
    w.decoder = pt_insn_alloc_decoder(&config);
    if (!w.decoder || pt_insn_set_image(w.decoder, image) < 0)
        die("no decoder for", argv[1], 0);
    walk(&w);
    put_counts(&w);
    pt_insn_free_decoder(w.decoder);
    pt_image_free(image);
    pt_iscache_free(cache);
    free(config.begin);
    return ferror(stdout) ? 1 : 0;
}
