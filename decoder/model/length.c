/* Instruction lengths, remembered by address. */
#include "decoder/model/length.h"

#include "decoder/image/newer.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

enum {
    CACHE_LINES = 16384, /* a power of two */
    CALL_LEAST = 2,
    CALL_MOST = 10, /* three bytes of prefixes, FF, ModRM, SIB, 32 bits of displacement */
};

struct line {
    const struct dec_space *space;

    uint64_t address, since, until;

    unsigned length;
};

struct dec_lengths {
    ZydisDecoder decoder;

    bool newer; /* there may be instructions of decoder/image/newer.h */

    struct line cache[CACHE_LINES];
};

int dec_lengths_new(unsigned bits, struct dec_lengths **lengths, struct st_error *err)
{
    struct dec_lengths *l = calloc(1, sizeof(*l));

    if (!l)
        return st_nomem(err, "the lengths of instructions");
    ZydisDecoderInit(&l->decoder, bits == 32 ? ZYDIS_MACHINE_MODE_LEGACY_32 : ZYDIS_MACHINE_MODE_LONG_64,
                     bits == 32 ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64);
    l->newer = bits != 32;
    *lengths = l;
    return 0;
}

void dec_lengths_free(struct dec_lengths *lengths)
{
    free(lengths);
}

/* The length of the instruction, and whether it is a call; 0: it is none. */
static unsigned decode_bytes(const struct dec_lengths *l, const uint8_t *bytes, size_t n, bool *call)
{
    ZydisDecodedInstruction instruction;
    struct dec_newer newer;
    unsigned more = 0;
    enum dec_newer_kind kind = l->newer ? dec_newer_first(bytes, n, &newer) : DEC_NEWER_NONE;
    *call = false;
    if (kind == DEC_NEWER_LIKE) {
        bytes = newer.like;
        n = newer.nlike;
        more = newer.length;
    } else if (kind != DEC_NEWER_NONE) {
        return kind == DEC_NEWER_BAD || kind == DEC_NEWER_CUT ? 0 : newer.length;
    }
    if (n && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&l->decoder, NULL, bytes, n, &instruction))) {
        *call = instruction.meta.category == ZYDIS_CATEGORY_CALL &&
                instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
        return instruction.length + more;
    }
    kind = l->newer && kind != DEC_NEWER_LIKE ? dec_newer_last(bytes, n, &newer) : DEC_NEWER_NONE;
    return kind == DEC_NEWER_PLAIN || kind == DEC_NEWER_FAR_RETURN ? newer.length : 0;
}

static unsigned decode(const struct dec_lengths *l, const struct dec_space *space, uint64_t time,
                       uint64_t address)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    size_t n = dec_space_read(space, time, address, bytes, sizeof(bytes));
    bool call;

    return decode_bytes(l, bytes, n, &call);
}

unsigned dec_length_at(struct dec_lengths *l, const struct dec_space *space, uint64_t time, uint64_t address)
{
    uint64_t hash = (address ^ (uint64_t)(uintptr_t)space) * 0x9e3779b97f4a7c15u;
    struct line *line = &l->cache[hash >> 50 & (CACHE_LINES - 1)];
    const struct dec_mapping *mapping;

    if (!space)
        return 0;
    if (line->space == space && line->address == address && line->since <= time && time < line->until)
        return line->length;
    mapping = dec_space_find(space, time, address);
    if (!mapping)
        return 0;
    *line = (struct line){space, address, mapping->since < time ? mapping->since : time, mapping->until,
                          decode(l, space, time, address)};
    return line->length;
}

bool dec_call_before(const struct dec_lengths *l, const struct dec_space *space, uint64_t time,
                     uint64_t address)
{
    uint8_t bytes[CALL_MOST];
    bool call;

    for (uint64_t n = CALL_LEAST; space && n <= CALL_MOST && n <= address; n++) {
        if (dec_space_read(space, time, address - n, bytes, n) == n &&
            decode_bytes(l, bytes, n, &call) == n && call)
            return true;
    }
    return false;
}
