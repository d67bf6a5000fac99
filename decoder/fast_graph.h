/* The graph of code that the fast walk follows: a node is a run of instructions up to the branch that ends
 * it, an edge leads to the node where that branch goes. Built as the trace comes along, kept until the end.
 */
#ifndef ST_DECODER_FAST_GRAPH_H
#define ST_DECODER_FAST_GRAPH_H

#include "decoder/flow_code.h"

#include "base/vec.h"

/* What an edge leads to, in its low 3 bits: what decides where its node goes on. The rest is the node's
 * number. */
enum fast_kind {
    FAST_COND,     /* a bit of trace */
    FAST_RETURN,   /* a set bit and the return stack, or an address in the trace */
    FAST_CALL,     /* nothing; what is behind the call goes to the return stack */
    FAST_JUMP,     /* nothing: a direct jump, or a call to the next instruction */
    FAST_TIP,      /* an address in the trace */
    FAST_PASS,     /* nothing: the run ends without a branch */
    FAST_TIP_CALL, /* an address in the trace; what is behind the call goes to the return stack */
    FAST_OPEN, /* not followed yet: the rest says where it starts, node << 1 | direction, or FAST_STUB | slot
                */
};

typedef uint32_t fast_edge;

enum {
    FAST_SHIFT = 3,
    FAST_STUB = 1 << 28, /* an address that the walk keeps in a slot of its own */
    FAST_NODES = 1 << 24,
};

static const fast_edge FAST_NO_EDGE = UINT32_MAX;

/* Directions of a node's two edges. Where the trace has the address, FAST_TAKEN leads to where it went last;
 * FAST_FALL of FAST_RETURN and FAST_TIP is no edge but the low half of the address behind the instruction. */
enum { FAST_FALL, FAST_TAKEN };

struct fast_node {
    fast_edge to[2];
};

/* What the walk along the edges does not look at. */
struct fast_about {
    uint64_t start;

    struct code_run run;

    uint32_t world; /* index of fast_world */
};

/* Code as it stood in an address space over a time in which nothing that was mapped there was replaced. */
struct fast_world {
    const struct dec_space *space;

    uint64_t until; /* perf ns */

    enum code_mode mode;
};

struct fast_graph {
    struct fast_node *nodes; /* reserved for FAST_NODES, as are the others: they never move */

    struct fast_about *about;

    uint32_t n;

    uint32_t *slots; /* hash of world and start -> node + 1 */

    size_t nslots;

    ST_VEC(struct fast_world) worlds;

    struct code *code;
};

/* ST_ENOMEM. */
int fast_graph_new(struct fast_graph *graph, struct st_error *err);
void fast_graph_free(struct fast_graph *graph);

/* The world of a space at a time; its index, or -1 (no memory). */
int fast_graph_world(struct fast_graph *graph, const struct dec_space *space, uint64_t time,
                     enum code_mode mode);

/* The edge to the code at `ip`, decoded if it is new. FAST_NO_EDGE: there is none, or no room for it. */
fast_edge fast_graph_at(struct fast_graph *graph, uint32_t world, uint64_t time, uint64_t ip);

/* Follows an edge that is FAST_OPEN and no stub, and closes it. As fast_graph_at(). */
fast_edge fast_graph_open(struct fast_graph *graph, fast_edge edge, uint64_t time);

/* The instruction at the end of a node's run, what is behind it, and where a direct one leads. */
uint64_t fast_from(const struct fast_graph *graph, const struct fast_about *about);
uint64_t fast_next(const struct fast_graph *graph, const struct fast_about *about);
uint64_t fast_target(const struct fast_graph *graph, const struct fast_about *about);

/* Where an edge that is no stub leads. */
uint64_t fast_edge_ip(const struct fast_graph *graph, fast_edge edge);

#endif
