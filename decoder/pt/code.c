/* Runs of instructions, decoded by Zydis (and decoder/image/newer.h) and kept by (image, file offset, mode).
 */
#include "decoder/pt/code.h"

#include "decoder/image/newer.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RUN = 256, /* instructions */
    WINDOW = 64,   /* bytes read ahead */
    LONGEST = ZYDIS_MAX_INSTRUCTION_LENGTH,
};

struct slot {
    const struct dec_image *image; /* NULL: free */

    uint64_t offset;

    struct code_run run;

    uint8_t mode;
};

struct code {
    ZydisDecoder decoder[CODE_MODES];

    struct slot *slots; /* open addressing; a power of two */

    size_t nslots, used;
};

int code_new(struct code **code, struct st_error *err)
{
    struct code *made = calloc(1, sizeof(*made));
    if (made)
        made->slots = calloc(4096, sizeof(*made->slots));
    if (!made || !made->slots) {
        free(made);
        return st_nomem(err, "the code cache");
    }
    made->nslots = 4096;
    ZydisDecoderInit(&made->decoder[CODE_64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&made->decoder[CODE_32], ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
    ZydisDecoderInit(&made->decoder[CODE_16], ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16);
    /* Lengths and kinds of branches are all that is asked of it. */
    for (unsigned mode = 0; mode < CODE_MODES; mode++)
        ZydisDecoderEnableMode(&made->decoder[mode], ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    *code = made;
    return 0;
}

void code_free(struct code *code)
{
    if (!code)
        return;
    free(code->slots);
    free(code);
}

size_t code_count(const struct code *code)
{
    return code->used;
}

static size_t hash(const struct dec_image *image, uint64_t offset, unsigned mode)
{
    uint64_t h = ((uintptr_t)image >> 4) * 0x9e3779b97f4a7c15u ^ (offset * 4 + mode);
    h *= 0xff51afd7ed558ccdu;
    return (size_t)(h ^ h >> 32);
}

static struct slot *slot_of(const struct code *code, const struct dec_image *image, uint64_t offset,
                            unsigned mode)
{
    size_t i = hash(image, offset, mode) & (code->nslots - 1);
    while (code->slots[i].image &&
           (code->slots[i].image != image || code->slots[i].offset != offset || code->slots[i].mode != mode))
        i = (i + 1) & (code->nslots - 1);
    return &code->slots[i];
}

static int grow(struct code *code)
{
    struct code bigger = {.nslots = code->nslots * 2};
    bigger.slots = calloc(bigger.nslots, sizeof(*bigger.slots));
    if (!bigger.slots)
        return ST_ENOMEM;
    for (size_t i = 0; i < code->nslots; i++) {
        const struct slot *old = &code->slots[i];
        if (old->image)
            *slot_of(&bigger, old->image, old->offset, old->mode) = *old;
    }
    free(code->slots);
    code->slots = bigger.slots;
    code->nslots = bigger.nslots;
    return 0;
}

/* mov to cr3: 0f 22 with a ModRM whose reg field is 3 (a REX.R would make it cr11, which is none). */
static bool is_mov_cr3(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_MOV && insn->opcode_map == ZYDIS_OPCODE_MAP_0F &&
           insn->opcode == 0x22 && insn->raw.modrm.reg == 3;
}

static enum code_end class_by_mnemonic(const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INTO:
    case ZYDIS_MNEMONIC_VMCALL:
        return CODE_FAR_CALL;
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_VMLAUNCH:
    case ZYDIS_MNEMONIC_VMRESUME:
        return CODE_FAR_RETURN;
    case ZYDIS_MNEMONIC_PTWRITE:
        return CODE_PTWRITE;
    default:
        return is_mov_cr3(insn) ? CODE_MOV_CR3 : CODE_FALLS;
    }
}

static enum code_end class_of(const ZydisDecodedInstruction *insn)
{
    bool far = insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR: /* where Zydis files these two also: an abort shows as an asynchronous branch
                                  */
        return insn->mnemonic == ZYDIS_MNEMONIC_XBEGIN || insn->mnemonic == ZYDIS_MNEMONIC_XEND
                   ? CODE_FALLS
                   : CODE_COND_JUMP;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (insn->mnemonic == ZYDIS_MNEMONIC_JMP)
            return far ? CODE_FAR_JUMP : CODE_JUMP;
        break;
    case ZYDIS_CATEGORY_CALL:
        if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
            return far ? CODE_FAR_CALL : CODE_CALL;
        break;
    case ZYDIS_CATEGORY_RET:
        if (insn->mnemonic == ZYDIS_MNEMONIC_RET)
            return far ? CODE_FAR_RETURN : CODE_RETURN;
        break;
    default:
        break;
    }
    return class_by_mnemonic(insn);
}

/* One instruction. */
struct insn {
    uint8_t end; /* as of struct code_run; CODE_BAD: it is none, or cut */

    uint8_t length;

    bool cut; /* the bytes end within it */

    bool direct;

    int32_t displacement;
};

static void decode_older(const struct code *code, enum code_mode mode, const uint8_t *bytes, size_t n,
                         struct insn *insn)
{
    ZydisDecodedInstruction zydis;
    ZyanStatus status = n ? ZydisDecoderDecodeInstruction(&code->decoder[mode], NULL, bytes, n, &zydis)
                          : ZYDIS_STATUS_NO_MORE_DATA;
    if (!ZYAN_SUCCESS(status)) {
        *insn = (struct insn){.end = CODE_BAD, .cut = status == ZYDIS_STATUS_NO_MORE_DATA};
        return;
    }
    *insn = (struct insn){
        .end = (uint8_t)class_of(&zydis), .length = zydis.length, .direct = zydis.raw.imm[0].is_relative};
    if (insn->direct)
        insn->displacement = (int32_t)zydis.raw.imm[0].value.s;
}

/* One that Zydis would not know. False: it is none of those. */
static bool decode_newer(const struct code *code, enum dec_newer_kind kind, const struct dec_newer *newer,
                         struct insn *insn)
{
    static const uint8_t ends[] = {[DEC_NEWER_PLAIN] = CODE_FALLS,
                                   [DEC_NEWER_JUMP] = CODE_JUMP,
                                   [DEC_NEWER_FAR_RETURN] = CODE_FAR_RETURN};
    switch (kind) {
    case DEC_NEWER_NONE:
        return false;
    case DEC_NEWER_BAD:
    case DEC_NEWER_CUT:
        *insn = (struct insn){.end = CODE_BAD, .cut = kind == DEC_NEWER_CUT};
        return true;
    case DEC_NEWER_LIKE:
        decode_older(code, CODE_64, newer->like, newer->nlike, insn);
        if (insn->end != CODE_BAD)
            insn->length += newer->length;
        return true;
    default:
        *insn = (struct insn){.end = ends[kind], .length = newer->length};
        return true;
    }
}

static void decode(const struct code *code, enum code_mode mode, const uint8_t *bytes, size_t n,
                   struct insn *insn)
{
    struct dec_newer newer;
    if (mode == CODE_64 && decode_newer(code, dec_newer_first(bytes, n, &newer), &newer, insn))
        return;
    decode_older(code, mode, bytes, n, insn);
    if (mode == CODE_64 && insn->end == CODE_BAD && !insn->cut)
        decode_newer(code, dec_newer_last(bytes, n, &newer), &newer, insn);
}

/* Bytes of a run are read through a window, so that the image is not asked for each instruction. */
struct window {
    const struct dec_space *space;

    uint64_t time;

    uint64_t address; /* of bytes[0] */

    size_t n;

    uint8_t bytes[WINDOW];
};

/* The bytes at `address`, up to the longest instruction; *n is how many there are. */
static const uint8_t *look(struct window *w, uint64_t address, size_t *n)
{
    if (address < w->address || address + LONGEST > w->address + w->n) {
        w->address = address;
        w->n = dec_space_read(w->space, w->time, address, w->bytes, sizeof(w->bytes));
    }
    *n = (size_t)(w->address + w->n - address);
    return w->bytes + (address - w->address);
}

/* Whether optimised uprobes may stand in code at an address. */
static bool is_probed(const struct dec_space *space, uint64_t address)
{
    return !(address >> 63) && dec_space_probed(space);
}

/* What they replace by a CALL: Linux 6.18 a NOP of 5 bytes, later ones one of 10. */
static bool is_probe(const uint8_t *bytes, size_t n)
{
    static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0},
                         nop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
    return (n >= sizeof(nop5) && !memcmp(bytes, nop5, sizeof(nop5))) ||
           (n >= sizeof(nop10) && !memcmp(bytes, nop10, sizeof(nop10)));
}

/* Whether the run was decoded; false: the bytes end within its first instruction. */
static bool decode_run(const struct code *code, struct window *w, uint64_t address, enum code_mode mode,
                       struct code_run *run)
{
    bool probed = mode == CODE_64 && is_probed(w->space, address);
    *run = (struct code_run){.end = CODE_FALLS};
    while (run->count < MAX_RUN) {
        struct insn insn;
        size_t n;
        const uint8_t *bytes = look(w, address + run->bytes, &n);
        decode(code, mode, bytes, n, &insn);
        if (insn.cut && n < LONGEST)
            return run->count > 0;
        run->end = probed && is_probe(bytes, n) ? CODE_PROBE : insn.end;
        if (run->end != CODE_FALLS) {
            run->length = insn.length;
            run->direct = insn.direct;
            run->displacement = insn.displacement;
            return true;
        }
        run->bytes += insn.length;
        run->count++;
    }
    return true;
}

int code_at(struct code *code, const struct dec_space *space, uint64_t time,
            const struct dec_mapping *mapping, uint64_t address, enum code_mode mode, struct code_run *run)
{
    uint64_t offset = mapping->pgoff + (address - mapping->start);
    struct slot *slot = slot_of(code, mapping->image, offset, mode);
    bool own = is_probed(space, address); /* its runs are others than those of the same file elsewhere */
    if (slot->image && !own && slot->run.bytes + slot->run.length <= mapping->end - address &&
        !dec_space_patched(space, address, slot->run.bytes + LONGEST)) {
        *run = slot->run;
        return 0;
    }
    struct window w = {.space = space, .time = time, .address = address};
    if (!decode_run(code, &w, address, mode, run))
        return CODE_NO_BYTES;
    /* What reaches into the next mapping depends on that one too: it is not kept. */
    if (own || slot->image || run->bytes + LONGEST > mapping->end - address ||
        dec_space_patched(space, address, run->bytes + LONGEST))
        return 0;
    *slot = (struct slot){.image = mapping->image, .offset = offset, .run = *run, .mode = (uint8_t)mode};
    if (++code->used * 2 > code->nslots)
        return grow(code);
    return 0;
}

int code_decode(const struct code *code, const struct dec_space *space, uint64_t time, uint64_t address,
                enum code_mode mode, struct code_run *run)
{
    struct window w = {.space = space, .time = time, .address = address};
    return decode_run(code, &w, address, mode, run) ? 0 : CODE_NO_BYTES;
}

bool code_reaches(struct code *code, const struct dec_space *space, uint64_t time, uint64_t address,
                  enum code_mode mode, uint64_t stop, uint32_t *count)
{
    struct window w = {.space = space, .time = time, .address = address};
    uint32_t most = *count;
    for (*count = 0; address < stop && *count < most; (*count)++) {
        struct insn insn;
        size_t n;
        const uint8_t *bytes = look(&w, address, &n);
        decode(code, mode, bytes, n, &insn);
        if (insn.end == CODE_BAD)
            return false;
        address += insn.length;
    }
    return address == stop;
}

bool code_is_vm_entry(const struct dec_space *space, uint64_t time, uint64_t address)
{
    uint8_t bytes[3];
    return dec_space_read(space, time, address, bytes, sizeof(bytes)) == sizeof(bytes) && bytes[0] == 0x0f &&
           bytes[1] == 0x01 && (bytes[2] == 0xc2 || bytes[2] == 0xc3);
}
