/* Code from memory as an ELF file (elf(5)): addresses are file offsets, as in a shared object without gaps.
 */
#include "recorder/code_elf.h"
#include "recorder/jitdump.h"
#include "recorder/perf_map.h"
#include "recorder/proc_maps.h"

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

static int put_symbols(struct writer *w, const struct rec_perf_map *map, uint64_t start, Elf64_Shdr *symtab,
                       Elf64_Shdr *strtab)
{
    Elf64_Sym *symbols = calloc(map->symbols.n + 1, sizeof(*symbols));
    char none = 0;
    uint64_t unused;
    int rc;

    if (!symbols)
        return st_nomem(w->err, "symbols of code");
    for (size_t i = 0; i < map->symbols.n; i++)
        symbols[i + 1] = (Elf64_Sym){
            .st_name = (Elf64_Word)(map->symbols.at[i].name + 1),
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
            .st_shndx = SECTION_TEXT,
            .st_value = REC_CODE_ELF_TEXT + (map->symbols.at[i].start - start),
            .st_size = map->symbols.at[i].size,
        };
    symtab->sh_size = (map->symbols.n + 1) * sizeof(*symbols);
    rc = put(w, symbols, symtab->sh_size, &symtab->sh_offset);
    free(symbols);
    strtab->sh_size = map->names.n + 1;
    if (!rc)
        rc = put(w, &none, 1, &strtab->sh_offset);
    if (!rc && map->names.n)
        rc = put(w, map->names.at, map->names.n, &unused);
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

int rec_code_elf_write(int fd, pid_t pid, int memory, uint64_t start, uint64_t end, struct st_error *err)
{
    struct writer w = {.fd = fd, .err = err};
    struct rec_perf_map map;
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
    int rc = rec_perf_map_read(&map, pid, start, end) || rec_jitdump_read(&map, pid, start, end)
                 ? st_nomem(err, "names of code")
                 : 0;

    sections[SECTION_TEXT].sh_addr = sections[SECTION_TEXT].sh_offset = REC_CODE_ELF_TEXT;
    sections[SECTION_TEXT].sh_size = end - start;
    sections[SECTION_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    if (!rc)
        rc = put_code(&w, memory, start, end);
    if (!rc)
        rc = put_symbols(&w, &map, start, &sections[SECTION_SYMTAB], &sections[SECTION_STRTAB]);
    if (!rc)
        rc = put(&w, section_names, sizeof(section_names), &sections[SECTION_SHSTRTAB].sh_offset);
    if (!rc)
        rc = put_headers(&w, sections, end - start);
    rec_perf_map_free(&map);
    return rc;
}
