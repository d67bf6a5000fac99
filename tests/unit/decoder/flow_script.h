/* A trace written packet by packet with libipt's encoder, code laid out by hand, and what the flow decoder
 * makes of them as text. */
#ifndef FLOW_SCRIPT_H
#define FLOW_SCRIPT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"
#include "decoder/pt/flow.h"

#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_ROOM = 1 << 20 };

struct script {
    uint8_t *trace;

    struct pt_encoder *encoder;

    struct dec_images *images;

    struct dec_space *space;

    struct dec_pt_config config;

    dec_where_fn *where; /* NULL: always `space` */

    bool snapshot, overwritten;

    size_t cut; /* decode only so many bytes; 0: all */

    struct dec_flow_counts counts;

    uint64_t slow; /* counts.slow, which differs from walk to walk and is 0 there */

    ST_VEC(struct dec_event) events;

    ST_VEC(char) text; /* the events of the last run, a line each */

    char detail[1024]; /* of the last gap */

    uint64_t last_time;

    bool on; /* a stretch has begun and not ended */

    int stop_after; /* events; 0: never */
};

static inline void script_open(struct script *s)
{
    struct pt_config config;
    memset(s, 0, sizeof(*s));
    s->trace = calloc(1, TRACE_ROOM);
    assert_non_null(s->trace);
    pt_config_init(&config);
    config.begin = s->trace;
    config.end = s->trace + TRACE_ROOM;
    s->encoder = pt_alloc_encoder(&config);
    assert_non_null(s->encoder);
    assert_int_equal(dec_images_new(NULL, &s->images, NULL), 0);
    assert_int_equal(dec_space_new(NULL, &s->space, NULL), 0);
    s->config.has_time = true;
}

static inline void script_close(struct script *s)
{
    pt_free_encoder(s->encoder);
    dec_space_free(s->space);
    dec_images_free(s->images);
    st_vec_free(&s->events);
    st_vec_free(&s->text);
    free(s->trace);
}

/* Code bytes at an address from a time on. */
static inline struct dec_image *script_code_at(struct script *s, uint64_t time, uint64_t address,
                                               const void *bytes, size_t size, const char *name)
{
    struct dec_image *image;
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    assert_int_equal(dec_images_add_bytes(s->images, name, copy, size, &image, NULL), 0);
    assert_int_equal(dec_space_map(s->space, time, address, size, 0, image, NULL), 0);
    return image;
}

#define script_code(s, address, ...)                                                                         \
    script_code_at(s, 0, address, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}),    \
                   "code")

static inline void put(struct script *s, struct pt_packet packet)
{
    assert_true(pt_enc_next(s->encoder, &packet) > 0);
}

static inline void put_plain(struct script *s, enum pt_packet_type type)
{
    put(s, (struct pt_packet){.type = type});
}

static inline void put_ip(struct script *s, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type};
    packet.payload.ip.ipc = ip ? pt_ipc_full : pt_ipc_suppressed;
    packet.payload.ip.ip = ip;
    put(s, packet);
}

static inline void put_tsc(struct script *s, uint64_t tsc)
{
    struct pt_packet packet = {.type = ppt_tsc};
    packet.payload.tsc.tsc = tsc;
    put(s, packet);
}

static inline void put_mode(struct script *s, enum pt_exec_mode mode)
{
    struct pt_packet packet = {.type = ppt_mode};
    packet.payload.mode.leaf = pt_mol_exec;
    packet.payload.mode.bits.exec = pt_set_exec_mode(mode);
    put(s, packet);
}

static inline void put_cyc(struct script *s, uint64_t cycles)
{
    struct pt_packet packet = {.type = ppt_cyc};
    packet.payload.cyc.value = cycles;
    put(s, packet);
}

/* "TNNT": taken and not taken. */
static inline void put_tnt(struct script *s, const char *bits)
{
    struct pt_packet packet = {.type = strlen(bits) > 6 ? ppt_tnt_64 : ppt_tnt_8};
    for (; *bits; bits++) {
        packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | (*bits == 'T');
        packet.payload.tnt.bit_size++;
    }
    put(s, packet);
}

/* A PSB with the state that follows it. ip 0: tracing is off; tsc 0: no time. */
static inline void put_psb_mode(struct script *s, uint64_t ip, uint64_t tsc, enum pt_exec_mode mode)
{
    put_plain(s, ppt_psb);
    if (tsc)
        put_tsc(s, tsc);
    if (ip) {
        put_mode(s, mode);
        put_ip(s, ppt_fup, ip);
    }
    put_plain(s, ppt_psbend);
}

static inline void put_psb(struct script *s, uint64_t ip, uint64_t tsc)
{
    put_psb_mode(s, ip, tsc, ptem_64bit);
}

static inline size_t script_size(const struct script *s)
{
    uint64_t offset;
    assert_int_equal(pt_enc_get_offset(s->encoder, &offset), 0);
    return (size_t)offset;
}

static inline void script_line(struct script *s, const struct dec_event *e)
{
    static const char *const kinds[] = {"jcc",   "jmp", "call", "ret", "farcall", "farret", "farjmp",
                                        "async", "on",  "off",  "gap", "ptw",     "power"};
    char line[160];
    int n;
    if (e->kind == DEC_GAP)
        n = snprintf(line, sizeof(line), "gap %d\n", (int)e->arg);
    else if (e->kind == DEC_POWER) {
        char text[DEC_POWER_TEXT];
        const char *name = dec_power_text(e->arg, text, sizeof(text));
        n = snprintf(line, sizeof(line), "%s %llx %s\n", name, (unsigned long long)e->from, text);
    } else
        n = snprintf(line, sizeof(line), "%s %llx %llx%s%s%s%s%s%s%s\n", kinds[e->kind],
                     (unsigned long long)e->from, (unsigned long long)e->to,
                     e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN) ? " not" : "",
                     e->flags & DEC_INDIRECT ? " ind" : "", e->flags & DEC_RESUMED ? " resumed" : "",
                     e->flags & DEC_ASYNC_DISABLE ? " async" : "", e->flags & DEC_ZERO_CALL ? " zero" : "",
                     e->flags & DEC_TX_ABORT ? " abort" : "", e->flags & DEC_IN_TX ? " tx" : "");
    assert_int_equal(st_vec_reserve(&s->text, (size_t)n + 1), 0);
    memcpy(s->text.at + s->text.n, line, (size_t)n + 1);
    s->text.n += (size_t)n;
}

static inline int script_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events,
                              size_t n, const char *detail)
{
    struct script *s = ctx;
    assert_int_equal(info->pid, 7);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(events[i].time >= s->last_time); /* time never goes back */
        s->last_time = events[i].time;
        assert_false(s->on && events[i].kind == DEC_ENABLE); /* it ended first */
        if (events[i].kind != DEC_POWER)
            s->on = events[i].kind != DEC_DISABLE && events[i].kind != DEC_GAP;
        assert_true(events[i].kind != DEC_GAP || (i + 1 == n && detail));
        assert_int_equal(st_vec_push(&s->events, events[i]), 0);
        script_line(s, &events[i]);
        if (s->stop_after && s->events.n == (size_t)s->stop_after)
            return 1234;
    }
    if (detail)
        snprintf(s->detail, sizeof(s->detail), "%s", detail);
    return 0;
}

static inline int script_where(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where)
{
    struct script *s = ctx;
    (void)ring;
    (void)time;
    *where = (struct dec_where){.pid = 7, .tid = 8, .cpu = 3, .space = s->space, .until = UINT64_MAX};
    return 0;
}

static inline struct dec_flow_options script_options(struct script *s)
{
    return (struct dec_flow_options){.config = s->config,
                                     .ring = 5,
                                     .snapshot = s->snapshot,
                                     .overwritten = s->overwritten,
                                     .where = s->where ? s->where : script_where,
                                     .where_ctx = s,
                                     .emit = script_emit,
                                     .emit_ctx = s};
}

static inline void script_clear(struct script *s)
{
    s->events.n = 0;
    s->text.n = 0;
    s->last_time = 0;
    s->on = false;
    s->detail[0] = '\0';
    memset(&s->counts, 0, sizeof(s->counts));
    assert_int_equal(st_vec_reserve(&s->text, 1), 0);
    s->text.at[0] = '\0';
}

struct script_reference {
    ST_VEC(struct dec_event) events;
};

static inline int script_reference_emit(void *ctx, const struct dec_stream_info *info,
                                        const struct dec_event *events, size_t n, const char *detail)
{
    struct script_reference *r = ctx;
    (void)info;
    (void)detail;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(st_vec_push(&r->events, events[i]), 0);
    return 0;
}

/* Whether a stack may do without a branch. */
static inline bool script_is_spare(const struct dec_event *e)
{
    return (e->kind == DEC_COND_JUMP || e->kind == DEC_JUMP) && !(e->flags & DEC_INDIRECT);
}

/* What is told to a stack is all that there is, but for such branches; their counts are those of the event
 * behind them. */
static inline void script_compare_terse(const struct script_reference *all, const struct dec_event *terse,
                                        size_t n)
{
    uint64_t instructions = 0, cycles = 0;
    size_t at = 0;
    for (size_t i = 0; i < all->events.n; i++) {
        struct dec_event e = all->events.at[i];
        if (dec_has_counts(e.kind)) {
            bool on = e.kind == DEC_ENABLE; /* what is left of cycles is for the next one */
            instructions += DEC_INSTRUCTIONS(e.arg);
            cycles += on ? 0 : DEC_CYCLES(e.arg);
            e.arg = (on ? DEC_CYCLES(e.arg) : cycles) << 32 | instructions;
        }
        if (at < n && !memcmp(&e, &terse[at], sizeof(e))) {
            at++;
            instructions = dec_has_counts(e.kind) || e.kind == DEC_GAP ? 0 : instructions;
            cycles = (dec_has_counts(e.kind) && e.kind != DEC_ENABLE) || e.kind == DEC_GAP ? 0 : cycles;
        } else {
            assert_true(script_is_spare(&e));
        }
    }
    assert_int_equal(at, n);
    /* It lasts as long. */
    if (n)
        assert_true(terse[n - 1].time == all->events.at[all->events.n - 1].time);
}

static inline void script_forget_slow(struct dec_flow_counts *counts)
{
    counts->slow = 0;
    memset(counts->slow_by, 0, sizeof(counts->slow_by));
}

/* Ring after ring that share what they know of the code tell the same. */
static inline void script_compare_session(struct script *s, const struct dec_piece *pieces, size_t n)
{
    struct dec_flow_options options = script_options(s);
    struct dec_flow_counts expected = s->counts;
    expected.slow = s->slow;
    assert_int_equal(dec_session_new(n ? pieces[0].size : 0, &options.session, NULL), 0);
    for (int ring = 0; ring < 3; ring++) {
        struct script_reference r = {0};
        struct dec_flow_counts counts = {0};
        options.emit = script_reference_emit;
        options.emit_ctx = &r;
        assert_int_equal(dec_flow_run(&options, pieces, n, &counts, NULL), 0);
        memset(counts.slow_by, 0, sizeof(counts.slow_by));
        assert_memory_equal(&counts, &expected, sizeof(counts));
        assert_int_equal(r.events.n, s->events.n);
        for (size_t i = 0; i < r.events.n; i++)
            assert_memory_equal(&r.events.at[i], &s->events.at[i], sizeof(*r.events.at));
        st_vec_free(&r.events);
    }
    dec_session_free(options.session);
}

/* libipt's walk alone tells the same, and so do counts without events, by one thread and by several; what a
 * stack is told is the same but for what it does not need. */
static inline void script_compare(struct script *s, const struct dec_piece *pieces, size_t n)
{
    struct script_reference r = {0};
    struct dec_flow_options options = script_options(s);
    struct dec_flow_counts counts = {0};
    options.reference = true;
    options.emit = script_reference_emit;
    options.emit_ctx = &r;
    assert_int_equal(dec_flow_run(&options, pieces, n, &counts, NULL), 0);
    assert_memory_equal(&counts, &s->counts, sizeof(counts));
    assert_int_equal(r.events.n, s->events.n);
    for (size_t i = 0; i < r.events.n; i++)
        assert_memory_equal(&r.events.at[i], &s->events.at[i], sizeof(*r.events.at));
    assert_int_equal(counts.slow, 0);
    struct script_reference terse = {0};
    memset(&counts, 0, sizeof(counts));
    options.reference = false;
    options.terse = true;
    options.emit_ctx = &terse;
    assert_int_equal(dec_flow_run(&options, pieces, n, &counts, NULL), 0);
    assert_int_equal(counts.slow, s->slow);
    script_forget_slow(&counts);
    assert_memory_equal(&counts, &s->counts, sizeof(counts));
    script_compare_terse(&r, terse.events.at, terse.events.n);
    st_vec_free(&terse.events);
    struct dec_flow_counts untimed = s->counts;
    untimed.time_points = untimed.first_time = untimed.last_time = 0;
    memset(&counts, 0, sizeof(counts));
    options.emit = NULL;
    assert_int_equal(dec_flow_run(&options, pieces, n, &counts, NULL), 0);
    assert_int_equal(counts.slow, s->slow);
    script_forget_slow(&counts);
    assert_memory_equal(&counts, &untimed, sizeof(counts));
    memset(&counts, 0, sizeof(counts));
    options.threads = 3;
    options.group = 1;
    assert_int_equal(dec_flow_run(&options, pieces, n, &counts, NULL), 0);
    script_forget_slow(&counts);
    assert_memory_equal(&counts, &untimed, sizeof(counts));
    st_vec_free(&r.events);
}

static inline int script_run_pieces(struct script *s, const struct dec_piece *pieces, size_t n)
{
    struct dec_flow_options options = script_options(s);
    script_clear(s);
    int rc = dec_flow_run(&options, pieces, n, &s->counts, NULL);
    s->slow = s->counts.slow;
    script_forget_slow(&s->counts);
    if (rc == 0)
        script_compare(s, pieces, n);
    if (rc == 0)
        script_compare_session(s, pieces, n);
    return rc;
}

static inline int script_run(struct script *s)
{
    struct dec_piece piece = {.bytes = s->trace, .size = s->cut ? s->cut : script_size(s)};
    return script_run_pieces(s, &piece, 1);
}

/* Decodes what was put so far and compares. */
static inline void script_expect(struct script *s, const char *text)
{
    assert_int_equal(script_run(s), 0);
    assert_string_equal(s->text.at, text);
}

/* A test that gets an open script as its state. */
#define SCRIPT_TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)

static inline int script_setup(void **state)
{
    struct script *s = calloc(1, sizeof(*s));
    if (!s)
        return -1;
    script_open(s);
    *state = s;
    return 0;
}

static inline int script_teardown(void **state)
{
    script_close(*state);
    free(*state);
    return 0;
}

#endif
