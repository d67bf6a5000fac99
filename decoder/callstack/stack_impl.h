/* Inside of the stack builder: frames, rows, and who does what (this folder only). */
#ifndef ST_DECODER_CALLSTACK_STACK_IMPL_H
#define ST_DECODER_CALLSTACK_STACK_IMPL_H

#include "base/vec.h"
#include "decoder/callstack/stack.h"
#include "tracedb/calls.h"

enum frame_kind {
    FRAME_CALL,
    FRAME_BASE, /* the outermost frame that is known of a partial stack: what called it is not known (yet) */
    FRAME_KERNEL,  /* entered from `alt`, goes on at `ret` or (restarted, faulted) at `alt` */
    FRAME_SIGNAL,  /* the pseudo frame around a signal handler; ret and alt of the entry that it came from */
    FRAME_INNER,   /* a call into the middle of the function that calls: no call of a function, has no row of
                      its own */
    FRAME_HANDLER, /* a signal handler: returns to an address that the kernel chose */
};

/* A run of frames whose outermost one is a FRAME_BASE: its outer neighbour is not (known to be) its caller.
 * The first frame of a segment begins one; so does a place that was reached in no way that the rules explain.
 */
struct partial_stack {
    uint64_t start, cpu_start;

    struct tdb_work work;

    uint32_t row; /* number of rows there were when it began */

    uint32_t parent; /* index into `parents`: that of its outermost rows */

    bool switched; /* another stack of the thread (coroutine, fiber): parked when it is left */
};

struct frame {
    const struct dec_function *function;

    uint64_t ret; /* where its caller goes on; 0: not known */

    uint64_t alt;

    uint64_t cpu_start, cpu_children; /* on the thread's CPU clock */

    struct tdb_work work; /* that the thread had done when it began */

    struct partial_stack partial; /* FRAME_BASE */

    uint32_t row; /* handle */

    uint8_t kind;

    bool resumes; /* it leaves for a stack that was parked */

    bool ran; /* some of its instructions are known to have; only where inlined calls are wanted */

    uint32_t inlined; /* its open inlined calls: from this one of dec_stack.inlined on, to those of the next
                         frame. A FRAME_INNER has those of the frame it is in */
};

/* A function that was inlined in the function of a frame, or in another such one. */
struct inlined {
    const struct dec_inline_tree *tree;

    uint32_t node, row; /* of the tree; handle */

    uint64_t cpu_start, cpu_children;

    struct tdb_work work;
};

/* A call of the current segment. Handles: an index into rows, ROW_INSERTED | an index into inserted, as a
 * parent also ROW_SHARED | an index into parents. */
struct row {
    struct tdb_span call; /* its parent: 1 + a handle, or 0; its depth: not known yet */

    struct tdb_work work;
};

#define ROW_INSERTED 0x80000000u
#define ROW_SHARED   0xc0000000u /* both bits */

/* A caller that turned up late. */
struct inserted {
    struct row row;

    uint32_t before; /* stands before this index of rows (and before those inserted there earlier) */
};

/* The parent of the outermost rows of a partial stack, which may turn up late. */
struct shared_parent {
    uint32_t handle; /* 1 + it, or 0 */

    uint32_t first; /* handle of the first of those rows */

    uint32_t flags; /* of that row: TDB_CALL_INTERPOLATED */
};

enum { ROWS = 256 /* of a block */ };

/* A block of consecutive rows. When there are that many and all have ended they are packed. */
struct row_block {
    struct row *rows; /* NULL: packed */

    struct st_spool_place place;

    uint32_t n, ended;
};

struct parked_frame {
    const struct dec_function *function;

    uint64_t ret, alt;

    uint8_t kind;
};

/* Frames of a stack that the thread left for another of its stacks; goes on when something returns to `ret`.
 */
struct parked {
    uint64_t ret;

    struct parked_frame *frames; /* outermost first */

    size_t n, alike; /* frames; stacks with these frames */
};

/* A partial stack that goes on where several different stacks were left: which of them it is shows as it
 * returns to its callers. Until then all of them stay parked. */
struct resumed {
    bool open;

    uint32_t row; /* of the partial stack */

    uint64_t ret; /* of the parked stacks */

    ST_VEC(uint64_t) path; /* where it returned to since */
};

struct dec_stack {
    struct dec_stack_config config;

    struct dec_stack_counts counts;

    ST_VEC(struct frame) frames;

    size_t nrows;

    ST_VEC(struct inlined) inlined; /* open, outermost first */

    uint64_t at; /* the instruction that is next; 0: not known, or inlined calls are not wanted */

    bool goes_on; /* that one stands behind a call that returned */

    ST_VEC(struct row_block) blocks; /* of the rows */

    struct row *spare; /* of a block that was packed; NULL: none */

    struct st_spool packed;

    ST_VEC(struct inserted) inserted;

    struct tdb_work work; /* that the thread has done */

    ST_VEC(struct shared_parent) parents;

    struct st_error error; /* why something returned -1; code 0: there was no memory */

    ST_VEC(uint32_t) active; /* by symbol: how often it is on the path, as calls go out; 0 in between */

    ST_VEC(struct parked) parked;

    struct resumed resumed; /* the latest such partial stack */

    uint64_t now;

    bool exact; /* `now` is a point of the trace */

    bool open; /* a segment is */

    bool skipped; /* the last branch was a call over a few bytes, which is none: part of a retpoline */

    bool outside; /* the thread left what is traced and has not come back */

    struct dec_event left; /* a branch without a target, until the next event tells why */

    bool has_left;

    uint64_t base; /* calls of the segments before */

    size_t offcpu_next; /* the first interval that begins after `now` */

    size_t offcpu_done; /* intervals that ended by `now`, their sum */

    uint64_t offcpu_sum;

    size_t offcpu_first; /* the first interval of this segment */

    size_t exec_next;
};

/* ---- frames.c ---- */

/* err becomes what it was that returned -1. */
int stk_failed(const struct dec_stack *s, struct st_error *err);

/* The thread's CPU clock at `now`: time without the intervals off the CPU. */
uint64_t stk_cpu(const struct dec_stack *s);

struct frame *stk_top(struct dec_stack *s); /* NULL: no frame */

/* ---- row.c ---- */

/* A row that has not ended. */
struct row *stk_row(struct dec_stack *s, uint32_t handle);

/* A row at the end, which begins now; `parent` as in its call. Its handle is the number of rows there were. 0
 * or -1. */
int stk_new_row(struct dec_stack *s, uint32_t symbol, uint32_t parent, uint32_t flags);

/* A row ended, and nothing of it will change. 0 or -1. */
int stk_row_ended(struct dec_stack *s, uint32_t handle);

/* Drops all rows. */
void stk_clear_rows(struct dec_stack *s);

/* ---- frames.c ---- */

/* Handle of the innermost open call, there must be a frame. */
uint32_t stk_innermost(struct dec_stack *s);

/* Moves `now` on. */
void stk_advance(struct dec_stack *s, uint64_t time);

/* CPU time that passed in what the innermost open call called. */
void stk_add_child(struct dec_stack *s, uint64_t cpu);

/* Fills a row that began with so much CPU time, of which so much passed in its children, and work, and ends
 * now. `cpu` becomes its CPU time. 0 or -1. */
struct since {
    uint64_t cpu_start, cpu_children;

    struct tdb_work work;
};
int stk_finish_row(struct dec_stack *s, uint32_t handle, const struct since *since, uint32_t flags,
                   uint64_t *cpu);

/* Push at `now`. FRAME_BASE begins a partial stack. 0 or -1 (no memory). */
int stk_push(struct dec_stack *s, const struct frame *frame, uint32_t symbol, uint32_t flags);

/* Closes the top frame at `now`. 0 or -1. */
int stk_pop(struct dec_stack *s, uint32_t flags);

/* Closes every frame above index `keep` - 1, as left without return. Parks other stacks when `park`. 0 or -1.
 */
int stk_unwind(struct dec_stack *s, size_t keep, bool park);

/* Notes a call within the top frame's function. 0 or -1. */
int stk_push_inner(struct dec_stack *s, uint64_t ret);

/* The top frame's function jumps to another. 0 or -1. */
int stk_tail(struct dec_stack *s, const struct dec_function *function);

/* The top frame, a FRAME_BASE, returns into `function`, its caller: which then becomes the base. `address`:
 * where it goes on there behind the call; 0: not known. 0 or -1. */
int stk_base_returned(struct dec_stack *s, const struct dec_function *function, uint64_t address);

/* The frame of index `base`, a FRAME_BASE, turns out to have been called by
 * `function`, where it will return to `address`: it becomes a frame as `called` says, and that function the
 * base. 0 or -1. */
int stk_base_called(struct dec_stack *s, size_t base, const struct dec_function *function,
                    const struct parked_frame *called);

/* ---- rules.c: 0 or -1 ---- */
int stk_call(struct dec_stack *s, const struct dec_event *e);
int stk_return(struct dec_stack *s, const struct dec_event *e);
int stk_jump(struct dec_stack *s, const struct dec_event *e);

/* Begins a partial stack at an address. */
int stk_island(struct dec_stack *s, uint64_t address, uint32_t flags, bool switched);

/* Index of the innermost frame below index `n` of the function that holds `address`; -1: none. */
long stk_find_function(const struct dec_stack *s, size_t n, const struct dec_function *function);

/* Index of the innermost frame that returns to `address`; -1: none. */
long stk_find_return(const struct dec_stack *s, uint64_t address);

const struct dec_function *stk_function(struct dec_stack *s, uint64_t address);

/* ---- kernel.c: into the kernel and out of it: 0 or -1 ---- */
int stk_enter(struct dec_stack *s, const struct dec_event *e);
int stk_disable(struct dec_stack *s, const struct dec_event *e);
int stk_resume(struct dec_stack *s, uint64_t address);

/* A kernel-only trace: the kernel was left for user code that is not traced. 0 or -1. */
int stk_leave(struct dec_stack *s);

/* Whether an exec that was not used up happened by now. Uses it up. */
bool stk_take_exec(struct dec_stack *s);

/* The first frame of a new program, at its entry. 0 or -1. */
int stk_new_image(struct dec_stack *s, uint64_t address);

/* ---- park.c ---- */

/* Parks the switched partial stacks among the frames from index `from` on. 0 or -1. */
int stk_park(struct dec_stack *s, size_t from);

/* If a parked stack goes on at `address`: puts its frames back. Where different ones may: only the function
 * there, as a partial stack; stk_settle() finds its callers. 1: done, 0: none, -1: no memory. */
int stk_unpark(struct dec_stack *s, uint64_t address);

/* The same for a stack that goes on behind any of its calls: what is called there has been given up, as Go
 * does where a goroutine loses its turn in a call that would have grown its stack. */
int stk_unpark_caller(struct dec_stack *s, uint64_t address);

/* Parks the frames from index `from` on, which are one stack. 0 or -1. */
int stk_park_frames(struct dec_stack *s, size_t from);

/* A jump leads behind the call that frame `from` came from, which only a switch to another stack does: parks
 * the stack that began in that frame or above it. 0 or -1. */
int stk_park_jumped(struct dec_stack *s, size_t from);

/* If a parked stack has a frame of `function`: unwinds to `keep` frames and puts that stack back down to that
 * frame. 1: done, 0: none, -1: no memory. */
int stk_unpark_function(struct dec_stack *s, size_t keep, const struct dec_function *function);

/* The top frame, a FRAME_BASE, returns to `address`. If its partial stack went on where several stacks were
 * left: those that returned elsewhere are ruled out, and when one is left its frames are put around. 1: the
 * return is done, 0: not, -1: no memory. */
int stk_settle(struct dec_stack *s, uint64_t address);

void stk_drop_parked(struct dec_stack *s);

/* ---- effects.c ---- */

/* The top frame performs an effect: it leaves its fiber for `handler`. 0 or -1. */
int stk_perform(struct dec_stack *s, const struct dec_function *handler);

/* The top frame goes on with a fiber: first with `closure`, on the fiber's stack. 0 or -1. */
int stk_continue(struct dec_stack *s, const struct dec_function *closure);

/* If the top frame goes on with a parked stack: puts that one back which goes on at `address`, or has a frame
 * of `function` (NULL: any may have). 1: done, 0: not, -1: no memory. */
int stk_resumed(struct dec_stack *s, uint64_t address, const struct dec_function *function);

/* If a fiber ends in `function`, which started it: drops its frames. 1: done, 0: not, -1: no memory. */
int stk_fiber_ended(struct dec_stack *s, const struct dec_function *function);

/* ---- inlined.c: what was inlined ---- */

/* What ran up to the event, whose time has not come yet. Nothing where inlined calls are not wanted. 0 or -1.
 */
int stk_run_inlined(struct dec_stack *s, const struct dec_event *e);

/* The event happened. */
void stk_note_place(struct dec_stack *s, const struct dec_event *e);

/* Closes the inlined calls from index `keep` of dec_stack.inlined on. 0 or -1. */
int stk_close_inlined(struct dec_stack *s, size_t keep, uint32_t flags);

/* The top frame's function, which was called earlier, is known to have made a call that returns to `address`:
 * opens what that call was in. 0 or -1. */
int stk_reopen_inlined(struct dec_stack *s, uint64_t address);

/* What a call of `function` that returns to `address` was in: rows inserted at the partial stack's beginning,
 * the innermost first, and open calls. The row inserted next, the function's own, is around them. 0 or -1. */
int stk_insert_inlined(struct dec_stack *s, const struct dec_function *function, uint64_t address,
                       const struct partial_stack *partial, uint32_t flags);

/* A row that is inserted at the partial stack's beginning, where it begins: a caller that turned up late. 0
 * or -1.
 */
int stk_insert_row(struct dec_stack *s, const struct tdb_span *call, const struct partial_stack *partial);

/* ---- segment.c ---- */

/* Closes all frames at `now` and hands the calls out. 0, ST_ENOMEM or what the receiver returned. */
int stk_end_segment(struct dec_stack *s, struct st_error *err);

#endif
