/* What is read of the ELF files of a target. Who owns the target owns the files, and may have made them to do
 * harm: so these are run by a child without privilege (base/confined.h), and what they answer is looked at by
 * who asked. Each reads the descriptor `fd`, an open file, and never maps it: of one that becomes shorter
 * meanwhile there would be a SIGBUS. What is no ELF file, or damaged, has none of what is asked for. */
#ifndef ST_TRIGGERS_ELF_READ_H
#define ST_TRIGGERS_ELF_READ_H

#include "base/confined.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRG_ELF_PATIENCE = 10000, /* ms that the symbols of the largest programs may take, from a slow disk */
    TRG_ELF_NAME = 256,       /* bytes of a name, its end included; longer ones are cut */
    TRG_PROBE_ARGUMENTS = 12,
    TRG_PROBE_REGISTERS = 21, /* of the kernel's struct pt_regs */
};

/* The offset in the file of an address, in code or beside it. False: no byte of the file is there. */
struct Elf;
bool trg_elf_offset(struct Elf *elf, uint64_t address, bool code, uint64_t *offset);

struct trg_elf_function {
    uint64_t offset; /* in the file */

    uint64_t go; /* 1: Go's compiler made it; else 0 */
};

/* Question: a name, with its NUL. Answer: a struct trg_elf_function for each function of that name, whatever
 * its version. -1 with E2BIG: there are more than the answer has room for. */
ssize_t trg_elf_functions(int fd, const void *question, size_t size, void *answer, size_t room);

/* Question: a name. Answer: the function whose name is nearest to it, as a text with its NUL, or nothing. */
ssize_t trg_elf_nearest(int fd, const void *question, size_t size, void *answer, size_t room);

/* No question. Answer: the names of the libraries that a program needs, each with its NUL. */
ssize_t trg_elf_needed(int fd, const void *question, size_t size, void *answer, size_t room);

/* Question: a uint64_t, an offset in the file. Answer: "FUNCTION+0xOFFSET" with its NUL, or nothing. */
ssize_t trg_elf_name(int fd, const void *question, size_t size, void *answer, size_t room);

/* No question. Answer: a byte where the file is a program of Go (triggers/golang.h), else nothing. */
ssize_t trg_elf_golang(int fd, const void *question, size_t size, void *answer, size_t room);

/* Where an argument of a probe is. */
struct trg_probe_argument {
    int64_t value; /* a constant, or what is added to the register */

    uint8_t kind; /* enum trg_probe_kind */

    uint8_t reg; /* which word of struct pt_regs */

    int8_t size; /* bytes; negative: it has a sign */
};

enum trg_probe_kind { TRG_PROBE_CONSTANT, TRG_PROBE_REGISTER, TRG_PROBE_MEMORY, TRG_PROBE_KINDS };

struct trg_probe_site {
    uint64_t offset; /* in the file */

    uint64_t semaphore; /* an offset in the file, too; 0: none */

    uint64_t n;

    struct trg_probe_argument arguments[TRG_PROBE_ARGUMENTS];
};

/* Question: "PROVIDER\0NAME\0". Answer: a struct trg_probe_site for each place of that probe
 * (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). -1 with ENOTSUP: an argument is where
 * it cannot be read; EBADMSG: the probe lies in no code; E2BIG: there are more places than the answer has
 * room for. */
ssize_t trg_elf_probes(int fd, const void *question, size_t size, void *answer, size_t room);

/* Whether these sites, which a child answered, are in a file of `size` bytes, and may be given to the kernel.
 */
bool trg_probe_are_sound(const struct trg_probe_site *sites, size_t n, uint64_t size);

/* Asks the child `c` one of the above about the file `path`, which is opened for that: a regular file, else
 * ENODEV. `what` begins the sentence that an error gets, "look for 'NAME' in". `length`, where it is not
 * NULL, gets the size of the file in bytes. Returns the bytes of the answer; ST_EFAIL with errno where the
 * file cannot be opened, and no child is started then; else as st_confined_ask, which is said
 * (st_confined_say) where `err` is NULL. */
ssize_t trg_elf_ask(struct st_confined *c, const char *path, const char *what, st_confined_fn *fn,
                    const void *question, size_t size, void *answer, size_t room, uint64_t *length,
                    struct st_error *err);

#endif
