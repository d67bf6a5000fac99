/* The graph of code that the fast walk follows: a node is a run of instructions up to the branch that ends
 * it, an edge leads to the node where that branch goes. Built as the trace comes along, kept until the end.
 */
#ifndef ST_DECODER_PT_FAST_GRAPH_H
#define ST_DECODER_PT_FAST_GRAPH_H

#include "decoder/pt/code.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

/* What an edge leads to, in its low 3 bits: what decides where its node goes on. Above FAST_SHIFT is the
 * node's number. */
enum fast_kind {
    FAST_OPEN, /* not followed yet: the rest says where it starts, node << 1 | direction, or FAST_STUB | slot
                */
    FAST_COND, /* a bit of trace */
    FAST_RETURN,   /* a set bit and the return stack, or an address in the trace */
    FAST_CALL,     /* nothing; what is behind the call goes to the return stack */
    FAST_JUMP,     /* nothing: a direct jump, or a call to the next instruction */
    FAST_TIP,      /* an address in the trace; or nothing helps: fast_is_lost() */
    FAST_TIP_CALL, /* an address in the trace; what is behind the call goes to the return stack */
    FAST_PASS,     /* nothing: the run ends without a branch */
};

typedef uint32_t fast_edge;

enum {
    FAST_SHIFT = 4,      /* an edge without its kind is the offset of its node */
    FAST_STUB = 1 << 27, /* an address that the walk keeps in a slot of its own */
    FAST_NODES = 1 << 24,
    FAST_EPOCHS = 1 << 20,
    FAST_EPOCH_SLOTS = 2 * FAST_EPOCHS, /* never more than half full */
};

static const fast_edge FAST_NO_EDGE = UINT32_MAX;

/* Directions of a node's two edges. Where the trace has the address, FAST_TAKEN leads to where it went last,
 * and FAST_FALL of FAST_RETURN and FAST_TIP is then no edge but the low half of the address behind the
 * instruction. */
enum { FAST_FALL, FAST_TAKEN };

/* What each walk has of a node for itself. An edge of 0 was not looked at yet. Where counts alone are wanted,
 * an edge skips nodes that need no trace and push nothing: fast_node.to leads past them, fast_shared_succ.to
 * to the first.
 */
struct fast_node {
    fast_edge to[2];

    uint32_t visits[2];
};

static_assert(sizeof(struct fast_node) == 1 << FAST_SHIFT, "edges are offsets of nodes");

/* Visits of a walk that skipped nothing, where `visits` would. */
struct fast_exact_visits {
    uint32_t visits[2];
};

/* The direct edges of a node as all walks share them: what one has opened, the others need not look up. */
struct fast_shared_succ {
    _Atomic(fast_edge) to[2];
};

/* Whether it stays within a function. Any walk may ask, and finds the same. */
enum fast_stays { FAST_NOT_ASKED, FAST_STAYS, FAST_GOES };

/* What the walk along the edges does not look at. */
struct fast_node_info {
    uint64_t start;

    struct code_run run;

    uint32_t epoch; /* index of code_epoch */

    _Atomic(uint8_t) stays; /* enum fast_stays, of a direct jump */
};

/* Code as it stood in an address space over a time in which nothing that was mapped there was replaced. */
struct code_epoch {
    const struct dec_space *space;

    uint64_t until; /* perf ns */

    enum code_mode mode;
};

struct fast_slot {
    uint64_t start;

    uint32_t epoch;

    _Atomic(uint32_t) node; /* 0: free; set when the rest is */
};

/* Hash of code epoch and start. */
struct fast_table {
    struct fast_slot *slots;

    size_t n;

    struct fast_table *smaller; /* that it replaced, in which others may still be looking */
};

/* Shared by the walks of several threads: what a node number or code epoch that one of them was given stands
 * for does not change. What is there is looked up without the lock, what is not is added behind it. */
struct fast_graph {
    pthread_mutex_t lock;

    struct fast_node_info *info; /* reserved for FAST_NODES: it never moves */

    struct fast_shared_succ *succ; /* likewise; read and written without the lock */

    uint32_t n; /* the first is none */

    struct fast_table *_Atomic table;

    struct code_epoch *epochs; /* reserved for FAST_EPOCHS */

    uint32_t nepochs;

    uint32_t *epoch_slots; /* hash of what a code epoch is; its index and 1; 0: free. Reserved for
                              FAST_EPOCH_SLOTS */

    struct code *code;

    bool large; /* what is reserved stands in large pages: it is walked at random */
};

/* For so many bytes of trace. ST_ENOMEM. */
int fast_graph_new(struct fast_graph *graph, size_t bytes, struct st_error *err);
void fast_graph_free(struct fast_graph *graph);

/* How many nodes there are, while others add some. */
uint32_t fast_graph_count(struct fast_graph *graph);

/* The code epoch of a space at a time (NULL: no code is known in it); its index, or -1 (no memory). */
int fast_graph_epoch(struct fast_graph *graph, const struct dec_space *space, uint64_t time,
                     enum code_mode mode);

/* Address space without memory behind it until it is used; NULL: there is none. */
void *fast_reserve(size_t size, bool large);

/* The edge to the code at `ip`, decoded if it is new; where there is none, to a node that says so.
 * FAST_NO_EDGE: no room for it. */
fast_edge fast_graph_at(struct fast_graph *graph, uint32_t epoch, uint64_t time, uint64_t ip);

/* The direct edge of a node; 0: it was not opened yet. */
static inline fast_edge fast_graph_succ(const struct fast_graph *graph, uint32_t node, unsigned side)
{
    return atomic_load_explicit(&graph->succ[node].to[side], memory_order_acquire);
}

/* Opens it. FAST_NO_EDGE: as fast_graph_at(). */
fast_edge fast_graph_open(struct fast_graph *graph, uint32_t node, unsigned side, uint64_t time);

/* Whether execution cannot go on behind a node's run: no instruction is known there. */
static inline bool fast_is_lost(const struct fast_node_info *info)
{
    return info->run.end >= CODE_BAD;
}

/* As code_reaches(). */
bool fast_graph_reaches(struct fast_graph *graph, const struct fast_node_info *info, uint64_t time,
                        uint64_t stop, uint32_t *count);

/* The instruction at the end of a node's run, what is behind it, and where a direct one leads. */
uint64_t fast_from(const struct fast_graph *graph, const struct fast_node_info *info);
uint64_t fast_next(const struct fast_graph *graph, const struct fast_node_info *info);
uint64_t fast_target(const struct fast_graph *graph, const struct fast_node_info *info);

/* Where an edge that is no stub leads. */
uint64_t fast_edge_ip(const struct fast_graph *graph, fast_edge edge);

#endif
