/* Functions out of the table that each Go program has for its own tracebacks, also when it was stripped:
 * .gopclntab of Go 1.16 and later (its source: src/runtime/symtab.go, src/debug/gosym/pclntab.go). The
 * header:
 *
 *   u32 magic, u16 0, u8 smallest instruction, u8 size of a pointer; then, each of that size: functions,
 * files, the address of the code (from 1.18 on), and the offsets of five tables, of which the first has the
 * names and the last the functions.
 *
 * The functions' table has a start and an offset each, in the same table, of what is known of the function:
 * its start once more, and a 32-bit offset of its name. One more start is the end of the last one. Starts are
 * addresses of a pointer's size, from 1.18 on 32-bit offsets from the address of the code. */
#include "decoder/image/elf.h"
#include "decoder/image/elf_impl.h"

#include <string.h>

enum { HEADER = 8, LONGEST_NAME = 4096, MAGIC_1_16 = 0xfa, MAGIC_1_18 = 0xf0, MAGIC_1_20 = 0xf1 };

struct go_table {
    const uint8_t *bytes;

    uint64_t size;

    uint64_t text; /* added to each start */

    uint64_t count, names, functions;

    unsigned pointer; /* 4 or 8 bytes */

    unsigned start; /* bytes of a start */
};

/* A number of that many bytes (4 or 8); false: not in the table. */
static bool number(const struct go_table *t, uint64_t at, unsigned bytes, uint64_t *value)
{
    uint32_t small;

    if (at > t->size || t->size - at < bytes)
        return false;
    if (bytes == sizeof(*value)) {
        memcpy(value, t->bytes + at, sizeof(*value));
        return true;
    }
    memcpy(&small, t->bytes + at, sizeof(small));
    *value = small;
    return true;
}

/* The address of the code is one that the linker of a position-independent program fills in as it starts. */
static uint64_t relocated(const struct dec_elf *elf, uint64_t address)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr section;
    GElf_Rela r;

    while ((scn = elf_nextscn(elf->elf, scn)) != NULL) {
        Elf_Data *data =
            gelf_getshdr(scn, &section) && section.sh_type == SHT_RELA ? elf_getdata(scn, NULL) : NULL;
        size_t n = data ? elf_entries(elf, data, ELF_T_RELA) : 0;

        for (size_t i = 0; i < n; i++)
            if (gelf_getrela(data, (int)i, &r) && r.r_offset == address &&
                GELF_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
                return (uint64_t)r.r_addend;
    }
    return 0;
}

static bool read_header(const struct dec_elf *elf, const GElf_Shdr *section, struct go_table *t)
{
    bool offsets;

    if (t->size < HEADER || memcmp(t->bytes + 1, "\xff\xff\xff\0\0", 5) != 0)
        return false;
    offsets = t->bytes[0] == MAGIC_1_18 || t->bytes[0] == MAGIC_1_20;
    t->pointer = t->bytes[7];
    if ((!offsets && t->bytes[0] != MAGIC_1_16) || (t->pointer != 4 && t->pointer != 8))
        return false;
    t->start = offsets ? 4 : t->pointer;
    if (offsets && !number(t, HEADER + 2 * t->pointer, t->pointer, &t->text))
        return false;
    if (offsets && !t->text)
        t->text = relocated(elf, section->sh_addr + HEADER + 2 * t->pointer);
    return (!offsets || t->text) && number(t, HEADER, t->pointer, &t->count) &&
           number(t, HEADER + (offsets ? 3 : 2) * t->pointer, t->pointer, &t->names) &&
           number(t, HEADER + (offsets ? 7 : 6) * t->pointer, t->pointer, &t->functions) &&
           t->functions <= t->size && t->names <= t->size && t->count <= t->size;
}

/* The name of the function whose number that is; NULL: the table does not say. */
static const char *name_of(const struct go_table *t, uint64_t i)
{
    uint64_t about, name, room;

    if (!number(t, t->functions + (2 * i + 1) * t->start, t->start, &about) || about > t->size ||
        !number(t, t->functions + about + t->start, 4, &name) || t->names + name >= t->size)
        return NULL;
    /* Of many names without an end, each would be searched to the table's. */
    room = t->size - t->names - name;
    return memchr(t->bytes + t->names + name, 0, room < LONGEST_NAME ? room : LONGEST_NAME)
               ? (const char *)t->bytes + t->names + name
               : NULL;
}

int dec_elf_go(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx)
{
    GElf_Shdr section;
    Elf_Scn *scn = elf_section(elf, ".gopclntab", &section);
    struct go_table t = {0};
    Elf_Data *data;

    if (!scn)
        scn = elf_section(elf, ".data.rel.ro.gopclntab", &section);
    data = scn && section.sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;
    t.bytes = data ? data->d_buf : NULL;
    t.size = t.bytes ? data->d_size : 0;
    if (!t.bytes || !read_header(elf, &section, &t))
        return 0;
    for (uint64_t i = 0; i < t.count; i++) {
        uint64_t from, to;
        struct dec_elf_symbol found = {.name = name_of(&t, i)};
        int rc;

        if (!number(&t, t.functions + 2 * i * t.start, t.start, &from) ||
            !number(&t, t.functions + 2 * (i + 1) * t.start, t.start, &to))
            break;
        if (!found.name || !*found.name || to <= from)
            continue;
        found.address = t.text + from;
        found.size = to - from;
        rc = fn(ctx, &found);
        if (rc)
            return rc;
    }
    return 0;
}
