/* Function starts out of .eh_frame_hdr, which even stripped files have (Linux Standard Base, "Exception
 * Frames"). */
#include "decoder/image/elf_impl.h"

#include <string.h>

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
