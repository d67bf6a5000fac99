/* How long libipt's block decoder takes for a perf.data, with an image section cache, how long our walk to
 * counts, and how long to events with their times, as the stack builder takes them, by one thread:
 * "SECONDS INSTRUCTIONS ERRORS" of each on stdout. usage: decode_rate PERF.DATA [BUILD-ID-FOLDER]
 *
 * Time is that of the processor; of libipt's from the first PSB on: the side-band is read, the buffers of the
 * rings are joined and the images are laid out before. Ours joins them and opens the images within it. Whose
 * code a CR3 stands for is what the side-band says of most PSBs that name it. */
#include "decoder/pt/pieces.h"
#include "decoder/sideband/sideband.h"

#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A CR3, and how many PSBs say that a space stands behind it. */
struct vote {
    uint64_t cr3;

    const struct dec_space *space;

    unsigned n;
};

struct bench {
    struct dec_sideband *sb;

    struct pt_image_section_cache *cache;

    struct pt_image *image;

    ST_VEC(struct vote) votes;

    uint64_t instructions, errors;

    double seconds;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "decode_rate: %s: %s\n", what, why);
    exit(1);
}

static void configure(struct pt_config *to, const struct dec_pt_config *from, const struct pt_run *run)
{
    pt_config_init(to);
    to->begin = (uint8_t *)(uintptr_t)run->bytes;
    to->end = to->begin + run->size;
    to->mtc_freq = from->mtc_freq;
    to->nom_freq = from->nom_freq;
    to->cpuid_0x15_eax = from->cpuid15_eax;
    to->cpuid_0x15_ebx = from->cpuid15_ebx;
    to->cpu =
        (struct pt_cpu){from->family ? pcv_intel : pcv_unknown, from->family, from->model, from->stepping};
    if (from->family && pt_cpu_errata(&to->errata, &to->cpu) < 0)
        memset(&to->errata, 0, sizeof(to->errata));
}

static void add_vote(struct bench *b, uint32_t ring, uint64_t cr3, uint64_t tsc)
{
    struct dec_where where = {0};
    if (!cr3 || !tsc || dec_sideband_where(b->sb, ring, dec_clock_ns(&b->sb->pt.clock, tsc), &where) ||
        !where.space)
        return;
    for (size_t i = 0; i < b->votes.n; i++) {
        if (b->votes.at[i].cr3 == cr3 && b->votes.at[i].space == where.space) {
            b->votes.at[i].n++;
            return;
        }
    }
    if (st_vec_push(&b->votes, (struct vote){cr3, where.space, 1}))
        die("the votes", "no memory");
}

static void collect_votes(struct bench *b, uint32_t ring, const struct pt_config *config)
{
    struct pt_packet_decoder *decoder = pt_pkt_alloc_decoder(config);
    struct pt_packet packet;
    while (pt_pkt_sync_forward(decoder) >= 0) {
        uint64_t tsc = 0, cr3 = 0;
        while (pt_pkt_next(decoder, &packet, sizeof(packet)) >= 0 && packet.type != ppt_psbend) {
            tsc = packet.type == ppt_tsc ? packet.payload.tsc.tsc : tsc;
            cr3 = packet.type == ppt_pip ? packet.payload.pip.cr3 : cr3;
        }
        add_vote(b, ring, cr3, tsc);
    }
    pt_pkt_free_decoder(decoder);
}

static void add_space(struct bench *b, const struct dec_space *space, uint64_t cr3)
{
    struct pt_asid asid;
    pt_asid_init(&asid);
    asid.cr3 = cr3;
    for (size_t i = 0; i < dec_space_count(space); i++) {
        const struct dec_mapping *m = dec_space_at(space, i);
        if (m->image->state != DEC_IMAGE_OK || !m->image->opened || m->until != UINT64_MAX)
            continue;
        int isid = pt_iscache_add_file(b->cache, m->image->opened, m->pgoff, m->end - m->start, m->start);
        if (isid > 0)
            pt_image_add_cached(b->image, b->cache, isid, &asid);
    }
}

static void lay_out(struct bench *b)
{
    if (b->sb->kernel)
        add_space(b, b->sb->kernel, pt_asid_no_cr3);
    for (size_t i = 0; i < b->votes.n; i++) {
        const struct vote *vote = &b->votes.at[i], *best = vote;
        for (size_t j = 0; j < b->votes.n; j++) {
            if (b->votes.at[j].cr3 == vote->cr3 && b->votes.at[j].n > best->n)
                best = &b->votes.at[j];
        }
        if (best == vote)
            add_space(b, vote->space, vote->cr3);
    }
    /* Without PIP packets there is one process. */
    for (size_t i = 0; b->votes.n == 0 && i < b->sb->processes.n; i++)
        add_space(b, b->sb->processes.at[i]->space, pt_asid_no_cr3);
}

enum { BLOCKS = 1 << 10 };

/* From a PSB to the next error or the end. Negative: that. libipt may go round without end behind a
 * retpoline, whose return it leaves on its stack: where BLOCKS of them use no trace, that is an error too. */
static int decode_on(struct bench *b, struct pt_block_decoder *decoder, int status)
{
    struct pt_block block = {0};
    struct pt_event event;
    uint64_t last = 0, offset = 1;
    for (uint64_t i = 1;; i++) {
        if (i % BLOCKS == 0) {
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
        b->instructions += block.ninsn;
        if (status < 0)
            return status;
    }
}

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void decode(struct bench *b, const struct pt_config *config)
{
    struct pt_block_decoder *decoder = pt_blk_alloc_decoder(config);
    if (!decoder || pt_blk_set_image(decoder, b->image) < 0)
        die("libipt's block decoder", "it does not start");
    double begin = processor_time();
    for (int status; (status = pt_blk_sync_forward(decoder)) >= 0;)
        b->errors += decode_on(b, decoder, status) != -pte_eos;
    b->seconds += processor_time() - begin;
    pt_blk_free_decoder(decoder);
}

static void each_run(struct bench *b, bool to_vote)
{
    for (size_t i = 0; i < b->sb->rings.n; i++) {
        const struct dec_ring *ring = &b->sb->rings.at[i];
        pt_runs runs = {0};
        struct dec_flow_options options = {.snapshot = b->sb->snapshot};
        if (pt_runs_join(&options, ring->pieces.at, ring->pieces.n, &runs, NULL))
            die("the rings", "no memory");
        for (size_t j = 0; j < runs.n; j++) {
            struct pt_config config;
            configure(&config, &b->sb->pt, &runs.at[j]);
            config.flags.variant.block.end_on_call = 1;
            config.flags.variant.block.end_on_jump = 1; /* else it may go round inside */
            if (to_vote)
                collect_votes(b, (uint32_t)i, &config);
            else
                decode(b, &config);
        }
        pt_runs_free(&runs);
    }
}

static void print(double seconds, uint64_t instructions, uint64_t errors)
{
    printf("%.3f %" PRIu64 " %" PRIu64 "\n", seconds, instructions, errors);
}

static int take(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    uint64_t *sum = ctx;
    (void)info;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        *sum += events[i].time ^ events[i].to;
    return 0;
}

/* Our walk of all rings, by one thread. */
static void walk_rings(const struct bench *b, bool events)
{
    uint64_t sum = 0;
    struct dec_flow_counts counts = {0};
    double begin = processor_time();
    for (size_t i = 0; i < b->sb->rings.n; i++) {
        const struct dec_ring *ring = &b->sb->rings.at[i];
        struct dec_flow_options options = {.config = b->sb->pt,
                                           .ring = (uint32_t)i,
                                           .snapshot = b->sb->snapshot,
                                           .where = dec_sideband_where,
                                           .where_ctx = b->sb,
                                           .emit = events ? take : NULL,
                                           .emit_ctx = &sum,
                                           .terse = events};
        if (dec_flow_run(&options, ring->pieces.at, ring->pieces.n, &counts, NULL))
            die("our walk", "it does not start");
    }
    print(processor_time() - begin, counts.instructions, counts.errors);
}

int main(int argc, char **argv)
{
    struct bench b = {.cache = pt_iscache_alloc("bench"), .image = pt_image_alloc("bench")};
    const char *dirs[] = {argc > 2 ? argv[2] : NULL};
    struct dec_images_options options = {.build_id_dirs = dirs, .nbuild_id_dirs = argc > 2};
    struct pd_reader *reader = NULL;
    struct dec_images *images = NULL;
    struct st_error err = {0};
    if (argc < 2 || argc > 3)
        die("usage", "decode_rate PERF.DATA [BUILD-ID-FOLDER]");
    if (!b.cache || !b.image)
        die("libipt", "no memory");
    pt_iscache_set_limit(b.cache, (uint64_t)1 << 30);
    if (pd_reader_open(argv[1], &reader, &err) || dec_images_new(&options, &images, &err) ||
        dec_sideband_read(reader, images, &b.sb, &err))
        die(argv[1], err.text);
    each_run(&b, true);
    lay_out(&b);
    each_run(&b, false);
    print(b.seconds, b.instructions, b.errors);
    walk_rings(&b, false);
    walk_rings(&b, true);
    pt_image_free(b.image);
    pt_iscache_free(b.cache);
    st_vec_free(&b.votes);
    dec_sideband_free(b.sb);
    dec_images_free(images);
    pd_reader_close(reader);
    return 0;
}
