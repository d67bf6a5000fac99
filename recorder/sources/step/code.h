/* The code of a traced process: each instruction is decoded once and kept, as far as stepping needs to know
 * it. */
#ifndef ST_RECORDER_SOURCES_STEP_CODE_H
#define ST_RECORDER_SOURCES_STEP_CODE_H

#include "base/error.h"
#include "recorder/sources/step/ptenc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What an instruction does to the control flow, or what stepping must know of it. */
enum step_kind {
    STEP_UNREAD, /* not decoded yet */
    STEP_PLAIN,  /* goes on behind itself */
    STEP_COND,   /* Jcc, JrCXZ, LOOPcc */
    STEP_JUMP,   /* direct */
    STEP_CALL,   /* direct */
    STEP_JUMP_INDIRECT,
    STEP_CALL_INDIRECT,
    STEP_RET,
    STEP_FAR,     /* a far transfer that may stay in user code */
    STEP_SYSCALL, /* SYSCALL, SYSENTER, INT 80h */
    STEP_TRAP,    /* INT3, INT1, INTO, another INT n: an exception */
    STEP_REP,     /* a string instruction with a repeat prefix */
    STEP_PUSHF,
    STEP_POPF,
    STEP_IRET, /* far too; displacement: the bytes that it pops for each register */
    STEP_BAD,  /* cannot be read or decoded */
};

enum { STEP_SYSCALL_LENGTH = 2 }; /* SYSCALL, SYSENTER and INT 80h */

struct step_insn {
    int32_t displacement; /* of direct branches; see STEP_IRET */

    uint8_t length;

    uint8_t kind; /* enum step_kind */
};

struct step_page;

/* One address space. */
struct step_code {
    int memory; /* /proc/PID/mem */

    pid_t tid; /* it was opened with */

    struct step_page *pages; /* a hash */

    struct step_page *last;

    struct step_insn bad; /* what step_code_at() returns for an address it cannot decode */
};

/* Opens the address space of a traced thread. ST_EFAIL, ST_ENOMEM. */
int step_code_open(struct step_code *code, pid_t tid, struct st_error *err);

/* The instruction at ip, valid until the next call; its kind is STEP_BAD where there is none. Never NULL. */
const struct step_insn *step_code_at(struct step_code *code, uint64_t ip, enum ptenc_mode mode);

/* Whether the bytes at ip have changed since they were decoded. They are then decoded anew at the next look.
 */
bool step_code_changed(struct step_code *code, uint64_t ip, enum ptenc_mode mode);

/* Whether the breakpoint of a uprobe is at ip. step_code_at() and step_code_changed() look through it: they
 * have the program's own instruction. */
bool step_code_probed(const struct step_code *code, uint64_t ip);

/* The mapping of [from, to) changes: what was decoded there is forgotten. */
void step_code_forget(struct step_code *code, uint64_t from, uint64_t to);

/* The process's memory. Returns whether all of it could be read or written. */
bool step_code_read(const struct step_code *code, uint64_t from, void *to, size_t n);
bool step_code_write(const struct step_code *code, uint64_t to, const void *from, size_t n);

/* Frees everything. Safe on a zeroed struct whose memory is -1. */
void step_code_close(struct step_code *code);

#endif
