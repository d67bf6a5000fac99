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
    OTHER = 0x500000, /* where code appears, and is replaced, while the trace goes on */
    TRAMPOLINE = 0x501000,
};

static const uint64_t KERNEL = 0xffffffff81000000; /* where the same code is */

/* Bits of the second byte of an input that say what is missing of its code. */
enum {
    HOLE = 32,    /* the middle third is mapped nowhere, and the image ends before its mapping does */
    LATER = 64,   /* the same code is at OTHER, and from a time on other code */
    UNKNOWN = 128 /* whose code runs is not known at times */
};

/* Bits of the third byte; below them stands the size of the code, by 4 bytes. */
enum {
    CODE_SIZE = 63,
    EVENT_TRACE = 64,
    NO_TNT = 128,
    PROBED = EVENT_TRACE | NO_TNT /* both: neither of them */
};

struct check {
    const struct dec_space *space;

    bool unknown;

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
    if (c->unknown && time / 64 % 4 == 1)
        where->space = NULL;
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
    config->event_trace = (head[2] & PROBED) == EVENT_TRACE;
    config->no_tnt = (head[2] & PROBED) == NO_TNT;
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

/* Which walk did it differs. */
static void forget_slow(struct dec_flow_counts *counts)
{
    counts->slow = 0;
    memset(counts->slow_by, 0, sizeof(counts->slow_by));
}

/* All that a stack is told happened, at those places, and only direct jumps are missing. (Times and counts
 * are compared by the unit tests: here batches end elsewhere.) */
static void compare_terse(struct dec_flow_options options, const struct dec_piece *pieces, size_t npieces,
                          const struct dec_flow_counts *counts, const struct check *all)
{
    struct check terse = {.space = all->space, .unknown = all->unknown};
    struct dec_flow_counts again = {0};
    size_t at = 0;
    options.terse = true;
    options.emit = keep;
    options.emit_ctx = &terse;
    require(dec_flow_run(&options, pieces, npieces, &again, NULL) == 0);
    forget_slow(&again);
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
    struct check check = {.space = by_fast->space, .unknown = by_fast->unknown};
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
        forget_slow(&again);
        require(memcmp(&again, &untimed, sizeof(again)) == 0);
    }
}

/* So does a ring behind another that shares what it knows of the code. */
static void compare_session(struct dec_flow_options options, const struct dec_piece *pieces, size_t npieces,
                            const struct dec_flow_counts *counts)
{
    const struct check *alone = options.emit_ctx;
    require(dec_session_new(pieces[0].size, &options.session, NULL) == 0);
    for (int ring = 0; ring < 2; ring++) {
        struct check check = {.space = alone->space, .unknown = alone->unknown};
        struct dec_flow_counts again = {0};
        options.emit_ctx = &check;
        require(dec_flow_run(&options, pieces, npieces, &again, NULL) == 0);
        require(check.hash == alone->hash);
        forget_slow(&again);
        require(memcmp(&again, counts, sizeof(again)) == 0);
        st_vec_free(&check.events);
    }
    dec_session_free(options.session);
}

static int map(struct dec_space *space, uint64_t time, uint64_t address, uint64_t n, uint64_t offset,
               struct dec_image *image)
{
    return dec_space_map(space, time, address, n, offset, image, NULL);
}

/* Puts the code where the settings want it. False: no memory. */
static bool lay_out(struct dec_images *images, struct dec_space *kernel, struct dec_space *space,
                    uint8_t settings, uint8_t *code, size_t ncode)
{
    struct dec_image *image, *other;
    uint64_t third = ncode / 3;
    uint8_t *turned = malloc(ncode + 1);
    for (size_t i = 0; i < ncode; i++)
        turned[i] = code[ncode - 1 - i];
    if (dec_images_add_bytes(images, "code", code, ncode, &image, NULL) ||
        dec_images_add_bytes(images, "other", turned, ncode, &other, NULL))
        return false;
    if (settings & LATER &&
        (map(space, 0, OTHER, ncode, 0, image) || map(space, 20050, OTHER, third, 0, other) ||
         map(space, 30000, OTHER + 0x1000, ncode, 0, image)))
        return false;
    if (map(kernel, 0, KERNEL, ncode, 0, image))
        return false;
    if (settings & HOLE)
        return map(space, 0, BASE, third, 0, image) == 0 &&
               map(space, 0, BASE + 2 * third, ncode, 2 * third, image) == 0;
    return map(space, 0, BASE, ncode, 0, image) == 0;
}

/* As if an optimised uprobe were somewhere in the process. */
static void map_trampoline(struct dec_images *images, struct dec_space *space)
{
    struct dec_image *image;
    struct dec_image_id id = {.path = "[uprobes-trampoline]", .pid = 1};
    if (dec_images_get(images, &id, &image, NULL) == 0)
        dec_space_map(space, 0, TRAMPOLINE, 0x1000, 0, image, NULL);
}

/* The rest of the input: code, then trace behind a PSB that starts at the code. */
static void run(struct dec_images *images, struct dec_space *kernel, struct check *check, const uint8_t *data,
                size_t size)
{
    static const uint8_t start[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                    0x02, 0x82, 0x02, 0x82, 0x19, 0x10, 0x27, 0,    0,    0,    0,    0,
                                    0x99, 0x01, 0x7d, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00, 0x02, 0x23};
    struct dec_flow_options options = {.where = where, .where_ctx = check, .emit = look, .emit_ctx = check};
    struct dec_flow_counts counts = {0};
    size_t ncode = (size_t)(data[2] & CODE_SIZE) * 4;
    if (ncode > size - HEADER)
        ncode = size - HEADER;
    size_t ntrace = size - HEADER - ncode;
    uint8_t *code = malloc(ncode + 1), *trace = malloc(ntrace + sizeof(start));
    configure(&options, data);
    if ((data[2] & PROBED) == PROBED)
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
    check->unknown = data[1] & UNKNOWN;
    if (lay_out(images, kernel, (struct dec_space *)(uintptr_t)check->space, data[1], code, ncode)) {
        size_t npieces = data[1] & 16 ? 2 : 1;
        require(dec_flow_run(&options, pieces, npieces, &counts, NULL) == 0);
        forget_slow(&counts);
        compare(options, pieces, npieces, &counts);
        compare_terse(options, pieces, npieces, &counts, check);
        compare_session(options, pieces, npieces, &counts);
    }
    st_vec_free(&check->events);
    free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dec_images *images;
    struct dec_space *kernel = NULL, *space = NULL;
    if (size < HEADER || dec_images_new(NULL, &images, NULL))
        return 0;
    if (dec_space_new(NULL, &kernel, NULL) == 0 && dec_space_new(kernel, &space, NULL) == 0) {
        struct check check = {.space = space};
        run(images, kernel, &check, data, size);
    }
    dec_space_free(space);
    dec_space_free(kernel);
    dec_images_free(images);
    return 0;
}
