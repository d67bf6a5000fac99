/* Function symbols out of .symtab or .dynsym. */
#include "decoder/image/elf_impl.h"

#include <string.h>

/* A name without a type counts where it stands in code, unless it is hidden: entry points written in
 * assembly. */
static bool is_function(const struct dec_elf *elf, const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    unsigned seen = GELF_ST_VISIBILITY(symbol->st_other);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
        return false;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        return false;
    if (type == STT_NOTYPE && (seen == STV_HIDDEN || seen == STV_INTERNAL))
        return false;
    GElf_Shdr section;
    Elf_Scn *scn = elf_getscn(elf->elf, symbol->st_shndx);
    return scn && gelf_getshdr(scn, &section) && elf_is_code(&section);
}

static uint32_t binding(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return DEC_ELF_GLOBAL;
    case STB_WEAK:
        return DEC_ELF_WEAK;
    default:
        return 0;
    }
}

static int each_symbol(const struct dec_elf *elf, Elf_Scn *scn, const GElf_Shdr *table, dec_elf_symbol_fn *fn,
                       void *ctx)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t n = data ? elf_entries(elf, data, ELF_T_SYM) : 0;
    for (size_t i = 1; i < n; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || !is_function(elf, &symbol))
            continue;
        const char *name = elf_strptr(elf->elf, table->sh_link, symbol.st_name);
        if (!name || !*name)
            continue;
        struct dec_elf_symbol found = {
            .address = symbol.st_value, .size = symbol.st_size, .name = name, .flags = binding(&symbol)};
        int rc = fn(ctx, &found);
        if (rc)
            return rc;
    }
    return 0;
}

static Elf_Scn *table_of(const struct dec_elf *elf, uint32_t type, GElf_Shdr *section)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(elf->elf, scn)) != NULL) {
        if (gelf_getshdr(scn, section) && section->sh_type == type)
            return scn;
    }
    return NULL;
}

int dec_elf_symbols(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx, bool *full)
{
    GElf_Shdr section;
    Elf_Scn *scn = table_of(elf, SHT_SYMTAB, &section);
    if (full)
        *full = scn != NULL;
    if (!scn)
        scn = table_of(elf, SHT_DYNSYM, &section);
    return scn ? each_symbol(elf, scn, &section, fn, ctx) : 0;
}

bool dec_elf_has_symtab(const struct dec_elf *elf)
{
    GElf_Shdr section;
    return table_of(elf, SHT_SYMTAB, &section) != NULL;
}
