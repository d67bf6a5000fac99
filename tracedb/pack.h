/* Calls in as few bytes as is quick: a word that says how long each field is, and the fields. */
#ifndef ST_TRACEDB_PACK_H
#define ST_TRACEDB_PACK_H

#include "tracedb/tracedb.h"

#include <string.h>

/* A call and what ran during it. */
struct tdb_call {
    struct tdb_span span;

    struct tdb_work work;
};

enum { TDB_PACKED_MOST = 64 /* bytes of a call, with what is written behind it */ };

/* Lengths by their codes: of what is seldom 0, often 0, or has 32 bits. */
#define TDB_CODE8(v) (unsigned)(((v) > 0xff) + ((v) > 0xffff) + ((v) > 0xffffffff))
#define TDB_CODE0(v) (unsigned)(((v) > 0) + ((v) > 0xffff) + ((v) > 0xffffffff))
#define TDB_CODE4(v) (unsigned)(((v) > 0) + ((v) > 0xff) + ((v) > 0xffff))

static inline uint8_t *tdb_pack_field(uint8_t *to, uint64_t value, unsigned size)
{
    memcpy(to, &value, 8);
    return to + size;
}

static inline uint64_t tdb_unpack_field(const uint8_t **from, unsigned size)
{
    uint64_t value;

    memcpy(&value, *from, 8);
    *from += size;
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* Puts a call down and returns the end. `index`: its own, from which the parent is counted; `before`: a start
 * that the call's does not lie before. */
static inline uint8_t *tdb_pack(uint8_t *to, const struct tdb_span *s, const struct tdb_work *w,
                                uint32_t index, uint64_t before)
{
    uint64_t start = s->start - before, self = s->self == s->duration ? 0 : s->self + 1;
    uint32_t parent = s->parent ? index + 1 - s->parent : 0;
    uint64_t instructions = w ? w->instructions : 0, cycles = w ? w->cycles : 0;
    unsigned a = TDB_CODE8(start), b = TDB_CODE8(s->duration), c = TDB_CODE0(self), d = TDB_CODE4(parent);
    unsigned e = s->symbol > 0xffff, f = s->depth > 0xff, g = s->flags > 0xff;
    unsigned h = TDB_CODE0(instructions), i = TDB_CODE0(cycles);
    uint16_t head = (uint16_t)(a | b << 2 | c << 4 | d << 6 | e << 8 | f << 9 | g << 10 | h << 11 | i << 13);

    memcpy(to, &head, sizeof(head));
    to = tdb_pack_field(to + sizeof(head), start, 1u << a);
    to = tdb_pack_field(to, s->duration, 1u << b);
    to = tdb_pack_field(to, self, c ? 1u << c : 0);
    to = tdb_pack_field(to, parent, d ? 1u << (d - 1) : 0);
    to = tdb_pack_field(to, s->symbol, 2 + 2 * e);
    to = tdb_pack_field(to, s->depth, 1 + 3 * f);
    to = tdb_pack_field(to, s->flags, 1 + 3 * g);
    to = tdb_pack_field(to, instructions, h ? 1u << h : 0);
    return tdb_pack_field(to, cycles, i ? 1u << i : 0);
}

/* The other way; 8 bytes behind the end are read too. */
static inline const uint8_t *tdb_unpack(const uint8_t *from, struct tdb_call *call, uint32_t index,
                                        uint64_t before)
{
    unsigned c, d, h, i;
    uint16_t head;
    uint64_t self;
    uint32_t parent;

    memcpy(&head, from, sizeof(head));
    from += sizeof(head);
    c = head >> 4 & 3;
    d = head >> 6 & 3;
    h = head >> 11 & 3;
    i = head >> 13 & 3;
    call->span.start = before + tdb_unpack_field(&from, 1u << (head & 3));
    call->span.duration = tdb_unpack_field(&from, 1u << (head >> 2 & 3));
    self = tdb_unpack_field(&from, c ? 1u << c : 0);
    call->span.self = c ? self - 1 : call->span.duration;
    parent = (uint32_t)tdb_unpack_field(&from, d ? 1u << (d - 1) : 0);
    call->span.parent = d ? index + 1 - parent : 0;
    call->span.symbol = (uint32_t)tdb_unpack_field(&from, 2 + 2 * (head >> 8 & 1));
    call->span.depth = (uint32_t)tdb_unpack_field(&from, 1 + 3 * (head >> 9 & 1));
    call->span.flags = (uint32_t)tdb_unpack_field(&from, 1 + 3 * (head >> 10 & 1));
    call->work.instructions = tdb_unpack_field(&from, h ? 1u << h : 0);
    call->work.cycles = tdb_unpack_field(&from, i ? 1u << i : 0);
    return from;
}

#endif
