/* Code from memory as an ELF file (elf(5)): addresses are file offsets, as in a shared object without gaps.
 */
#include "recorder/code/elf.h"
#include "recorder/code/proc_maps.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

enum section { SECTION_NONE, SECTION_TEXT, SECTION_SYMTAB, SECTION_STRTAB, SECTION_SHSTRTAB, SECTIONS };

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";

struct writer {
    int fd;

    uint64_t at;

    struct st_error *err;
};

/* Returns the offset at which it stands, or 0 when it failed (nothing stands at 0 but the header). */
static int put(struct writer *w, const void *data, size_t size, uint64_t *offset)
{
    const char *from = data;

    *offset = w->at;
    while (size) {
        ssize_t n = pwrite(w->fd, from, size, (off_t)w->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return st_fail_errno(w->err, ST_EFAIL, "cannot write a copy of code");
        from += n;
        size -= (size_t)n;
        w->at += (uint64_t)n;
    }
    return 0;
}

static bool all_zero(const char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, size - 1));
}

/* Holes stay where nothing could be read or nothing is. */
static int put_code(struct writer *w, int memory, uint64_t start, uint64_t end)
{
    char *piece = malloc(PIECE);
    uint64_t unused;
    int rc = piece ? 0 : st_nomem(w->err, "a copy of code");

    for (uint64_t at = start; !rc && at < end; at += PIECE) {
        size_t want = end - at < PIECE ? end - at : PIECE;
        size_t got = rec_proc_read(memory, at, piece, want);

        w->at = REC_CODE_ELF_TEXT + (at - start);
        if (!all_zero(piece, got))
            rc = put(w, piece, got, &unused);
    }
    free(piece);
    w->at = (REC_CODE_ELF_TEXT + (end - start) + 7) & ~(uint64_t)7;
    return rc;
}

struct symbols {
    ST_VEC(Elf64_Sym) each;

    ST_VEC(char) names;
};

static int add_symbol(struct symbols *s, const struct rec_perf_symbol *from, const char *name, uint64_t start)
{
    const Elf64_Sym symbol = {
        .st_name = (Elf64_Word)s->names.n,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = SECTION_TEXT,
        .st_value = REC_CODE_ELF_TEXT + (from->start - start),
        .st_size = from->size,
    };
    size_t len = strlen(name) + 1;

    if (st_vec_reserve(&s->names, len))
        return -1;
    memcpy(s->names.at + s->names.n, name, len);
    s->names.n += len;
    return st_vec_push(&s->each, symbol);
}

/* Both tables begin with an empty entry. */
static int collect_symbols(struct symbols *s, const struct rec_perf_map *map, uint64_t start, uint64_t end)
{
    int rc = st_vec_push(&s->each, (Elf64_Sym){0}) || st_vec_push(&s->names, '\0') ? -1 : 0;

    for (size_t i = rec_perf_map_find(map, start); !rc && i < map->symbols.n; i++) {
        const struct rec_perf_symbol *from = &map->symbols.at[i];

        if (from->start >= end)
            break;
        if (from->size <= end - from->start)
            rc = add_symbol(s, from, map->names.at + from->name, start);
    }
    return rc;
}

static int put_symbols(struct writer *w, const struct rec_perf_map *map, uint64_t start, uint64_t end,
                       Elf64_Shdr *symtab, Elf64_Shdr *strtab)
{
    struct symbols s = {0};
    int rc = collect_symbols(&s, map, start, end) ? st_nomem(w->err, "symbols of code") : 0;

    symtab->sh_size = s.each.n * sizeof(*s.each.at);
    strtab->sh_size = s.names.n;
    if (!rc)
        rc = put(w, s.each.at, symtab->sh_size, &symtab->sh_offset);
    if (!rc)
        rc = put(w, s.names.at, strtab->sh_size, &strtab->sh_offset);
    st_vec_free(&s.each);
    st_vec_free(&s.names);
    return rc;
}

static int put_headers(struct writer *w, Elf64_Shdr *sections, uint64_t size)
{
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(e),
        .e_ehsize = sizeof(e),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = SECTION_SHSTRTAB,
    };
    const Elf64_Phdr p = {
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_X,
        .p_offset = REC_CODE_ELF_TEXT,
        .p_vaddr = REC_CODE_ELF_TEXT,
        .p_paddr = REC_CODE_ELF_TEXT,
        .p_filesz = size,
        .p_memsz = size,
        .p_align = REC_CODE_ELF_TEXT,
    };
    uint64_t unused;
    int rc;

    w->at = (w->at + 7) & ~(uint64_t)7;
    rc = put(w, sections, SECTIONS * sizeof(*sections), &e.e_shoff);
    w->at = 0;
    if (!rc)
        rc = put(w, &e, sizeof(e), &unused);
    return rc ? rc : put(w, &p, sizeof(p), &unused);
}

int rec_code_elf_write(int fd, int memory, uint64_t start, uint64_t end, const struct rec_perf_map *names,
                       struct st_error *err)
{
    struct writer w = {.fd = fd, .err = err};
    Elf64_Shdr sections[SECTIONS] = {
        [SECTION_TEXT] = {.sh_name = 1,
                          .sh_type = SHT_PROGBITS,
                          .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                          .sh_addralign = 16},
        [SECTION_SYMTAB] =
            {.sh_name = 7, .sh_type = SHT_SYMTAB, .sh_link = SECTION_STRTAB, .sh_info = 1, .sh_addralign = 8},
        [SECTION_STRTAB] = {.sh_name = 15, .sh_type = SHT_STRTAB, .sh_addralign = 1},
        [SECTION_SHSTRTAB] = {.sh_name = 23,
                              .sh_type = SHT_STRTAB,
                              .sh_addralign = 1,
                              .sh_size = sizeof(section_names)},
    };
    int rc;

    sections[SECTION_TEXT].sh_addr = sections[SECTION_TEXT].sh_offset = REC_CODE_ELF_TEXT;
    sections[SECTION_TEXT].sh_size = end - start;
    sections[SECTION_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    rc = put_code(&w, memory, start, end);
    if (!rc)
        rc = put_symbols(&w, names, start, end, &sections[SECTION_SYMTAB], &sections[SECTION_STRTAB]);
    if (!rc)
        rc = put(&w, section_names, sizeof(section_names), &sections[SECTION_SHSTRTAB].sh_offset);
    if (!rc)
        rc = put_headers(&w, sections, end - start);
    return rc;
}
