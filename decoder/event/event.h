/* The compact stream between the flow decoder (packets and code -> branches) and the stack builder (branches
 * -> calls). */
#ifndef ST_DECODER_EVENT_EVENT_H
#define ST_DECODER_EVENT_EVENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happened. Classes of executed branches are those of libipt (enum pt_insn_class). */
enum dec_kind {
    DEC_COND_JUMP, /* `to` is where it went; DEC_TAKEN tells whether it was taken */
    DEC_JUMP,
    DEC_CALL,
    DEC_RETURN,
    DEC_FAR_CALL, /* syscall, int, sysenter, far call */
    DEC_FAR_RETURN,
    DEC_FAR_JUMP,
    DEC_ASYNC,   /* interrupt, exception or signal delivery seen as one branch from -> to */
    DEC_ENABLE,  /* tracing (re)starts at `to`; `from` 0 */
    DEC_DISABLE, /* tracing stops behind `from`; `to` 0. Follows the branch that left, if one did */
    DEC_GAP,     /* trace lost or not decodable from here to the next event; arg = enum dec_gap */
    DEC_PTWRITE, /* arg = payload */
    DEC_POWER,   /* the CPU's power state changed or is about to; arg as DEC_POWER_ARG(). `from`: where it
                    stood, 0: not   known. It may come while tracing is off, and ends nothing */
};

/* What a DEC_POWER tells, by the packet that it comes from (SDM, chapter Intel Processor Trace). States are
 * MWAIT's hints (SDM, volume 2, "MWAIT": bits 7:4 the C-state - 1, 3:0 the sub-state), as cpuidle names them.
 */
enum dec_power {
    DEC_POWER_MWAIT = 1, /* an MWAIT was done; value: its hints */
    DEC_POWER_STOPPED,   /* EXSTOP: execution stopped; value: 0 */
    DEC_POWER_ENTRY,     /* PWRE: that C-state was entered; value: the state, | 256 by the hardware itself */
    DEC_POWER_EXIT, /* PWRX: back to C0; value: the last state | the deepest << 8 | enum dec_power_wake << 16
                     */
};

enum dec_power_wake { DEC_WAKE_INTERRUPT = 1, DEC_WAKE_STORE = 2, DEC_WAKE_HARDWARE = 4 /* bits */ };

#define DEC_POWER_ARG(what, value) ((uint64_t)(what) << 32 | (uint32_t)(value))
#define DEC_POWER_WHAT(arg)        ((enum dec_power)((arg) >> 32))
#define DEC_POWER_VALUE(arg)       ((uint32_t)(arg))

enum dec_event_flag {
    DEC_TAKEN = 1,
    DEC_INDIRECT = 2,
    DEC_KERNEL_FROM = 4,
    DEC_KERNEL_TO = 8,
    DEC_TIME_EXACT = 16, /* `time` is a point of the trace, not interpolated */
    DEC_ZERO_CALL = 32,  /* call to the next instruction: not pushed (SDM: never compressed) */
    DEC_RESUMED = 64,    /* DEC_ENABLE at the place where the last DEC_DISABLE would have gone on */
    DEC_IN_TX = 128,
    DEC_TX_ABORT = 256,
    DEC_ASYNC_DISABLE = 512, /* DEC_DISABLE by an interrupt or signal, not by a branch */
    DEC_LENGTH_SHIFT = 12, /* not a flag: bits 12 to 15 are the length of the branch instruction at `from` */
};

/* Length in bytes of the instruction at `from` (calls, far calls and DEC_DISABLE behind one at least; 0: not
 * known). from + length is the address a call returns to. */
#define DEC_LENGTH(flags) ((unsigned)(flags) >> DEC_LENGTH_SHIFT & 15)

/* Of `arg`: its lower and its upper half. Cycles come from CYC packets (SDM, "Cycle-Accurate Mode"), those
 * during which tracing was off left out; between two packets they are spread over the instructions. */
#define DEC_INSTRUCTIONS(arg) ((uint64_t)(arg)&0xffffffffu)
#define DEC_CYCLES(arg)       ((uint64_t)(arg) >> 32)

/* Why something is missing; the words that `gap.reason` shows are in dec_gap_name(). */
enum dec_gap {
    DEC_GAP_OVERFLOW = 1, /* the CPU or the kernel lost packets */
    DEC_GAP_NO_IMAGE,     /* no code at an address */
    DEC_GAP_MISMATCH,     /* trace and code disagree */
    DEC_GAP_TRUNCATED,    /* the ring or file ends in the middle */
    DEC_GAP_BAD_PACKET,
    DEC_GAP_NOT_ATTACHED, /* the thread ran before it was recorded */
    DEC_GAP_OVERWRITTEN,  /* older than the ring */
    DEC_GAP_PAUSED,       /* a snapshot was being taken */
    DEC_GAP_LOST,         /* PERF_RECORD_LOST and the like */
    DEC_GAP_STALE_FILE,   /* the file was deleted or is not the one that was mapped (build id) */
    DEC_GAP_JIT,          /* code without a file */
    DEC_GAP_CPU,          /* a CPU came or went: it was not recorded */
    DEC_GAP_THROTTLED,    /* the kernel held samples back */
    DEC_GAP_NOT_SAMPLED,  /* a thread ran and no sample was taken */
    DEC_GAP_LEFT_OUT,     /* the recorder took fewer samples, so that they cost no more than they may */
    DEC_GAP_NO_RING,      /* the thread's ring went, or was never made, as all together may take so much */
};
const char *dec_gap_name(enum dec_gap reason);

enum { DEC_POWER_TEXT = 128 };

/* The name of what a DEC_POWER's arg tells, a mark's (docs/schema.md), and its details in `text`. */
const char *dec_power_text(uint64_t arg, char *text, size_t size);

struct dec_event {
    uint64_t time; /* perf clock ns (raw input without a clock: TSC; neither: 0); never less than the one
                      before it */

    uint64_t from; /* address of the branch instruction */

    uint64_t to;

    /* DEC_GAP: reason; DEC_PTWRITE: payload; DEC_POWER: see there; others: instructions since the event
     * before, this one included, and core clock cycles: DEC_INSTRUCTIONS, DEC_CYCLES */
    uint64_t arg;

    uint16_t kind;

    uint16_t flags;

    int32_t cpu; /* -1: unknown */
};

/* Whether an event of that kind has counts in `arg`. */
static inline bool dec_has_counts(unsigned kind)
{
    return kind != DEC_PTWRITE && kind != DEC_POWER && kind != DEC_GAP;
}

/* Adds counts to others, both as `arg` has them. False: they do not fit, and nothing was added. */
static inline bool dec_add_counts(uint64_t *arg, uint64_t more)
{
    uint64_t instructions = DEC_INSTRUCTIONS(*arg) + DEC_INSTRUCTIONS(more);
    uint64_t cycles = DEC_CYCLES(*arg) + DEC_CYCLES(more);

    if ((instructions | cycles) > UINT32_MAX)
        return false;
    *arg = cycles << 32 | instructions;
    return true;
}

/* What a piece of the stream belongs to. */
struct dec_stream_info {
    int32_t pid, tid; /* -1: unknown */

    uint32_t ring;
};

/* Receives the events of one thread in order, in batches. `detail` belongs to a DEC_GAP event in the batch
 * (at most one, the last) or is NULL. Non-zero stops the decoding and is returned. */
typedef int dec_emit_fn(void *ctx, const struct dec_stream_info *info, const struct dec_event *events,
                        size_t n, const char *detail);

#endif
