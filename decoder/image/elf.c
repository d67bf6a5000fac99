/* Headers, segments, sections and build id of an ELF file; function symbols out of .symtab or .dynsym;
 * function starts out of .eh_frame_hdr, which even stripped files have (Linux Standard Base, "Exception
 * Frames"). */
#include "decoder/image/elf.h"
#include "decoder/image/elf_impl.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

static int take(Elf *handle, struct dec_elf *elf)
{
    memset(elf, 0, sizeof(*elf));
    GElf_Ehdr header;
    if (!handle || elf_kind(handle) != ELF_K_ELF || !gelf_getehdr(handle, &header) ||
        (header.e_machine != EM_X86_64 && header.e_machine != EM_386)) {
        elf_end(handle);
        return ST_EBADFILE;
    }
    elf->elf = handle;
    elf->is64 = header.e_ident[EI_CLASS] == ELFCLASS64;
    const void *id;
    ssize_t size = dwelf_elf_gnu_build_id(handle, &id);
    if (size > 0) {
        elf->build_id_size = size < DEC_ELF_ID_MAX ? (uint8_t)size : DEC_ELF_ID_MAX;
        memcpy(elf->build_id, id, elf->build_id_size);
    }
    return 0;
}

int dec_elf_open_fd(int fd, struct dec_elf *elf)
{
    elf_version(EV_CURRENT);
    return take(elf_begin(fd, ELF_C_READ, NULL), elf);
}

int dec_elf_open_bytes(uint8_t *bytes, size_t size, struct dec_elf *elf)
{
    elf_version(EV_CURRENT);
    return take(elf_memory((char *)bytes, size), elf);
}

void dec_elf_close(struct dec_elf *elf)
{
    elf_end(elf->elf);
    elf->elf = NULL;
}

static int add_segments(const struct dec_elf *elf, size_t n, bool code, dec_elf_ranges *ranges)
{
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf->elf, (int)i, &segment) || segment.p_type != PT_LOAD || segment.p_filesz == 0 ||
            ((segment.p_flags & PF_X) != 0) != code)
            continue;
        struct dec_elf_range range = {
            .address = segment.p_vaddr, .size = segment.p_filesz, .offset = segment.p_offset};
        if (st_vec_push(ranges, range))
            return ST_ENOMEM;
    }
    return 0;
}

int dec_elf_segments(const struct dec_elf *elf, dec_elf_ranges *ranges)
{
    size_t n;
    if (elf_getphdrnum(elf->elf, &n))
        return 0;
    int rc = add_segments(elf, n, true, ranges);
    return rc ? rc : add_segments(elf, n, false, ranges);
}

const char *elf_section_name(const struct dec_elf *elf, const GElf_Shdr *section)
{
    size_t strings;
    if (elf_getshdrstrndx(elf->elf, &strings))
        return "";
    const char *name = elf_strptr(elf->elf, strings, section->sh_name);
    return name ? name : "";
}

Elf_Scn *elf_section(const struct dec_elf *elf, const char *name, GElf_Shdr *section)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(elf->elf, scn)) != NULL) {
        if (gelf_getshdr(scn, section) && strcmp(elf_section_name(elf, section), name) == 0)
            return scn;
    }
    return NULL;
}

size_t elf_entries(const struct dec_elf *elf, const Elf_Data *data, Elf_Type type)
{
    size_t size = gelf_fsize(elf->elf, type, 1, EV_CURRENT);
    size_t n = size && data->d_buf ? data->d_size / size : 0;
    return n < INT32_MAX ? n : INT32_MAX;
}

int dec_elf_code_sections(const struct dec_elf *elf, dec_elf_ranges *ranges)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr section;
    while ((scn = elf_nextscn(elf->elf, scn)) != NULL) {
        if (!gelf_getshdr(scn, &section) || !elf_is_code(&section))
            continue;
        struct dec_elf_range range = {
            .address = section.sh_addr, .size = section.sh_size, .offset = section.sh_offset};
        if (range.size && st_vec_push(ranges, range))
            return ST_ENOMEM;
    }
    return 0;
}

uint64_t dec_elf_text(const struct dec_elf *elf)
{
    GElf_Shdr section;
    return elf_section(elf, ".text", &section) ? section.sh_addr : 0;
}

const char *dec_elf_debuglink(const struct dec_elf *elf, uint32_t *crc)
{
    GElf_Word sum;
    const char *name = dwelf_elf_gnu_debuglink(elf->elf, &sum);
    *crc = name ? sum : 0;
    return name;
}

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

enum {
    HEADER = 12, /* version, three encodings, two 4-byte pointers */
    ENTRY = 8,   /* start and frame, each 4 bytes relative to the header */
    ENC_PCREL_SDATA4 = 0x1b,
    ENC_UDATA4 = 0x03,
    ENC_DATAREL_SDATA4 = 0x3b,
};

int dec_elf_unwind_starts(const struct dec_elf *elf, dec_elf_addresses *starts)
{
    GElf_Shdr section;
    Elf_Scn *scn = elf_section(elf, ".eh_frame_hdr", &section);
    Elf_Data *data = scn && section.sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;
    const uint8_t *bytes = data ? data->d_buf : NULL;
    if (!bytes || data->d_size < HEADER || bytes[0] != 1 || bytes[1] != ENC_PCREL_SDATA4 ||
        bytes[2] != ENC_UDATA4 || bytes[3] != ENC_DATAREL_SDATA4)
        return 0;
    uint32_t n;
    memcpy(&n, bytes + 8, sizeof(n));
    for (size_t i = 0; i < n && HEADER + (i + 1) * ENTRY <= data->d_size; i++) {
        int32_t relative;
        memcpy(&relative, bytes + HEADER + i * ENTRY, sizeof(relative));
        if (st_vec_push(starts, section.sh_addr + (uint64_t)(int64_t)relative))
            return ST_ENOMEM;
    }
    return 0;
}
