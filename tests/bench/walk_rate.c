/* walk_rate NAME FOLDER ROUNDS [MIB] [OPTION VALUE]...: how long a raw trace takes libipt's block decoder,
 * with an image section cache, and our walk: one line "NAME LIBIPT COUNTS EVENTS RATIO SLOW STRETCHES TAKEN",
 * where the first three are seconds of processor time, each the least of ROUNDS.
 *
 * FOLDER has trace.pt and images.list; the trace is repeated to MIB (16), its TSC packets moved on each time.
 * OPTION is one of decode's for raw input. EVENTS: with their times, as the stack builder takes them, by one
 * thread. SLOW of the STRETCHES, from PSB to PSB, were left to libipt's query decoder. */
#include "decoder/cmd/raw.h"
#include "decoder/pt/fast_packet.h"
#include "decoder/pt/pieces.h"

#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
    struct dec_raw raw;

    struct dec_raw_result opened;

    uint8_t *bytes;

    size_t size;

    uint64_t sum; /* of the events: the work of a reader */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "walk_rate: %s: %s\n", what, why);
    exit(1);
}

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 26);
    if (!file || !bytes)
        die(path, "it cannot be read");
    *size = fread(bytes, 1, 1 << 26, file);
    fclose(file);
    return bytes;
}

/* Adds to each TSC packet. Returns the span of those there are. */
static uint64_t move_times(uint8_t *bytes, size_t size, uint64_t ticks)
{
    uint64_t first = 0, last = 0;
    for (size_t at = pt_find_psb(bytes, size, 0); at < size;) {
        size_t n = packet_size(bytes + at, bytes + size);
        if (n && bytes[at] == PACKET_TSC) {
            uint64_t tsc = packet_number(bytes + at + 1, 7) + ticks;
            memcpy(bytes + at + 1, &tsc, 7);
            first = first ? first : tsc;
            last = tsc;
        }
        at = n ? at + n : pt_find_psb(bytes, size, at + 1);
    }
    return last - first;
}

static void repeat(struct bench *b, const char *path, size_t most)
{
    size_t size;
    uint8_t *once = read_file(path, &size);
    size_t times = size < most ? most / size : 1;
    /* Crystal ticks that a TMA packet does not show, at any ratio there is. */
    uint64_t step = move_times(once, size, 0) + ((uint64_t)1 << 30);
    b->size = times * size;
    b->bytes = malloc(b->size);
    if (!b->bytes)
        die(path, "no memory");
    for (size_t i = 0; i < times; i++) {
        memcpy(b->bytes + i * size, once, size);
        move_times(b->bytes + i * size, size, i * step);
    }
    free(once);
}

static int on_blocks(struct pt_block_decoder *decoder, int status, uint64_t *instructions)
{
    struct pt_block block = {0};
    struct pt_event event;
    uint64_t last = 0, offset = 1;
    for (uint64_t i = 1;; i++) {
        if (i % 1024 == 0) { /* it may go round for ever behind a retpoline */
            pt_blk_get_offset(decoder, &offset);
            if (offset == last)
                return -pte_bad_query;
            last = offset;
        }
        while (status & pts_event_pending) {
            status = pt_blk_event(decoder, &event, sizeof(event));
            if (status < 0)
                return status;
        }
        status = pt_blk_next(decoder, &block, sizeof(block));
        *instructions += block.ninsn;
        if (status < 0)
            return status;
    }
}

static double by_libipt(const struct bench *b)
{
    struct pt_image_section_cache *cache = pt_iscache_alloc("bench");
    struct pt_image *image = pt_image_alloc("bench");
    const struct dec_pt_config *from = &b->raw.config;
    struct pt_config config;
    uint64_t instructions = 0;
    pt_config_init(&config);
    config.begin = b->bytes;
    config.end = b->bytes + b->size;
    config.mtc_freq = from->mtc_freq;
    config.nom_freq = from->nom_freq;
    config.cpuid_0x15_eax = from->cpuid15_eax;
    config.cpuid_0x15_ebx = from->cpuid15_ebx;
    config.flags.variant.block.end_on_call = 1;
    config.flags.variant.block.end_on_jump = 1;
    config.cpu =
        (struct pt_cpu){from->family ? pcv_intel : pcv_unknown, from->family, from->model, from->stepping};
    if (from->family && pt_cpu_errata(&config.errata, &config.cpu) < 0)
        memset(&config.errata, 0, sizeof(config.errata));
    for (size_t i = 0; i < b->raw.images.n; i++) {
        const struct dec_raw_image *raw = &b->raw.images.at[i];
        int isid = pt_iscache_add_file(cache, raw->file, raw->offset, raw->size, raw->address);
        if (isid < 0 || pt_image_add_cached(image, cache, isid, NULL) < 0)
            die(raw->file, "libipt does not take it");
    }
    struct pt_block_decoder *decoder = pt_blk_alloc_decoder(&config);
    if (!decoder || pt_blk_set_image(decoder, image) < 0)
        die("libipt's block decoder", "it does not start");
    double begin = processor_time();
    for (int status; (status = pt_blk_sync_forward(decoder)) >= 0;)
        on_blocks(decoder, status, &instructions);
    double took = processor_time() - begin;
    pt_blk_free_decoder(decoder);
    pt_image_free(image);
    pt_iscache_free(cache);
    return took;
}

static int where(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    const struct bench *b = ctx;
    (void)ring;
    (void)time;
    *where = (struct dec_where){.pid = 1, .tid = 1, .cpu = -1, .space = b->opened.space, .until = UINT64_MAX};
    return 0;
}

static int take(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    struct bench *b = ctx;
    (void)info;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        b->sum += events[i].time ^ events[i].to;
    return 0;
}

static double by_us(struct bench *b, bool events, struct dec_flow_counts *counts)
{
    struct dec_piece piece = {.bytes = b->bytes, .size = b->size};
    struct st_error err = {0};
    struct dec_flow_options options = {.config = b->raw.config,
                                       .threads = 1,
                                       .where = where,
                                       .where_ctx = b,
                                       .emit = events ? take : NULL,
                                       .emit_ctx = b,
                                       .terse = events};
    options.config.has_time = true;
    memset(counts, 0, sizeof(*counts));
    double begin = processor_time();
    if (dec_flow_run(&options, &piece, 1, counts, &err))
        die("our walk", err.text);
    return processor_time() - begin;
}

static void set_option(struct dec_raw *raw, const char *name, const char *value)
{
    static const struct {
        const char *name;

        int (*set)(void *to, const char *text, struct st_error *err);
    } options[] = {{"--cpu", dec_raw_cpu},           {"--mtc-freq", dec_raw_mtc_freq},
                   {"--nom-freq", dec_raw_nom_freq}, {"--cpuid15", dec_raw_cpuid15},
                   {"--time", dec_raw_time},         {"--bits", dec_raw_bits}};
    struct st_error err = {0};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (!strcmp(name, options[i].name)) {
            if (options[i].set(raw, value, &err))
                die(name, err.text);
            return;
        }
    }
    die(name, "there is no such option here");
}

static size_t stretches(const struct bench *b)
{
    size_t n = 0;
    for (size_t at = pt_find_psb(b->bytes, b->size, 0); at < b->size;
         at = pt_find_psb(b->bytes, b->size, at + 2))
        n++;
    return n;
}

static void keep_least(double *least, double seconds)
{
    if (!*least || seconds < *least)
        *least = seconds;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct dec_flow_counts counts;
    struct st_error err = {0};
    double libipt = 0, counting = 0, events = 0;
    char path[4096];
    int at = argc > 4 && argv[4][0] != '-' ? 5 : 4;
    if (argc < 4)
        die("usage", "walk_rate NAME FOLDER ROUNDS [MIB] [OPTION VALUE]...");
    for (int i = at; i + 1 < argc; i += 2)
        set_option(&b.raw, argv[i], argv[i + 1]);
    snprintf(path, sizeof(path), "%s/images.list", argv[2]);
    if (dec_raw_images(&b.raw, path, &err) || dec_raw_trace(&b.raw, "trace.pt", &err) ||
        dec_raw_open(&b.raw, &b.opened, &err))
        die(argv[2], err.text);
    snprintf(path, sizeof(path), "%s/trace.pt", argv[2]);
    repeat(&b, path, (size_t)(at == 5 ? atoi(argv[4]) : 16) << 20);
    for (int i = 0; i < atoi(argv[3]); i++) {
        keep_least(&libipt, by_libipt(&b));
        keep_least(&counting, by_us(&b, false, &counts));
        keep_least(&events, by_us(&b, true, &counts));
    }
    printf("%-16s %8.4f %8.4f %8.4f %6.2f %8" PRIu64 " %8zu %10" PRIu64 " %016" PRIx64 "\n", argv[1], libipt,
           counting, events, libipt / events, counts.slow, stretches(&b), counts.taken, b.sum);
    dec_raw_result_free(&b.opened);
    dec_raw_free(&b.raw);
    free(b.bytes);
    return 0;
}
