/* ELF files as the decoder needs them: where code is, what it is called. Read through libelf; nothing in a
 * file is trusted. */
#ifndef ST_DECODER_IMAGE_ELF_H
#define ST_DECODER_IMAGE_ELF_H

#include "base/error.h"
#include "base/vec.h"

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEC_ELF_ID_MAX = 20 };

/* Owns the libelf handle, not the descriptor or the bytes, which must outlive it. */
struct dec_elf {
    Elf *elf;

    bool is64;

    uint8_t build_id[DEC_ELF_ID_MAX];

    uint8_t build_id_size; /* 0: none */
};

/* Returns 0, or ST_EBADFILE when it is no ELF file of x86 (an executable, a library, a core file like kcore).
 */
int dec_elf_open_fd(int fd, struct dec_elf *elf);
int dec_elf_open_bytes(uint8_t *bytes, size_t size, struct dec_elf *elf);
void dec_elf_close(struct dec_elf *elf);

struct dec_elf_range {
    uint64_t address, size;

    uint64_t offset; /* in the file */
};

typedef ST_VEC(struct dec_elf_range) dec_elf_ranges;

/* The PT_LOAD segments with bytes in the file, executable ones first. ST_ENOMEM. */
int dec_elf_segments(const struct dec_elf *elf, dec_elf_ranges *ranges);

/* The sections that hold code. ST_ENOMEM. */
int dec_elf_code_sections(const struct dec_elf *elf, dec_elf_ranges *ranges);

/* The address of .text; 0: none. Debug files may have been made before a prelinker moved the code. */
uint64_t dec_elf_text(const struct dec_elf *elf);

enum dec_elf_bind {
    DEC_ELF_WEAK = 1,
    DEC_ELF_GLOBAL = 2,
    DEC_ELF_PLT = 4,
};

struct dec_elf_symbol {
    uint64_t address, size;

    const char *name; /* in the ELF file's memory, or owned by the receiver's call only: copy it */

    uint32_t flags; /* enum dec_elf_bind */
};

/* Non-zero stops and is returned. */
typedef int dec_elf_symbol_fn(void *ctx, const struct dec_elf_symbol *symbol);

/* Whether there is a .symtab. */
bool dec_elf_has_symtab(const struct dec_elf *elf);

/* Functions of .symtab, or of .dynsym where there is none. *full (may be NULL) tells whether it was .symtab.
 */
int dec_elf_symbols(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx, bool *full);

/* Functions of a Go program's own table, which stripped ones have too; none of other programs. */
int dec_elf_go(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx);

/* Entries of .plt, .plt.sec, .plt.got, .iplt as NAME@plt. */
int dec_elf_plt(const struct dec_elf *elf, dec_elf_symbol_fn *fn, void *ctx);

typedef ST_VEC(uint64_t) dec_elf_addresses;

/* The function starts that .eh_frame_hdr's table lists, ascending as the file has them. ST_ENOMEM; a table of
 * an unknown form is empty. */
int dec_elf_unwind_starts(const struct dec_elf *elf, dec_elf_addresses *starts);

/* The file name and CRC of .gnu_debuglink, or NULL. The name is in the ELF file's memory. */
const char *dec_elf_debuglink(const struct dec_elf *elf, uint32_t *crc);

#endif
