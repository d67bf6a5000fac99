/* libFuzzer: any bytes as Intel PT packets over any bytes as code. Besides memory errors and hangs it looks
 * for broken promises of decoder/pt/flow.h: a fast walk that differs from libipt's, time that goes back,
 * branches that do not join, a gap that is not the last of its batch, a stack that is told something else. */
#include "base/vec.h"
#include "decoder/pt/flow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    HEADER = 4,
    BASE = 0x401000,
    TRAMPOLINE = 0x501000,
};

struct check {
    const struct dec_space *space;

    uint64_t time, last_to;

    bool on;

    uint64_t hash; /* of all events */

    ST_VEC(struct dec_event) events;
};

static void require(bool promise)
{
    if (!promise)
        abort();
}

static void add_hash(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15u;
    *hash ^= *hash >> 29;
}

static int look(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    struct check *c = ctx;
    require(n > 0);
    for (size_t i = 0; i < n; i++) {
        const struct dec_event *e = &events[i];
        require(e->time >= c->time);
        add_hash(&c->hash, e->time);
        add_hash(&c->hash, e->from);
        add_hash(&c->hash, e->to);
        add_hash(&c->hash, e->arg);
        add_hash(&c->hash, (uint64_t)e->kind << 32 | e->flags);
        add_hash(&c->hash, (uint64_t)(uint32_t)info->tid);
        c->time = e->time;
        require(e->kind != DEC_GAP || (i + 1 == n && detail));
        if (e->kind == DEC_ENABLE)
            require(!c->on && (e->to != 0 || e->from == 0));
        else if (e->kind != DEC_GAP && e->kind != DEC_PTWRITE && e->kind != DEC_POWER)
            require(c->on);
        require(st_vec_push(&c->events, *e) == 0);
        c->on = e->kind == DEC_ENABLE || (c->on && e->kind != DEC_DISABLE && e->kind != DEC_GAP);
    }
    return 0;
}

static int where(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    const struct check *c = ctx;
    *where = (struct dec_where){
        .pid = 1, .tid = (int32_t)(time % 3), .cpu = 0, .space = c->space, .until = time + 50 + ring};
    return 0;
}

static void configure(struct dec_flow_options *options, const uint8_t *head)
{
    struct dec_pt_config *config = &options->config;
    config->has_time = true;
    config->mtc_freq = head[0] & 15;
    config->nom_freq = head[0] & 16 ? 20 : 0;
    config->cpuid15_eax = head[0] & 32 ? 2 : 0;
    config->cpuid15_ebx = 200;
    config->bits = head[0] & 64 ? 32 : 64;
    config->family = head[0] & 128 ? 6 : 0;
    config->model = head[1] & 1 ? 0x3d : 0x5e;
    config->event_trace = head[1] & 32;
    config->no_tnt = head[1] & 64;
    options->snapshot = head[1] & 2;
    options->overwritten = head[1] & 4;
}

static int keep(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                const char *detail)
{
    struct check *c = ctx;
    (void)info;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        require(st_vec_push(&c->events, events[i]) == 0);
    return 0;
}

/* All that a stack is told happened, at those places, and only direct jumps are missing. (Times and counts
 * are compared by the unit tests: here batches end elsewhere.) */
static void compare_terse(struct dec_flow_options options, const struct dec_piece *pieces, size_t npieces,
                          const struct dec_flow_counts *counts, const struct check *all)
{
    struct check terse = {.space = all->space};
    struct dec_flow_counts again = {0};
    size_t at = 0;
    options.terse = true;
    options.emit = keep;
    options.emit_ctx = &terse;
    require(dec_flow_run(&options, pieces, npieces, &again, NULL) == 0);
    again.slow = 0;
    require(memcmp(&again, counts, sizeof(again)) == 0);
    for (size_t i = 0; i < all->events.n; i++) {
        const struct dec_event *e = &all->events.at[i], *t = &terse.events.at[at];
        if (at < terse.events.n && e->from == t->from && e->to == t->to && e->kind == t->kind &&
            (e->flags & ~DEC_TIME_EXACT) == (t->flags & ~DEC_TIME_EXACT))
            at++;
        else
            require((e->kind == DEC_COND_JUMP || e->kind == DEC_JUMP) && !(e->flags & DEC_INDIRECT));
    }
    require(at == terse.events.n);
    st_vec_free(&terse.events);
}

/* libipt's walk alone tells the same, and so do counts without events, by one thread and by several. */
static void compare(struct dec_flow_options options, const struct dec_piece *pieces, size_t npieces,
                    const struct dec_flow_counts *counts)
{
    const struct check *by_fast = options.emit_ctx;
    struct check check = {.space = by_fast->space};
    struct dec_flow_counts again = {0};
    options.reference = true;
    options.emit_ctx = &check;
    require(dec_flow_run(&options, pieces, npieces, &again, NULL) == 0);
    require(check.hash == by_fast->hash);
    st_vec_free(&check.events);
    require(memcmp(&again, counts, sizeof(again)) == 0);
    struct dec_flow_counts untimed = *counts;
    untimed.time_points = untimed.first_time = untimed.last_time = 0;
    options.reference = false;
    options.emit = NULL;
    options.group = 1;
    for (options.threads = 1; options.threads < 3; options.threads++) {
        memset(&again, 0, sizeof(again));
        require(dec_flow_run(&options, pieces, npieces, &again, NULL) == 0);
        again.slow = 0;
        require(memcmp(&again, &untimed, sizeof(again)) == 0);
    }
}

/* The rest of the input: code, then trace behind a PSB that starts at the code. */
/* As if an optimised uprobe were somewhere in the process. */
static void map_trampoline(struct dec_images *images, struct dec_space *space)
{
    struct dec_image *image;
    struct dec_image_id id = {.path = "[uprobes-trampoline]", .pid = 1};
    if (dec_images_get(images, &id, &image, NULL) == 0)
        dec_space_map(space, 0, TRAMPOLINE, 0x1000, 0, image, NULL);
}

static void run(struct dec_images *images, struct check *check, const uint8_t *data, size_t size)
{
    static const uint8_t start[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                    0x02, 0x82, 0x02, 0x82, 0x19, 0x10, 0x27, 0,    0,    0,    0,    0,
                                    0x99, 0x01, 0x7d, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00, 0x02, 0x23};
    struct dec_flow_options options = {.where = where, .where_ctx = check, .emit = look, .emit_ctx = check};
    struct dec_flow_counts counts = {0};
    struct dec_image *image;
    size_t ncode = (size_t)data[2] * 4 < size - HEADER ? (size_t)data[2] * 4 : size - HEADER;
    size_t ntrace = size - HEADER - ncode;
    uint8_t *code = malloc(ncode + 1), *trace = malloc(ntrace + sizeof(start));
    configure(&options, data);
    if (data[1] & 128)
        map_trampoline(images, (struct dec_space *)(uintptr_t)check->space);
    memcpy(code, data + HEADER, ncode);
    memcpy(trace, start, sizeof(start));
    memcpy(trace + sizeof(start), data + HEADER + ncode, ntrace);
    size_t cut = sizeof(start) + ntrace * data[3] / 256;
    struct dec_piece pieces[] = {{.bytes = trace, .size = cut},
                                 {.bytes = trace + cut,
                                  .size = ntrace + sizeof(start) - cut,
                                  .offset = cut,
                                  .truncated = data[1] & 8}};
    if (dec_images_add_bytes(images, "code", code, ncode, &image, NULL) == 0 &&
        dec_space_map((struct dec_space *)(uintptr_t)check->space, 0, BASE, ncode, 0, image, NULL) == 0) {
        size_t npieces = data[1] & 16 ? 2 : 1;
        require(dec_flow_run(&options, pieces, npieces, &counts, NULL) == 0);
        counts.slow = 0; /* which walk did it differs */
        compare(options, pieces, npieces, &counts);
        compare_terse(options, pieces, npieces, &counts, check);
    }
    st_vec_free(&check->events);
    free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dec_images *images;
    struct dec_space *space;
    if (size < HEADER || dec_images_new(NULL, &images, NULL))
        return 0;
    if (dec_space_new(NULL, &space, NULL) == 0) {
        struct check check = {.space = space};
        run(images, &check, data, size);
        dec_space_free(space);
    }
    dec_images_free(images);
    return 0;
}
