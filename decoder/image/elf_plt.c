/* PLT entries: each jumps through a slot of the GOT, and the slot's relocation has the name (System V ABI,
 * x86-64 supplement, "Procedure Linkage Table"; i386 supplement for "jmp *slot" and "jmp *slot(%ebx)"). */
#include "decoder/image/elf_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RESOLVED = 4096 };

struct slot {
    uint64_t address;

    uint64_t target; /* IRELATIVE: the resolver's address; else 0 */

    const char *name; /* NULL where target counts */
};

struct plt {
    const struct dec_elf *elf;

    ST_VEC(struct slot) slots; /* sorted by address */

    ST_VEC(struct slot) jumps; /* of .rela.plt in their order: an entry may push their index */

    uint64_t got; /* of i386's %ebx */

    size_t resolved; /* IRELATIVE slots whose resolver was looked up: each costs a walk over the symbols */

    dec_elf_symbol_fn *fn;

    void *ctx;
};

static int by_address(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static const char *symbol_name(const struct dec_elf *elf, size_t table, uint64_t index)
{
    GElf_Shdr section;
    GElf_Sym symbol;
    Elf_Scn *scn = elf_getscn(elf->elf, table);
    if (!scn || index == 0 || index > INT32_MAX || !gelf_getshdr(scn, &section))
        return NULL;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM)
        return NULL;
    Elf_Data *data = elf_getdata(scn, NULL);
    if (!data || !gelf_getsym(data, (int)index, &symbol))
        return NULL;
    const char *name = elf_strptr(elf->elf, section.sh_link, symbol.st_name);
    return name && *name ? name : NULL;
}

static bool relocation(const struct dec_elf *elf, Elf_Data *data, const GElf_Shdr *section, int i,
                       struct slot *slot)
{
    GElf_Rela rela = {0};
    if (section->sh_type == SHT_RELA) {
        if (!gelf_getrela(data, i, &rela))
            return false;
    } else {
        GElf_Rel rel;
        if (!gelf_getrel(data, i, &rel))
            return false;
        rela.r_offset = rel.r_offset;
        rela.r_info = rel.r_info;
    }
    uint64_t type = GELF_R_TYPE(rela.r_info);
    *slot = (struct slot){.address = rela.r_offset};
    if (elf->is64 ? type == R_X86_64_IRELATIVE : type == R_386_IRELATIVE)
        slot->target = (uint64_t)rela.r_addend;
    else
        slot->name = symbol_name(elf, section->sh_link, GELF_R_SYM(rela.r_info));
    return true;
}

static int read_relocations(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *section)
{
    const char *name = elf_section_name(plt->elf, section);
    bool jumps = strcmp(name, ".rela.plt") == 0 || strcmp(name, ".rel.plt") == 0;
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t n = data ? elf_entries(plt->elf, data, section->sh_type == SHT_RELA ? ELF_T_RELA : ELF_T_REL) : 0;
    for (size_t i = 0; i < n; i++) {
        struct slot slot;
        if (!relocation(plt->elf, data, section, (int)i, &slot))
            break;
        if (jumps && st_vec_push(&plt->jumps, slot))
            return ST_ENOMEM;
        if ((slot.name || slot.target) && st_vec_push(&plt->slots, slot))
            return ST_ENOMEM;
    }
    return 0;
}

static int read_slots(struct plt *plt)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr section;
    while ((scn = elf_nextscn(plt->elf->elf, scn)) != NULL) {
        if (!gelf_getshdr(scn, &section))
            continue;
        if (strcmp(elf_section_name(plt->elf, &section), ".got.plt") == 0)
            plt->got = section.sh_addr;
        bool relocates = section.sh_type == SHT_RELA || section.sh_type == SHT_REL;
        if (relocates && (section.sh_flags & SHF_ALLOC) && read_relocations(plt, scn, &section))
            return ST_ENOMEM;
    }
    if (plt->slots.n)
        qsort(plt->slots.at, plt->slots.n, sizeof(*plt->slots.at), by_address);
    return 0;
}

static uint32_t word(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

/* The slot that the entry at `address` jumps through, or the one whose index it pushes for the dynamic
 * linker. */
static const struct slot *slot_of_entry(const struct plt *plt, uint64_t address, const uint8_t *code,
                                        size_t size)
{
    for (size_t i = 0; i + 6 <= size; i++) {
        if (code[i] != 0xff || (code[i + 1] != 0x25 && code[i + 1] != 0xa3))
            continue;
        struct slot key = {.address = word(code + i + 2)};
        if (plt->elf->is64)
            key.address = address + i + 6 + (uint64_t)(int64_t)(int32_t)key.address;
        else if (code[i + 1] == 0xa3)
            key.address = (uint32_t)(plt->got + key.address);
        if (plt->slots.n == 0)
            return NULL;
        return bsearch(&key, plt->slots.at, plt->slots.n, sizeof(key), by_address);
    }
    size_t at = size >= 9 && word(code) == 0xfa1e0ff3u ? 4 : 0; /* endbr64 */
    if (size < at + 5 || code[at] != 0x68)
        return NULL;
    uint32_t index = word(code + at + 1);
    return plt->elf->is64 && index < plt->jumps.n ? &plt->jumps.at[index] : NULL;
}

struct resolver {
    uint64_t address;

    const char *name;
};

static int match_resolver(void *ctx, const struct dec_elf_symbol *symbol)
{
    struct resolver *resolver = ctx;
    if (symbol->address != resolver->address)
        return 0;
    resolver->name = symbol->name;
    return 1;
}

static int give_entry(struct plt *plt, uint64_t address, size_t size, const struct slot *slot)
{
    char name[1024];
    struct resolver resolver = {.address = slot->target, .name = slot->name};
    if (!resolver.name && plt->resolved++ < MAX_RESOLVED)
        dec_elf_symbols(plt->elf, match_resolver, &resolver, NULL);
    if (resolver.name)
        snprintf(name, sizeof(name), "%.1000s@plt", resolver.name);
    else
        snprintf(name, sizeof(name), "*ABS*+0x%llx@plt", (unsigned long long)slot->target);
    struct dec_elf_symbol symbol = {.address = address, .size = size, .name = name, .flags = DEC_ELF_PLT};
    return plt->fn(plt->ctx, &symbol);
}

static int each_entry(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *section)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    if (!data || !data->d_buf || section->sh_type == SHT_NOBITS)
        return 0;
    bool got = strcmp(elf_section_name(plt->elf, section), ".plt.got") == 0;
    size_t step = section->sh_entsize == 8 || section->sh_entsize == 16 ? section->sh_entsize : got ? 8 : 16;
    for (size_t at = 0; at + step <= data->d_size; at += step) {
        uint64_t address = section->sh_addr + at;
        const struct slot *slot = slot_of_entry(plt, address, (const uint8_t *)data->d_buf + at, step);
        if (!slot || (!slot->name && !slot->target))
            continue;
        int rc = give_entry(plt, address, step, slot);
        if (rc)
            return rc;
    }
    return 0;
}

int dec_elf_plt(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    struct plt plt = {.elf = elf, .fn = fn, .ctx = ctx};
    int rc = read_slots(&plt);
    for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        GElf_Shdr section;
        Elf_Scn *scn = elf_section(elf, names[i], &section);
        if (scn)
            rc = each_entry(&plt, scn, &section);
    }
    st_vec_free(&plt.slots);
    st_vec_free(&plt.jumps);
    return rc;
}
