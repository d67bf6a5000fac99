/* Lengths by the maps of opcodes. */
#include "decoder/image/newer.h"

#include <stdbool.h>
#include <string.h>

enum {
    REX2 = 0xd5,
    EVEX = 0x62,
    VEX3 = 0xc4,
    VEX2 = 0xc5,

    JMPABS = 0xa1,
    JMPABS_SIZE = 3 + 8, /* behind its legacy prefixes */

    MAP_APX = 4, /* of EVEX: legacy instructions */
    MAPS = 8,
};

/* What stands before an instruction, as far as `at`. */
struct prefixes {
    size_t at;

    bool operand, address, lock, repeat, rex; /* 66; 67; f0; f2 or f3; 40 to 4f, last */
};

static bool is_legacy_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

static void read_prefixes(const uint8_t *bytes, size_t n, struct prefixes *p)
{
    memset(p, 0, sizeof(*p));
    for (; p->at < n && p->at < DEC_INSN_MAX; p->at++) {
        uint8_t byte = bytes[p->at];
        bool legacy = is_legacy_prefix(byte);
        if (!legacy && byte >> 4 != 4)
            return;
        p->rex = !legacy;
        p->operand |= byte == 0x66;
        p->address |= byte == 0x67;
        p->lock |= byte == 0xf0;
        p->repeat |= byte == 0xf2 || byte == 0xf3;
    }
}

/* The bytes of a ModRM and what addresses memory behind it; 0: they are cut. Addresses are of 32 or 64 bits.
 */
static size_t modrm_size(const uint8_t *at, size_t left)
{
    if (left < 1)
        return 0;
    unsigned mod = at[0] >> 6, rm = at[0] & 7;
    bool sib = mod != 3 && rm == 4;
    if (sib && left < 2)
        return 0;
    unsigned base = sib ? at[1] & 7 : rm;
    size_t displacement = mod == 1 ? 1 : mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
    return 1 + sib + displacement;
}

/* Where the opcode of a VEX, EVEX or legacy instruction stands, and in which map. */
struct place {
    size_t opcode;

    unsigned map;

    bool evex;

    size_t wide; /* bytes of an immediate of the operand's size */
};

/* Of legacy instructions that were promoted to EVEX. */
static size_t apx_immediate(uint8_t opcode, uint8_t modrm, size_t wide)
{
    bool test = (modrm >> 3 & 7) < 2; /* TEST, CTESTcc; NOT, NEG, MUL, ... have none */
    switch (opcode) {
    case 0x24: /* SHLD */
    case 0x2c: /* SHRD */
    case 0x6b: /* IMUL */
    case 0x80:
    case 0x83: /* ADD, OR, ..., CCMPcc */
    case 0xc0:
    case 0xc1: /* ROL, ROR, ... */
    case 0xd4: /* SHA1RNDS4 */
        return 1;
    case 0x69:
    case 0x81:
        return wide;
    case 0xf6:
        return test ? 1 : 0;
    case 0xf7:
        return test ? wide : 0;
    default:
        return 0;
    }
}

static size_t immediate(const struct place *place, uint8_t opcode, uint8_t modrm)
{
    switch (place->map) {
    case 1:
        return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6);
    case 3:
        return 1;
    case MAP_APX:
        return place->evex ? apx_immediate(opcode, modrm, place->wide) : 0;
    case 7: /* URDMSR, UWRMSR, RDMSR, WRMSRNS */
        return 4;
    default:
        return 0;
    }
}

/* An instruction with a ModRM, as all are here. */
static enum dec_newer_kind finish(const uint8_t *bytes, size_t n, const struct place *place,
                                  struct dec_newer *newer)
{
    size_t at = place->opcode + 1;
    if (at >= DEC_INSN_MAX)
        return DEC_NEWER_BAD;
    size_t modrm = at < n ? modrm_size(bytes + at, n - at) : 0;
    if (!modrm)
        return n < DEC_INSN_MAX ? DEC_NEWER_CUT : DEC_NEWER_BAD;
    size_t length = at + modrm + immediate(place, bytes[place->opcode], bytes[at]);
    if (length > DEC_INSN_MAX)
        return DEC_NEWER_BAD;
    newer->length = (uint8_t)length;
    return length > n ? DEC_NEWER_CUT : DEC_NEWER_PLAIN;
}

/* Opcodes that REX2 does not go with: rows of both maps, prefixes, and what leads to other maps. */
static bool takes_rex2(unsigned map, uint8_t opcode)
{
    unsigned row = opcode >> 4;
    if (map == 1)
        return row != 3 && row != 8;
    return row != 4 && row != 7 && row != 0xa && row != 0xe && !is_legacy_prefix(opcode) && opcode != 0x0f &&
           opcode != REX2 && opcode != EVEX && opcode != VEX2 && opcode != VEX3;
}

static enum dec_newer_kind jump_absolute(const struct prefixes *p, uint8_t payload, size_t n,
                                         struct dec_newer *newer)
{
    size_t length = p->at + JMPABS_SIZE;
    if (payload & 8 || p->operand || p->address || p->lock || p->repeat || length > DEC_INSN_MAX)
        return DEC_NEWER_BAD;
    newer->length = (uint8_t)length;
    return length > n ? DEC_NEWER_CUT : DEC_NEWER_JUMP;
}

/* REX2 is a REX with one more bit for each register, and says the map instead of 0F. */
static enum dec_newer_kind rex2(const uint8_t *bytes, size_t n, const struct prefixes *p,
                                struct dec_newer *newer)
{
    size_t at = p->at;
    if (p->rex || at + 2 >= DEC_INSN_MAX)
        return DEC_NEWER_BAD;
    if (at + 2 >= n)
        return DEC_NEWER_CUT;
    uint8_t payload = bytes[at + 1], opcode = bytes[at + 2];
    unsigned map = payload >> 7;
    if (map == 0 && opcode == JMPABS)
        return jump_absolute(p, payload, n, newer);
    if (!takes_rex2(map, opcode) || (map == 1 && opcode >> 2 == 8 && payload & 0x40)) /* no such CR or DR */
        return DEC_NEWER_BAD;
    size_t left = (n < DEC_INSN_MAX ? n : DEC_INSN_MAX) - (at + 2);
    memcpy(newer->like, bytes, at);
    newer->like[at++] = 0x40 | (payload & 0xf);
    if (map == 1)
        newer->like[at++] = 0x0f;
    memcpy(newer->like + at, bytes + p->at + 2, left);
    newer->nlike = (uint8_t)(at + left);
    newer->length = map == 1 ? 0 : 1;
    return DEC_NEWER_LIKE;
}

static enum dec_newer_kind evex(const uint8_t *bytes, size_t n, const struct prefixes *p,
                                struct dec_newer *newer)
{
    const uint8_t *at = bytes + p->at;
    if (p->rex || p->operand || p->lock || p->repeat || p->at + 4 >= DEC_INSN_MAX)
        return DEC_NEWER_BAD;
    if (p->at + 4 >= n)
        return DEC_NEWER_CUT;
    struct place place = {.opcode = p->at + 4, .map = at[1] & 7, .evex = true};
    bool w = at[2] & 0x80, operand = (at[2] & 3) == 1;
    place.wide = operand && !w ? 2 : 4;
    if (place.map == 0 || (place.map == MAP_APX && at[3] & 0xe0))
        return DEC_NEWER_BAD;
    return finish(bytes, n, &place, newer);
}

/* An EVEX prefix with what older ones have not: map 4, or a bit of a register from 16 on where those had a
 * constant. */
static bool is_extended(const uint8_t *at, size_t left)
{
    return left > 2 && ((at[1] & 7) == MAP_APX || at[1] & 8 || !(at[2] & 4));
}

enum dec_newer_kind dec_newer_first(const uint8_t *bytes, size_t n, struct dec_newer *newer)
{
    struct prefixes p;
    read_prefixes(bytes, n, &p);
    if (p.at >= n || p.at >= DEC_INSN_MAX)
        return DEC_NEWER_NONE;
    if (bytes[p.at] == REX2)
        return rex2(bytes, n, &p, newer);
    return bytes[p.at] == EVEX && is_extended(bytes + p.at, n - p.at) ? evex(bytes, n, &p, newer)
                                                                      : DEC_NEWER_NONE;
}

static enum dec_newer_kind vex(const uint8_t *bytes, size_t n, const struct prefixes *p,
                               struct dec_newer *newer)
{
    const uint8_t *at = bytes + p->at;
    size_t size = at[0] == VEX2 ? 2 : 3;
    if (p->rex || p->operand || p->lock || p->repeat)
        return DEC_NEWER_BAD;
    if (p->at + size >= n)
        return n < DEC_INSN_MAX ? DEC_NEWER_CUT : DEC_NEWER_BAD;
    struct place place = {.opcode = p->at + size, .map = size == 2 ? 1 : at[1] & 0x1f};
    return place.map == 0 || place.map >= MAPS ? DEC_NEWER_BAD : finish(bytes, n, &place, newer);
}

/* 0F 38, 0F 3A, and the groups of 0F 00 and 0F 01. */
static enum dec_newer_kind legacy(const uint8_t *bytes, size_t n, const struct prefixes *p,
                                  struct dec_newer *newer)
{
    const uint8_t *at = bytes + p->at;
    if (p->at + 1 >= n)
        return DEC_NEWER_NONE;
    struct place place = {.opcode = p->at + 1, .map = 0};
    if (at[1] == 0x38 || at[1] == 0x3a) {
        place.opcode++;
        place.map = at[1] == 0x38 ? 2 : 3;
    } else if (at[1] > 1) {
        return DEC_NEWER_NONE;
    }
    enum dec_newer_kind kind = place.opcode < n   ? finish(bytes, n, &place, newer)
                               : n < DEC_INSN_MAX ? DEC_NEWER_CUT
                                                  : DEC_NEWER_BAD;
    bool returns = kind == DEC_NEWER_PLAIN && at[1] == 1 && at[2] == 0xca && p->repeat;
    return returns ? DEC_NEWER_FAR_RETURN : kind;
}

enum dec_newer_kind dec_newer_last(const uint8_t *bytes, size_t n, struct dec_newer *newer)
{
    struct prefixes p;
    read_prefixes(bytes, n, &p);
    if (p.at >= n || p.at >= DEC_INSN_MAX)
        return DEC_NEWER_NONE;
    switch (bytes[p.at]) {
    case EVEX:
        return evex(bytes, n, &p, newer);
    case VEX2:
    case VEX3:
        return vex(bytes, n, &p, newer);
    case 0x0f:
        return legacy(bytes, n, &p, newer);
    default:
        return DEC_NEWER_NONE;
    }
}
