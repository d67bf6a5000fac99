/* Makes small ELF files for tests, section by section, with libelf. */
#ifndef ELF_MAKER_H
#define ELF_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct maker {
    int fd;

    Elf *elf;

    char names[1024]; /* .shstrtab */

    size_t nnames;

    char strings[4096]; /* .strtab */

    size_t nstrings;

    Elf64_Sym symbols[64];

    size_t nsymbols;
};

static inline void maker_open(struct maker *m, const char *path)
{
    memset(m, 0, sizeof(*m));
    elf_version(EV_CURRENT);
    m->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(m->fd >= 0);
    m->elf = elf_begin(m->fd, ELF_C_WRITE, NULL);
    assert_non_null(m->elf);
    Elf64_Ehdr *header = elf64_newehdr(m->elf);
    assert_non_null(header);
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_machine = EM_X86_64;
    header->e_type = ET_DYN;
    elf_flagelf(m->elf, ELF_C_SET, ELF_F_LAYOUT);
    m->nnames = m->nstrings = 1;
    m->nsymbols = 1;
    /* one executable segment: file offset 0x1000 is address 0x401000 */
    Elf64_Phdr *segment = elf64_newphdr(m->elf, 1);
    assert_non_null(segment);
    header->e_phoff = sizeof(*header);
    *segment = (Elf64_Phdr){.p_type = PT_LOAD,
                            .p_flags = PF_R | PF_X,
                            .p_offset = 0x1000,
                            .p_vaddr = 0x401000,
                            .p_filesz = 0x1000,
                            .p_memsz = 0x1000,
                            .p_align = 0x1000};
}

/* Adds a section; its bytes must live until maker_close. Returns its index. */
static inline size_t maker_section(struct maker *m, const char *name, Elf64_Shdr shape, const void *bytes)
{
    Elf_Scn *scn = elf_newscn(m->elf);
    Elf_Data *data = scn ? elf_newdata(scn) : NULL;
    Elf64_Shdr *header = scn ? elf64_getshdr(scn) : NULL;
    assert_non_null(data);
    assert_non_null(header);
    shape.sh_name = (Elf64_Word)m->nnames;
    *header = shape;
    data->d_buf = (void *)(uintptr_t)bytes;
    data->d_size = shape.sh_size;
    data->d_align = 1;
    data->d_type = shape.sh_type == SHT_SYMTAB || shape.sh_type == SHT_DYNSYM ? ELF_T_SYM
                   : shape.sh_type == SHT_RELA                                ? ELF_T_RELA
                                                                              : ELF_T_BYTE;
    strcpy(m->names + m->nnames, name);
    m->nnames += strlen(name) + 1;
    return elf_ndxscn(scn);
}

static inline size_t maker_string(struct maker *m, const char *text)
{
    size_t at = m->nstrings;
    strcpy(m->strings + at, text);
    m->nstrings += strlen(text) + 1;
    return at;
}

static inline void maker_symbol(struct maker *m, const char *name, uint64_t value, uint64_t size,
                                unsigned bind, unsigned type, size_t section)
{
    m->symbols[m->nsymbols++] = (Elf64_Sym){.st_name = (Elf64_Word)maker_string(m, name),
                                            .st_info = ELF64_ST_INFO(bind, type),
                                            .st_shndx = (Elf64_Half)section,
                                            .st_value = value,
                                            .st_size = size};
}

/* Writes symbol table (SHT_SYMTAB or SHT_DYNSYM; 0: none) and headers. Returns the table's index. */
static inline size_t maker_close(struct maker *m, unsigned table)
{
    size_t index = 0;
    if (table) {
        size_t strings = maker_section(
            m, ".strtab",
            (Elf64_Shdr){
                .sh_type = SHT_STRTAB, .sh_offset = 0x3000, .sh_size = m->nstrings, .sh_addralign = 1},
            m->strings);
        index = maker_section(m, table == SHT_SYMTAB ? ".symtab" : ".dynsym",
                              (Elf64_Shdr){.sh_type = table,
                                           .sh_offset = 0x4000,
                                           .sh_size = m->nsymbols * sizeof(Elf64_Sym),
                                           .sh_entsize = sizeof(Elf64_Sym),
                                           .sh_link = (Elf64_Word)strings,
                                           .sh_addralign = 1},
                              m->symbols);
    }
    size_t names = maker_section(
        m, ".shstrtab",
        (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = 0x5000, .sh_size = 512, .sh_addralign = 1},
        m->names);
    Elf64_Ehdr *header = elf64_getehdr(m->elf);
    header->e_shstrndx = (Elf64_Half)names;
    header->e_shoff = 0x6000;
    assert_true(elf_update(m->elf, ELF_C_WRITE) > 0);
    elf_end(m->elf);
    close(m->fd);
    return index;
}

/* A build id note. */
static inline void maker_build_id(struct maker *m, uint8_t *note, const char *id20)
{
    memcpy(note, "\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16);
    memcpy(note + 16, id20, 20);
    maker_section(m, ".note.gnu.build-id",
                  (Elf64_Shdr){.sh_type = SHT_NOTE,
                               .sh_flags = SHF_ALLOC,
                               .sh_offset = 0x2000,
                               .sh_addr = 0x402000,
                               .sh_size = 36,
                               .sh_addralign = 4},
                  note);
}

/* .text: 0x200 bytes at address 0x401000. */
static inline size_t maker_text(struct maker *m, const uint8_t *code)
{
    return maker_section(m, ".text",
                         (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                      .sh_offset = 0x1000,
                                      .sh_addr = 0x401000,
                                      .sh_size = 0x200,
                                      .sh_addralign = 16},
                         code);
}

#endif
