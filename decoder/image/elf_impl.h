/* What elf*.c share. */
#ifndef ST_DECODER_IMAGE_ELF_IMPL_H
#define ST_DECODER_IMAGE_ELF_IMPL_H

#include "decoder/image/elf.h"

#include <gelf.h>

static inline bool elf_is_code(const GElf_Shdr *section)
{
    return (section->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR);
}

const char *elf_section_name(const struct dec_elf *elf, const GElf_Shdr *section);

/* The section of that name with its header, or NULL. */
Elf_Scn *elf_section(const struct dec_elf *elf, const char *name, GElf_Shdr *section);

/* How many records of a type the data holds, by the type's own size: sh_entsize may lie. */
size_t elf_entries(const struct dec_elf *elf, const Elf_Data *data, Elf_Type type);

#endif
