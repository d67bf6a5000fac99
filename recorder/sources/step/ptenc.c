/* The Intel PT packet encoder. */
#include "recorder/sources/step/ptenc.h"

#include <string.h>

enum {
    OP_TIP = 0x0d,
    OP_TIP_PGE = 0x11,
    OP_TIP_PGD = 0x01,
    OP_FUP = 0x1d,
    OP_TSC = 0x19,
    OP_MODE = 0x99,

    TNT_MAX = 6, /* bits of a short TNT; a long one holds no more a byte */
};

static void put(struct ptenc *e, const void *bytes, size_t n)
{
    struct ptenc_ring *r = e->ring;
    size_t at = r->head % r->size;
    size_t first = n < r->size - at ? n : r->size - at;

    memcpy(r->data + at, bytes, first);
    memcpy(r->data, (const uint8_t *)bytes + first, n - first);
    r->head += n;
    e->since_psb += (uint32_t)n;
}

static void put_le(uint8_t *to, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/* Short TNT: bit 0 is 0, then the branches, the youngest lowest, then a stop bit. */
static void flush_tnt(struct ptenc *e)
{
    uint8_t byte;

    if (!e->ntnt)
        return;
    byte = (uint8_t)((1u << (e->ntnt + 1)) | ((unsigned)e->tnt << 1));
    e->tnt = 0;
    e->ntnt = 0;
    put(e, &byte, 1);
}

static uint64_t sign_extend_48(uint64_t ip)
{
    return (uint64_t)((int64_t)(ip << 16) >> 16);
}

/* SDM, table "FUP/TIP IP reconstruction": IPBytes 001 = 16, 010 = 32, 011 = 48 bits sign-extended, 110 = 64
 * bits. */
static void put_ip(struct ptenc *e, unsigned op, uint64_t ip)
{
    uint8_t bytes[9];
    unsigned code, n;

    if (e->has_last_ip && !((ip ^ e->last_ip) >> 16))
        code = 1, n = 2;
    else if (e->has_last_ip && !((ip ^ e->last_ip) >> 32))
        code = 2, n = 4;
    else if (ip == sign_extend_48(ip))
        code = 3, n = 6;
    else
        code = 6, n = 8;
    e->last_ip = ip;
    e->has_last_ip = true;
    bytes[0] = (uint8_t)(code << 5 | op);
    put_le(bytes + 1, ip, n);
    put(e, bytes, n + 1);
}

static void put_pgd(struct ptenc *e)
{
    static const uint8_t pgd = OP_TIP_PGD;

    put(e, &pgd, 1);
    e->enabled = false;
    e->ret_n = 0;
}

static void put_mode(struct ptenc *e)
{
    uint8_t bytes[2] = {OP_MODE, e->mode};

    put(e, bytes, sizeof(bytes));
}

static void put_tsc(struct ptenc *e)
{
    uint8_t bytes[8] = {OP_TSC};

    put_le(bytes + 1, e->time, 7);
    put(e, bytes, sizeof(bytes));
}

/* PSB+: a place where decoding can begin. It forgets the last IP and the calls (SDM, "PSB Compound Packet
 * Event"). */
static void put_psb(struct ptenc *e, uint64_t ip)
{
    static const uint8_t psb[16] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                    0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    static const uint8_t psbend[2] = {0x02, 0x23};

    flush_tnt(e);
    put(e, psb, sizeof(psb));
    e->has_last_ip = false;
    e->ret_n = 0;
    put_tsc(e);
    if (e->enabled) {
        put_mode(e);
        put_ip(e, OP_FUP, ip);
    }
    put(e, psbend, sizeof(psbend));
    e->since_psb = 0;
}

/* Only where the program stands at a branch's target, so that no decoder has instructions left to walk before
 * the FUP. */
static void maybe_psb(struct ptenc *e, uint64_t ip)
{
    if (e->since_psb >= e->psb_period)
        put_psb(e, ip);
}

static void tnt_bit(struct ptenc *e, bool bit, uint64_t to)
{
    e->tnt = (uint8_t)(e->tnt << 1 | bit);
    if (++e->ntnt == TNT_MAX)
        flush_tnt(e);
    maybe_psb(e, to);
}

void ptenc_init(struct ptenc *e, struct ptenc_ring *ring, const struct ptenc_config *config)
{
    memset(e, 0, sizeof(*e));
    e->ring = ring;
    e->psb_period = config->psb_period ? config->psb_period : PTENC_PSB_PERIOD;
    e->since_psb = e->psb_period;
    e->ret_compression = config->ret_compression;
    e->mode = PTENC_MODE_64;
}

void ptenc_time(struct ptenc *e, uint64_t tsc)
{
    flush_tnt(e);
    e->time = tsc;
    if (!e->enabled && e->since_psb >= e->psb_period)
        put_psb(e, 0);
    else
        put_tsc(e);
}

void ptenc_enable(struct ptenc *e, uint64_t ip, enum ptenc_mode mode)
{
    e->mode = mode;
    e->enabled = true;
    put_mode(e);
    put_ip(e, OP_TIP_PGE, ip);
}

void ptenc_disable(struct ptenc *e)
{
    if (!e->enabled)
        return;
    flush_tnt(e);
    put_pgd(e);
}

void ptenc_disable_async(struct ptenc *e, uint64_t ip)
{
    if (!e->enabled)
        return;
    flush_tnt(e);
    put_ip(e, OP_FUP, ip);
    put_pgd(e);
}

void ptenc_cond(struct ptenc *e, bool taken, uint64_t to)
{
    tnt_bit(e, taken, to);
}

void ptenc_indirect(struct ptenc *e, uint64_t to)
{
    flush_tnt(e);
    put_ip(e, OP_TIP, to);
    maybe_psb(e, to);
}

void ptenc_far(struct ptenc *e, uint64_t to, enum ptenc_mode mode)
{
    flush_tnt(e);
    if (mode != e->mode) {
        e->mode = mode;
        put_mode(e);
    }
    put_ip(e, OP_TIP, to);
    maybe_psb(e, to);
}

void ptenc_call(struct ptenc *e, uint64_t next)
{
    if (!e->ret_compression)
        return;
    e->ret[e->ret_top++ % PTENC_RET_STACK] = next;
    if (e->ret_n < PTENC_RET_STACK)
        e->ret_n++;
}

void ptenc_ret(struct ptenc *e, uint64_t to)
{
    if (e->ret_n && e->ret[(e->ret_top - 1) % PTENC_RET_STACK] == to) {
        e->ret_top--;
        e->ret_n--;
        tnt_bit(e, true, to);
        return;
    }
    /* Decoders differ in whether a return that was not compressed takes a call off the stack: compress none
     * of the older ones, and all of them are right. */
    e->ret_n = 0;
    ptenc_indirect(e, to);
}
