/* The stack builder: the branches of one thread -> calls, segment by segment.
 *
 * A segment is continuous and lossless: it ends at a DEC_GAP, at exec and at the end of the stream. Nothing
 * is matched across its ends. The rules (how returns find their frame, tail calls, signals, stacks that are
 * switched) are told in docs/schema.md, section "How calls are rebuilt". */
#ifndef ST_DECODER_CALLSTACK_STACK_H
#define ST_DECODER_CALLSTACK_STACK_H

#include "base/error.h"
#include "decoder/dwarf/inlines.h"
#include "decoder/event/event.h"
#include "decoder/sideband/offcpu.h"
#include "tracedb/tracedb.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a function is to the rules. */
enum dec_role {
    DEC_ROLE_PLAIN,
    DEC_ROLE_UNKNOWN,        /* no symbol covers the address; start and end bound what is not known */
    DEC_ROLE_RETURN_THUNK,   /* jumped to in place of a return (__x86_return_thunk): part of the function that
                                jumps */
    DEC_ROLE_INDIRECT_THUNK, /* called or jumped to in place of an indirect branch (__x86_indirect_thunk_rax)
                              */
    DEC_ROLE_SCHEDULER, /* the kernel's __schedule: where a thread comes back to after it was off its CPU */
    DEC_ROLE_UNWINDER,  /* leaves for one of its callers, at whatever place there (longjmp) */
    DEC_ROLE_RESUMER, /* likewise, but not for the one that called it (_Unwind_Resume): that has cleaned up */
    DEC_ROLE_FIBER_STARTER,   /* OCaml's caml_runstack: calls what runs on a stack of its own, a fiber */
    DEC_ROLE_FIBER_PERFORMER, /* caml_perform: leaves a fiber by a jump to what handles the effect */
    DEC_ROLE_FIBER_UNHANDLED, /* caml_c_call: where caml_perform jumps to if nothing handles the effect */
    DEC_ROLE_FIBER_RESUMER,   /* caml_resume: jumps to what then returns into a fiber that was left */
};

/* A function, as the rules see it. Lives as long as the stack builder. */
struct dec_function {
    uint64_t start, end; /* [start, end) */

    uint32_t symbol; /* passed through to the calls */

    uint32_t family; /* the same for the pieces into which the compiler cut one function (foo, foo.cold) */

    bool whole; /* no split-off piece: several functions of one file may have one name, and that family */

    enum dec_role role;

    bool guessed; /* the bounds are: several functions may be in it */

    uint64_t own; /* `start` in the image's own addresses */

    struct dec_inline_tree *inlined; /* what was inlined in it; NULL: nothing, or it is not wanted */
};

/* Whether two are pieces of one function. A split-off piece is of any that has its name. */
static inline bool dec_same_family(const struct dec_function *a, const struct dec_function *b)
{
    return a->family == b->family && (!a->whole || !b->whole || a->symbol == b->symbol);
}

/* Stand-ins for what a user-only trace does not hold. */
enum dec_pseudo {
    DEC_PSEUDO_SYSCALL,   /* in the kernel for a system call */
    DEC_PSEUDO_INTERRUPT, /* in the kernel for an interrupt or an exception */
    DEC_PSEUDO_SIGNAL,    /* from the delivery of a signal to its sigreturn; the handler is its child */
    DEC_PSEUDO_UNTRACED,  /* a call that led out of what is traced (address filters) */
    DEC_PSEUDO_COUNT
};

/* "[syscall]" and so on. */
const char *dec_pseudo_name(enum dec_pseudo pseudo);

struct st_spill;

struct dec_stack_config {
    void *ctx; /* handed to the functions */

    /* The function at an address at a time. NULL only when memory ran out. */
    const struct dec_function *(*function)(void *ctx, uint64_t time, uint64_t address);

    /* Length of the instruction at an address, 0 when it cannot be known. Asked only for events that do not
     * carry it. May be NULL. */
    unsigned (*length)(void *ctx, uint64_t time, uint64_t address);

    /* Whether a call instruction ends at an address. Asked only where a function begins there. May be NULL.
     */
    bool (*call_before)(void *ctx, uint64_t time, uint64_t address);

    /* The symbol of a function that was inlined (dec_function.inlined); UINT32_MAX: no memory. NULL: such
     * functions are no calls. */
    uint32_t (*inlined)(void *ctx, const struct dec_function *function, uint32_t node);

    /* Takes the calls of a finished segment, piece by piece, times in the unit of dec_event.time: n of them,
     * sorted by start, parents before their children. work: what ran during each; NULL where no cycles are
     * known. Non-zero ends the decoding and is returned. */
    int (*segment)(void *ctx, const struct tdb_span *calls, const struct tdb_work *work, size_t n,
                   struct st_error *err);

    struct st_spill *spill; /* of the calls of a segment; NULL: all stay in memory */

    uint32_t pseudo[DEC_PSEUDO_COUNT]; /* their symbols */

    struct dec_offcpu *offcpu; /* sorted, disjoint; the caller's, valid until the stack is closed */

    size_t noffcpu;

    const uint64_t *execs; /* times of exec, sorted; the caller's */

    size_t nexecs;
};

/* What was repaired, for the account in `meta`. */
struct dec_stack_counts {
    uint64_t calls;

    uint64_t reconstructed; /* frames whose call was not seen */

    uint64_t unwound; /* frames left without a return */

    uint64_t strays; /* branches that led to a place no rule explains */

    uint64_t switches; /* changes to another stack of the thread */
};

struct dec_stack;

/* ST_ENOMEM. */
int dec_stack_open(const struct dec_stack_config *config, struct dec_stack **stack, struct st_error *err);

/* The next events of the thread. ST_ENOMEM, ST_EFAIL (the spill's file), or what config.segment returned. */
int dec_stack_events(struct dec_stack *s, const struct dec_event *events, size_t n, struct st_error *err);

/* The stream is over; `end` is when the thread ended or the recording did. A thread last seen leaving the
 * traced code is taken to have stayed outside until then. */
int dec_stack_finish(struct dec_stack *s, uint64_t end, struct st_error *err);

const struct dec_stack_counts *dec_stack_counts(const struct dec_stack *s);

/* NULL is allowed. */
void dec_stack_close(struct dec_stack *s);

#endif
