/* Instruction lengths, remembered by address. */
#include "decoder/model/length.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

enum {
    CACHE_LINES = 16384, /* a power of two */
    CALL_LEAST = 2,
    CALL_MOST = 10, /* two prefixes, FF, ModRM, SIB, 32 bits of displacement, and one to spare */
};

struct line {
    const struct dec_space *space;

    uint64_t address, since, until;

    unsigned length;
};

struct dec_lengths {
    ZydisDecoder decoder;

    struct line cache[CACHE_LINES];
};

int dec_lengths_new(unsigned bits, struct dec_lengths **lengths, struct st_error *err)
{
    struct dec_lengths *l = calloc(1, sizeof(*l));

    if (!l)
        return st_nomem(err, "the lengths of instructions");
    ZydisDecoderInit(&l->decoder, bits == 32 ? ZYDIS_MACHINE_MODE_LEGACY_32 : ZYDIS_MACHINE_MODE_LONG_64,
                     bits == 32 ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64);
    *lengths = l;
    return 0;
}

void dec_lengths_free(struct dec_lengths *lengths)
{
    free(lengths);
}

static unsigned decode(const struct dec_lengths *l, const struct dec_space *space, uint64_t time,
                       uint64_t address)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    size_t n = dec_space_read(space, time, address, bytes, sizeof(bytes));
    ZydisDecodedInstruction instruction;

    if (!n || ZYAN_FAILED(ZydisDecoderDecodeInstruction(&l->decoder, NULL, bytes, n, &instruction)))
        return 0;
    return instruction.length;
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
    ZydisDecodedInstruction instruction;
    uint8_t bytes[CALL_MOST];

    for (uint64_t n = CALL_LEAST; space && n <= CALL_MOST && n <= address; n++) {
        if (dec_space_read(space, time, address - n, bytes, n) == n &&
            ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&l->decoder, NULL, bytes, n, &instruction)) &&
            instruction.length == n && instruction.meta.category == ZYDIS_CATEGORY_CALL)
            return true;
    }
    return false;
}
