/* Random programs run by a small model of a CPU with Intel PT (SDM, chapter Intel Processor Trace): the flow
 * decoder must tell exactly what the model did, from its packets and its code alone; and where a part of the
 * code is missing, nothing that it did not do. */
#include "flow_script.h"

#include "decoder/event/event.h"

#include <stdbool.h>

#ifdef ST_SANITIZED
#define SEEDS 40 /* eight times slower; the plain build tries them all */
#else
#define SEEDS 200
#endif

enum {
    BLOCKS = 120,
    STEPS = 1500, /* blocks executed */
    DEPTH = 200,  /* of the program's own stack */
    BASE = 0x400000,
};

enum timing { UNTIMED, TSC_ONLY, CYCLES, TIMINGS };

enum ending { JCC, JMP, CALL, RET, JMP_INDIRECT, CALL_INDIRECT, SYSCALL, ENDINGS };

struct block {
    uint64_t start, end_at, next; /* end_at: address of the ending instruction */

    uint8_t nops[4];

    size_t nnops;

    enum ending ending;

    size_t target;
};

struct truth {
    struct dec_event event; /* time: when it happened */

    bool timed; /* its packet says when */
};

struct model {
    struct script *s;

    uint32_t seed;

    struct block blocks[BLOCKS];

    uint64_t stack[DEPTH];

    size_t depth;

    uint64_t returns[64]; /* of the CPU, youngest last */

    size_t nreturns;

    bool compress; /* returns */

    enum timing timing;

    uint64_t ip, now, last_cyc, last_ip;

    char bits[8];

    size_t nbits, full; /* TNT bits that wait, and how many make a packet */

    size_t first_bit; /* truth of the first waiting bit */

    uint64_t since; /* instructions since the last event */

    uint64_t instructions;

    size_t seen; /* truths up to the last that left trace, and instructions */

    uint64_t instructions_seen;

    ST_VEC(struct truth) truths;
};

static uint32_t next_random(struct model *m, uint32_t below)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(m->seed >> 8) * below) >> 24);
}

/* ---- packets ---- */

static void cyc(struct model *m)
{
    if (m->timing == CYCLES)
        put_cyc(m->s, m->now - m->last_cyc);
    m->last_cyc = m->now;
}

static void tsc(struct model *m)
{
    if (m->timing == UNTIMED)
        return;
    put_tsc(m->s, m->now);
    m->last_cyc = m->now;
}

static void flush_bits(struct model *m)
{
    if (m->nbits == 0)
        return;
    m->bits[m->nbits] = '\0';
    cyc(m);
    put_tnt(m->s, m->bits);
    m->nbits = 0;
}

/* An address, compressed against the last one in one of the ways that fit. */
static void address(struct model *m, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type};
    packet.payload.ip.ip = ip;
    packet.payload.ip.ipc = pt_ipc_full;
    if (ip >> 32 == m->last_ip >> 32 && next_random(m, 2))
        packet.payload.ip.ipc =
            ip >> 16 == m->last_ip >> 16 && next_random(m, 2) ? pt_ipc_update_16 : pt_ipc_update_32;
    else if (next_random(m, 2))
        packet.payload.ip.ipc = pt_ipc_sext_48;
    put(m->s, packet);
    m->last_ip = ip;
}

static void tip(struct model *m, enum pt_packet_type type, uint64_t ip)
{
    flush_bits(m);
    cyc(m);
    address(m, type, ip);
}

static void psb(struct model *m, bool on)
{
    struct pt_packet cbr = {.type = ppt_cbr};
    flush_bits(m);
    cbr.payload.cbr.ratio = 20;
    put_plain(m->s, ppt_psb);
    m->last_ip = 0;
    m->nreturns = 0;
    tsc(m);
    put(m->s, cbr);
    if (on) {
        put_mode(m->s, ptem_64bit);
        address(m, ppt_fup, m->ip);
    }
    put_plain(m->s, ppt_psbend);
}

/* ---- what happens ---- */

static void happened(struct model *m, enum dec_kind kind, uint16_t flags, uint64_t from, uint64_t to,
                     bool timed)
{
    struct truth truth = {.timed = timed && m->timing == CYCLES};
    truth.event = (struct dec_event){
        .time = m->now, .from = from, .to = to, .arg = m->since, .kind = (uint16_t)kind, .flags = flags};
    if (kind == DEC_GAP)
        truth.event.arg = DEC_GAP_OVERFLOW;
    m->since = 0;
    assert_int_equal(st_vec_push(&m->truths, truth), 0);
    if ((kind == DEC_JUMP || kind == DEC_CALL) && !(flags & DEC_INDIRECT))
        return;
    m->seen = m->truths.n;
    m->instructions_seen = m->instructions;
}

static void ran(struct model *m)
{
    m->instructions++;
    m->since++;
    m->now += 1 + next_random(m, 3);
}

static void bit(struct model *m, bool taken, enum dec_kind kind, uint16_t flags, uint64_t from, uint64_t to)
{
    m->bits[m->nbits++] = taken ? 'T' : 'N';
    happened(m, kind, flags, from, to, m->nbits == m->full);
    if (m->nbits == m->full)
        flush_bits(m);
}

static uint64_t some_block(struct model *m)
{
    return m->blocks[next_random(m, BLOCKS)].start;
}

static void off(struct model *m)
{
    m->now += next_random(m, 5000);
    if (next_random(m, 3) == 0)
        tsc(m);
    if (next_random(m, 8) == 0)
        psb(m, false);
}

/* Something comes in between two instructions: an interrupt seen or not seen, lost packets, a PSB. */
static void interrupt(struct model *m)
{
    uint64_t at = m->ip;
    switch (next_random(m, 4)) {
    case 0:
        flush_bits(m);
        address(m, ppt_fup, at);
        cyc(m);
        put_ip(m->s, ppt_tip_pgd, 0);
        happened(m, DEC_DISABLE, DEC_ASYNC_DISABLE, at, 0, false);
        off(m);
        m->ip = next_random(m, 2) ? at : some_block(m);
        put_mode(m->s, ptem_64bit);
        tip(m, ppt_tip_pge, m->ip);
        happened(m, DEC_ENABLE, m->ip == at ? DEC_RESUMED : 0, 0, m->ip, true);
        break;
    case 1:
        flush_bits(m);
        address(m, ppt_fup, at);
        m->ip = some_block(m);
        tip(m, ppt_tip, m->ip);
        happened(m, DEC_ASYNC, DEC_TAKEN, at, m->ip, false);
        break;
    case 2:
        flush_bits(m);
        put_plain(m->s, ppt_ovf);
        m->last_ip = 0;
        m->nreturns = 0;
        /* What ran since the last packet cannot be known. */
        m->truths.n = m->seen;
        m->instructions = m->instructions_seen;
        happened(m, DEC_GAP, 0, 0, 0, false);
        m->ip = some_block(m);
        tsc(m);
        address(m, ppt_fup, m->ip);
        happened(m, DEC_ENABLE, 0, 0, m->ip, false);
        break;
    default:
        psb(m, true);
    }
}

/* A call to the next instruction is none for the CPU's return stack. */
static void pushed(struct model *m, uint64_t next, bool empty)
{
    if (m->depth < DEPTH)
        m->stack[m->depth++] = next;
    if (empty)
        return;
    if (m->nreturns == 64)
        memmove(m->returns, m->returns + 1, 63 * sizeof(*m->returns));
    else
        m->nreturns++;
    m->returns[m->nreturns - 1] = next;
}

/* A return mostly goes where it should, sometimes elsewhere (an exception, a switch of stacks). */
static void returned(struct model *m, const struct block *b)
{
    uint64_t to = m->depth && next_random(m, 10) ? m->stack[--m->depth] : some_block(m);
    bool matches = m->compress && m->nreturns && m->returns[m->nreturns - 1] == to;
    if (m->nreturns)
        m->nreturns--;
    m->ip = to;
    if (matches) {
        bit(m, true, DEC_RETURN, DEC_TAKEN | DEC_INDIRECT, b->end_at, to);
        return;
    }
    tip(m, ppt_tip, to);
    happened(m, DEC_RETURN, DEC_TAKEN | DEC_INDIRECT, b->end_at, to, true);
}

static void system_called(struct model *m, const struct block *b)
{
    flush_bits(m);
    cyc(m);
    put_ip(m->s, ppt_tip_pgd, 0);
    happened(m, DEC_FAR_CALL, DEC_TAKEN, b->end_at, 0, true);
    happened(m, DEC_DISABLE, 0, b->end_at, 0, false);
    off(m);
    m->ip = next_random(m, 8) ? b->next : some_block(m);
    put_mode(m->s, ptem_64bit);
    tip(m, ppt_tip_pge, m->ip);
    happened(m, DEC_ENABLE, m->ip == b->next ? DEC_RESUMED : 0, 0, m->ip, true);
}

static void end_block(struct model *m, const struct block *b)
{
    uint64_t target = m->blocks[b->target].start;
    bool taken = next_random(m, 2);
    ran(m);
    m->ip = target;
    switch (b->ending) {
    case JCC:
        m->ip = taken ? target : b->next;
        bit(m, taken, DEC_COND_JUMP, taken ? DEC_TAKEN : 0, b->end_at, m->ip);
        break;
    case JMP:
        happened(m, DEC_JUMP, DEC_TAKEN, b->end_at, target, false);
        break;
    case CALL:
        pushed(m, b->next, target == b->next);
        happened(m, DEC_CALL, DEC_TAKEN, b->end_at, target, false);
        break;
    case RET:
        returned(m, b);
        break;
    case JMP_INDIRECT:
    case CALL_INDIRECT:
        if (b->ending == CALL_INDIRECT)
            pushed(m, b->next, false);
        m->ip = some_block(m);
        tip(m, ppt_tip, m->ip);
        happened(m, b->ending == CALL_INDIRECT ? DEC_CALL : DEC_JUMP, DEC_TAKEN | DEC_INDIRECT, b->end_at,
                 m->ip, true);
        break;
    default:
        system_called(m, b);
    }
}

static const struct block *block_at(const struct model *m, uint64_t ip)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        if (ip >= m->blocks[i].start && ip < m->blocks[i].next)
            return &m->blocks[i];
    }
    fail();
    return NULL;
}

static void run_block(struct model *m)
{
    const struct block *b = block_at(m, m->ip);
    uint64_t at = b->start;
    for (size_t i = 0; i < b->nnops; i++) {
        if (at == m->ip && next_random(m, 60) == 0) {
            interrupt(m);
            if (m->ip != at)
                return;
        }
        at += b->nops[i];
        if (at > m->ip) {
            ran(m);
            m->ip = at;
        }
    }
    end_block(m, b);
}

/* ---- code ---- */

static const uint8_t nop_bytes[3][3] = {{0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};

static size_t ending_size(enum ending ending)
{
    static const size_t sizes[ENDINGS] = {
        [JCC] = 6, [JMP] = 5, [CALL] = 5, [RET] = 1, [JMP_INDIRECT] = 2, [CALL_INDIRECT] = 2, [SYSCALL] = 2};
    return sizes[ending];
}

static void lay_out(struct model *m)
{
    uint64_t at = BASE;
    for (size_t i = 0; i < BLOCKS; i++) {
        struct block *b = &m->blocks[i];
        b->start = at;
        b->nnops = next_random(m, 5) % 4;
        for (size_t n = 0; n < b->nnops; n++)
            at += b->nops[n] = (uint8_t)(1 + next_random(m, 3));
        b->ending = (enum ending)next_random(m, ENDINGS);
        if (i + 1 == BLOCKS)
            b->ending = JMP_INDIRECT; /* nothing lies behind it */
        else if ((b->ending == JMP || b->ending == CALL) && next_random(m, 2))
            b->ending = JCC;
        b->target = next_random(m, BLOCKS);
        /* Forward only, so that no direct jumps go round. */
        if (b->ending == JMP || b->ending == CALL)
            b->target = i + 1 + next_random(m, (uint32_t)(BLOCKS - i - 1));
        b->end_at = at;
        at += ending_size(b->ending);
        b->next = at;
    }
}

static size_t assemble(const struct model *m, uint8_t *code)
{
    uint8_t *at = code;
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct block *b = &m->blocks[i];
        int32_t displacement = (int32_t)(m->blocks[b->target].start - b->next);
        for (size_t n = 0; n < b->nnops; n++) {
            memcpy(at, nop_bytes[b->nops[n] - 1], b->nops[n]);
            at += b->nops[n];
        }
        static const uint8_t opcodes[ENDINGS][2] = {[JCC] = {0x0f, 0x84},
                                                    [JMP] = {0xe9},
                                                    [CALL] = {0xe8},
                                                    [RET] = {0xc3},
                                                    [JMP_INDIRECT] = {0xff, 0xe0},
                                                    [CALL_INDIRECT] = {0xff, 0xd0},
                                                    [SYSCALL] = {0x0f, 0x05}};
        size_t size = ending_size(b->ending), opcode = size == 5 || size == 1 ? 1 : 2;
        memcpy(at, opcodes[b->ending], opcode);
        if (size > 2)
            memcpy(at + opcode, &displacement, sizeof(displacement));
        at += size;
    }
    return (size_t)(at - code);
}

/* ---- comparison ---- */

/* Cycles between events whose times are known: the model's clock is that of its cycles. A TSC packet or a
 * time without tracing between them takes some away. */
struct cycles {
    uint64_t since, sum;

    bool begun;

    size_t same;
};

static void add_cycles(struct cycles *c, const struct dec_event *is, const struct truth *truth)
{
    if (dec_has_counts(is->kind))
        c->sum += DEC_CYCLES(is->arg);
    if (!truth->timed)
        return;
    if (c->begun) {
        assert_true(c->sum <= truth->event.time - c->since);
        c->same += c->sum && c->sum == truth->event.time - c->since;
    }
    *c = (struct cycles){truth->event.time, 0, true, c->same};
}

static void compare(const struct model *m)
{
    struct cycles cycles = {0};
    const struct script *s = m->s;
    uint16_t known = DEC_TAKEN | DEC_INDIRECT | DEC_RESUMED | DEC_ASYNC_DISABLE;
    size_t exact = 0;
    for (size_t i = 0; i < m->truths.n && i < s->events.n; i++) {
        const struct dec_event *is = &s->events.at[i], *should = &m->truths.at[i].event;
        uint64_t instructions = dec_has_counts(is->kind) ? DEC_INSTRUCTIONS(is->arg) : is->arg;
        if (is->kind != should->kind || is->from != should->from || is->to != should->to ||
            (is->flags & known) != should->flags || instructions != should->arg)
            fail_msg("seed state %u: event %zu: %d %llx %llx flags %x arg %llu, should be %d %llx %llx flags "
                     "%x arg %llu",
                     m->seed, i, is->kind, (unsigned long long)is->from, (unsigned long long)is->to,
                     is->flags, (unsigned long long)is->arg, should->kind, (unsigned long long)should->from,
                     (unsigned long long)should->to, should->flags, (unsigned long long)should->arg);
        if (m->truths.at[i].timed && is->time != should->time)
            fail_msg("event %zu: time %llu, should be %llu", i, (unsigned long long)is->time,
                     (unsigned long long)should->time);
        add_cycles(&cycles, is, &m->truths.at[i]);
        assert_true(m->timing == CYCLES || instructions == is->arg);
        exact += m->truths.at[i].timed && is->flags & DEC_TIME_EXACT;
    }
    assert_int_equal(s->events.n, m->truths.n);
    assert_int_equal(s->counts.instructions, m->instructions);
    assert_int_equal(s->counts.errors, 0);
    assert_true(m->timing != CYCLES || exact > 100);
    assert_true(m->timing != CYCLES || cycles.same > 100);
}

static void in_pieces(struct model *m)
{
    struct script *s = m->s;
    size_t size = script_size(s);
    struct dec_piece pieces[8];
    size_t at = 0;
    for (size_t i = 0; i < 8; i++) {
        size_t end = i < 7 ? at + next_random(m, (uint32_t)(size - at)) : size;
        pieces[i] = (struct dec_piece){.bytes = s->trace + at, .size = end - at, .offset = at};
        at = end;
    }
    assert_int_equal(script_run_pieces(s, pieces, 8), 0);
}

/* The same trace, of whose code some is mapped nowhere or lies behind the end of its file. */
static void make_holes(struct model *m, struct dec_image *image, size_t size)
{
    dec_space_free(m->s->space);
    assert_int_equal(dec_space_new(NULL, &m->s->space, NULL), 0);
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + next_random(m, (uint32_t)size / 5);
        if (n > size - at)
            n = size - at;
        unsigned hole = next_random(m, 6);
        if (hole == 0)
            continue;
        assert_int_equal(dec_space_map(m->s->space, 0, BASE + at, n, hole == 1 ? size : at, image, NULL), 0);
    }
}

static bool is_branch(const struct dec_event *e)
{
    return e->kind <= DEC_ASYNC;
}

/* Each branch that is told was one of the model's, in that order. */
static void compare_parts(const struct model *m)
{
    size_t at = 0, found = 0;
    for (size_t i = 0; i < m->s->events.n; i++) {
        const struct dec_event *is = &m->s->events.at[i];
        if (!is_branch(is))
            continue;
        for (; at < m->truths.n; at++) {
            const struct dec_event *truth = &m->truths.at[at].event;
            if (truth->kind == is->kind && truth->from == is->from && truth->to == is->to)
                break;
        }
        if (at++ == m->truths.n)
            fail_msg("seed state %u: event %zu: %d %llx %llx did not happen", m->seed, i, is->kind,
                     (unsigned long long)is->from, (unsigned long long)is->to);
        found++;
    }
    assert_true(m->s->counts.instructions < m->instructions || m->s->counts.errors == 0);
    assert_true(found * 20 > m->truths.n || m->s->counts.errors);
}

static void one_program(uint32_t seed)
{
    struct script s;
    struct model m = {.s = &s, .seed = seed};
    static uint8_t code[BLOCKS * 32];
    script_open(&s);
    s.config.nom_freq = 20;
    m.compress = next_random(&m, 4) != 0;
    m.timing = (enum timing)next_random(&m, TIMINGS);
    m.full = 1 + next_random(&m, 6);
    m.now = 1000000;
    lay_out(&m);
    size_t size = assemble(&m, code);
    struct dec_image *image = script_code_at(&s, 0, BASE, code, size, "program");
    m.ip = m.blocks[0].start;
    psb(&m, true);
    happened(&m, DEC_ENABLE, 0, 0, m.ip, m.timing == CYCLES);
    for (int i = 0; i < STEPS; i++)
        run_block(&m);
    flush_bits(&m);
    address(&m, ppt_fup, m.ip);
    cyc(&m);
    put_ip(&s, ppt_tip_pgd, 0);
    happened(&m, DEC_DISABLE, DEC_ASYNC_DISABLE, m.ip, 0, false);
    assert_int_equal(script_run(&s), 0);
    assert_int_equal(s.slow, 0);
    compare(&m);
    in_pieces(&m);
    compare(&m);
    make_holes(&m, image, size);
    assert_int_equal(script_run(&s), 0);
    compare_parts(&m);
    assert_int_equal(s.slow, 0);
    in_pieces(&m);
    compare_parts(&m);
    st_vec_free(&m.truths);
    script_close(&s);
}

static void what_the_model_did_is_what_is_decoded(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        one_program(seed * 7919);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_model_did_is_what_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
