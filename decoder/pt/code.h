/* Code as control flow sees it: runs of instructions up to the one that ends them, decoded once and kept. */
#ifndef ST_DECODER_PT_CODE_H
#define ST_DECODER_PT_CODE_H

#include "decoder/image/space.h"

enum code_mode { CODE_64, CODE_32, CODE_16, CODE_MODES };

/* What ends a run. The branch classes are libipt's (enum pt_insn_class). */
enum code_end {
    CODE_FALLS, /* nothing: the run was cut (its length, or the end of the bytes) and goes on at the next
                   address */
    CODE_COND_JUMP,
    CODE_JUMP,
    CODE_CALL,
    CODE_RETURN,
    CODE_FAR_CALL,
    CODE_FAR_RETURN,
    CODE_FAR_JUMP,
    CODE_PTWRITE,
    CODE_MOV_CR3, /* a PIP packet binds to it */
    CODE_PROBE,   /* a NOP of the file where a probe may stand (dec_space_probed()) */
    CODE_BAD,     /* bytes that are no instruction follow the run */
    CODE_NONE,    /* there are no bytes at all (fast_graph.h) */
};

struct code_run {
    uint32_t bytes; /* of the instructions before the ending one */

    uint16_t count; /* of instructions before the ending one */

    uint8_t end; /* enum code_end */

    uint8_t length; /* of the ending instruction; 0 for CODE_FALLS and CODE_BAD */

    bool direct; /* the target is in the instruction */

    int32_t displacement; /* of a direct branch, from its end */
};

struct code;

/* How many runs are kept. */
size_t code_count(const struct code *code);

enum { CODE_NO_BYTES = 1 };

/* ST_ENOMEM. */
int code_new(struct code **code, struct st_error *err);
void code_free(struct code *code);

/* The run at `address` of a mapping that holds it. Returns 0; CODE_NO_BYTES: the image has none there;
 * ST_ENOMEM. The run is copied. */
int code_at(struct code *code, const struct dec_space *space, uint64_t time,
            const struct dec_mapping *mapping, uint64_t address, enum code_mode mode, struct code_run *run);

/* As code_at(), for callers that keep the run themselves: it is decoded each time. */
int code_decode(const struct code *code, const struct dec_space *space, uint64_t time, uint64_t address,
                enum code_mode mode, struct code_run *run);

/* Steps over at most *count instructions of a run that begins at `address`, stopping where `stop` is reached.
 * Returns whether it was; *count is then how many were stepped over. */
bool code_reaches(struct code *code, const struct dec_space *space, uint64_t time, uint64_t address,
                  enum code_mode mode, uint64_t stop, uint32_t *count);

/* Whether a VM entry stands there (VMLAUNCH, VMRESUME: SDM, volume 3, "VMX Instruction Reference"). */
bool code_is_vm_entry(const struct dec_space *space, uint64_t time, uint64_t address);

#endif
