/* Intel PT packets as the fast walk reads them: their sizes and payloads (SDM, chapter Intel Processor Trace,
 * "Packet Definitions"). */
#ifndef ST_DECODER_PT_FAST_PACKET_H
#define ST_DECODER_PT_FAST_PACKET_H

#include "decoder/pt/code.h"

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What a packet begins with. Those with an address have their 5 low bits alone: the others say how it is
 * packed. */
enum {
    PACKET_PAD = 0x00,
    PACKET_EXTENDED = 0x02, /* the next byte tells which */
    PACKET_TIP = 0x0d,
    PACKET_PGE = 0x11,
    PACKET_PGD = 0x01,
    PACKET_FUP = 0x1d,
    PACKET_TSC = 0x19,
    PACKET_MTC = 0x59,
    PACKET_MODE = 0x99,

    EXTENDED_PSB = 0x82,
    EXTENDED_PSBEND = 0x23,
    EXTENDED_PIP = 0x43,
    EXTENDED_VMCS = 0xc8,
    EXTENDED_OVF = 0xf3,
    EXTENDED_CBR = 0x03,
    EXTENDED_TMA = 0x73,
    EXTENDED_TNT = 0xa3,

    PSB_SIZE = 16,
};

/* Bytes at the end of a packet's address field that are there, by its IPBytes; 0xff: reserved. */
static const uint8_t packet_ip_sizes[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};

/* Little-endian, n at most 8. */
static inline uint64_t packet_number(const uint8_t *p, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static inline size_t packet_extended_size(const uint8_t *p)
{
    switch (p[1]) {
    case EXTENDED_PSB:
        return PSB_SIZE;
    case EXTENDED_PSBEND:
    case EXTENDED_OVF:
        return 2;
    case EXTENDED_PIP:
    case EXTENDED_TNT:
        return 8;
    case EXTENDED_CBR:
        return 4;
    case EXTENDED_TMA:
    case EXTENDED_VMCS:
        return 7;
    default:
        return 0;
    }
}

/* Whether a whole packet's payload is one that there can be; else it is damage. */
static inline bool packet_extended_fits(const uint8_t *p)
{
    switch (p[1]) {
    case EXTENDED_PSB:
        for (unsigned i = 2; i < PSB_SIZE; i += 2)
            if (p[i] != p[0] || p[i + 1] != p[1])
                return false;
        return true;
    case EXTENDED_TNT: /* without the stop bit */
        return packet_number(p + 2, 6) != 0;
    case EXTENDED_CBR:
        return p[2] != 0;
    case EXTENDED_TMA: /* reserved bits */
        return !p[4] && !(p[6] & 0xfe);
    default:
        return true;
    }
}

static inline size_t packet_cyc_size(const uint8_t *p, const uint8_t *end)
{
    size_t n = 1;
    if (!(p[0] & 4))
        return 1;
    while (p + n < end && n < 6 && p[n] & 1)
        n++;
    return n < 6 ? n + 1 : 0; /* no CPU counts to 2^40 between two of them */
}

/* How long the packet at p, in front of `end`, is by what there is of it; 0: it is none of those that the
 * fast walk knows. */
static inline size_t packet_whole_size(const uint8_t *p, const uint8_t *end)
{
    size_t left = (size_t)(end - p);
    if (!(*p & 1)) {
        if (*p != PACKET_EXTENDED)
            return 1; /* TNT or PAD */
        return left > 1 ? packet_extended_size(p) : 2;
    }
    if ((*p & 3) == 3)
        return packet_cyc_size(p, end);
    if (*p == PACKET_TSC)
        return 8;
    if (*p == PACKET_MTC)
        return 2;
    if (*p == PACKET_MODE)
        return left < 2 || p[1] >> 5 <= 1 ? 2 : 0;
    unsigned kind = *p & 0x1f;
    bool ip = kind == PACKET_TIP || kind == PACKET_PGE || kind == PACKET_PGD || kind == PACKET_FUP;
    return ip && packet_ip_sizes[*p >> 5] != 0xff ? 1u + packet_ip_sizes[*p >> 5] : 0;
}

/* The size of the packet at p; 0: it is cut off by `end`, or is none of those that the fast walk knows. */
static inline size_t packet_size(const uint8_t *p, const uint8_t *end)
{
    size_t left = (size_t)(end - p), n;
    if (left == 0)
        return 0;
    n = packet_whole_size(p, end);
    if (n > left || (*p == PACKET_EXTENDED && n && !packet_extended_fits(p)))
        return 0;
    return n;
}

/* Whether the bytes end within the packet at p. */
static inline bool packet_is_cut(const uint8_t *p, const uint8_t *end)
{
    return p < end && packet_whole_size(p, end) > (size_t)(end - p);
}

/* Whether the rest of a CYC packet may be an OVF (erratum SKD007): CYC packets of little do not follow on one
 * another. */
static inline bool packet_is_cut_cyc(const uint8_t *p, size_t size, const uint8_t *end)
{
    return size == 2 && p[1] == PACKET_EXTENDED && p + 2 < end && p[2] == EXTENDED_OVF;
}

/* The payload of a whole CYC packet. */
static inline uint64_t packet_cyc(const uint8_t *p, size_t size)
{
    uint64_t value = p[0] >> 3;
    unsigned shift = 5;
    for (size_t i = 1; i < size; i++, shift += 7)
        value |= shift < 64 ? (uint64_t)(p[i] >> 1) << shift : 0;
    return value;
}

/* The address of a whole packet that has one, unpacked by the last one. False: it was suppressed. */
static inline bool packet_ip(const uint8_t *p, uint64_t *last)
{
    switch (p[0] >> 5) {
    case 1:
        *last = (*last & ~0xffffull) | packet_number(p + 1, 2);
        return true;
    case 2:
        *last = (*last & ~0xffffffffull) | packet_number(p + 1, 4);
        return true;
    case 3:
        *last = (uint64_t)((int64_t)(packet_number(p + 1, 6) << 16) >> 16);
        return true;
    case 4:
        *last = (*last & ~0xffffffffffffull) | packet_number(p + 1, 6);
        return true;
    case 6:
        *last = packet_number(p + 1, 8);
        return true;
    default:
        return false;
    }
}

/* Bits of a TNT packet, oldest at the top; behind the youngest stands a 1. */
static const uint64_t TNT_NONE = (uint64_t)1 << 63;

static inline uint64_t packet_tnt(const uint8_t *p)
{
    uint64_t bits = *p == PACKET_EXTENDED ? packet_number(p + 2, 6) : *p >> 1;
    if (bits == 0)
        return 0;
    /* The packet's own stop bit, its highest, is shifted out. */
    int top = __builtin_clzll(bits);
    return (bits << 1 | 1) << top;
}

/* How many of the oldest bits are as the first; `bits` has one at least. */
static inline unsigned packet_tnt_same(uint64_t bits)
{
    unsigned all = 63 - (unsigned)__builtin_ctzll(bits);
    unsigned same = (unsigned)__builtin_clzll(bits >> 63 ? ~bits : bits);
    return same < all ? same : all;
}

/* A packet of time, or none at all. */
static inline bool packet_is_time(const uint8_t *p)
{
    return *p == PACKET_PAD || (*p & 3) == 3 || *p == PACKET_TSC || *p == PACKET_MTC ||
           (*p == PACKET_EXTENDED && (p[1] == EXTENDED_TMA || p[1] == EXTENDED_CBR));
}

/* A CYC packet of two bytes and an MTC packet, which most of a trace may be while nothing else happens. */
static inline bool packet_is_tick(const uint8_t *p)
{
    uint32_t both;
    memcpy(&both, p, sizeof(both));
    return (le32toh(both) & 0xff0107) == ((uint32_t)PACKET_MTC << 16 | 7);
}

/* Past packets that are nothing but cycles, ticks of the crystal, or none at all, as far as they are short.
 */
static inline const uint8_t *packet_past_times(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p++) {
        while ((size_t)(end - p) >= 8 && packet_is_tick(p) && packet_is_tick(p + 4))
            p += 8;
        if (p == end)
            break;
        if (*p == PACKET_MTC || (*p & 7) == 7) {
            if (p + 1 == end || (*p != PACKET_MTC && (p[1] & 1 || packet_is_cut_cyc(p, 2, end))))
                break;
            p++;
        } else if (*p != PACKET_PAD && (*p & 7) != 3) {
            break;
        }
    }
    return p;
}

/* The mode that a MODE.Exec packet tells. False: it is another, or a reserved one. */
static inline bool packet_mode(const uint8_t *p, enum code_mode *mode)
{
    static const enum code_mode modes[] = {CODE_16, CODE_64, CODE_32};
    if (p[1] >> 5 != 0 || (p[1] & 3) == 3)
        return false;
    *mode = modes[p[1] & 3];
    return true;
}

/* A MODE.TSX packet in or at the end of a transaction. */
static inline bool packet_is_transaction(const uint8_t *p)
{
    return p[1] >> 5 == 1 && p[1] & 3;
}

#endif
