/* Instructions that are newer than the oldest Zydis in use (4.0, Debian 12): their lengths, and what matters
 * to control flow.
 *
 * Intel APX (Intel Advanced Performance Extensions Architecture Specification, chapters "REX2 Prefix" and
 * "Extended EVEX Prefix"; SDM, volume 2, "Instruction Format"): the prefix REX2 (D5), JMPABS, the map 4 of
 * EVEX (no-flags and three-operand forms, CCMP, PUSH2, POP2), and EVEX with the registers from 16 on. They
 * are instructions of 64-bit code alone: elsewhere D5 is AAD, and 62 BOUND.
 *
 * And forms whose length follows from where they stand in the maps of opcodes (SDM, volume 2, appendix A), as
 * FRED's ERETS and ERETU, LKGS, WRMSRNS, CMPccXADD, AVX-VNNI-INT8, AVX10.2, USER_MSR: of those the lengths
 * alone are known, and that ERETS and ERETU go elsewhere. */
#ifndef ST_DECODER_IMAGE_NEWER_H
#define ST_DECODER_IMAGE_NEWER_H

#include <stddef.h>
#include <stdint.h>

enum { DEC_INSN_MAX = 15 /* bytes of an instruction */ };

enum dec_newer_kind {
    DEC_NEWER_NONE,       /* it is none of these */
    DEC_NEWER_BAD,        /* it would be one, and is not allowed: the CPU raises #UD */
    DEC_NEWER_CUT,        /* the bytes end within it */
    DEC_NEWER_PLAIN,      /* no branch */
    DEC_NEWER_JUMP,       /* JMPABS: a jump whose target the trace tells (a TIP packet), not the code */
    DEC_NEWER_FAR_RETURN, /* ERETS, ERETU */
    DEC_NEWER_LIKE,       /* as `like`, but for its registers and its length */
};

struct dec_newer {
    uint8_t length; /* of DEC_NEWER_LIKE: what it has more than `like` */

    uint8_t nlike; /* bytes of `like` */

    uint8_t like[DEC_INSN_MAX]; /* an older instruction, and what follows */
};

/* Of 64-bit code, to be asked first: those that an older decoder may take for others. */
enum dec_newer_kind dec_newer_first(const uint8_t *bytes, size_t n, struct dec_newer *newer);

/* Of 64-bit code, to be asked where the older decoder knows no such instruction. */
enum dec_newer_kind dec_newer_last(const uint8_t *bytes, size_t n, struct dec_newer *newer);

#endif
