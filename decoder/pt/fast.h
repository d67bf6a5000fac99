/* The fast walk: its own packet reader over a graph of code, from PSB to PSB. It knows the packets that CPUs
 * send all the time and code that fits them; where it meets anything else it gives the stretch back to the
 * walk by libipt (decoder/pt/walk.h), which decodes it again from its PSB. Both give the same events, times
 * and counts. */
#ifndef ST_DECODER_PT_FAST_H
#define ST_DECODER_PT_FAST_H

#include "decoder/pt/fast_graph.h"
#include "decoder/pt/pieces.h"
#include "decoder/pt/walk.h"

/* The walk as it stands between two packets. */
struct fast_state {
    fast_edge at; /* execution stands where it starts */

    bool on; /* tracing is */

    enum code_mode mode;

    bool mode_known;

    uint64_t last_ip; /* that addresses are packed against */

    unsigned top, depth;

    struct flow_times times; /* without libipt's decoders */

    uint64_t serial; /* of the time that was last given */

    uint64_t now; /* perf ns */

    struct dec_where where;

    bool asked, ask_due;

    uint32_t epochs[2]; /* of user and kernel addresses */

    uint64_t epochs_until;

    uint64_t limit; /* TSC from when on `where` or the code epochs may be others */

    uint64_t limit_cycles; /* since times.from: not reached before */

    uint64_t limit_ctc; /* times.base.ctc: not reached before, nor in the NEAR_CYCLES behind it */

    uint64_t leave; /* as walk.leave */

    bool begin; /* as walk.begin, where counts alone are wanted */

    uint8_t modes; /* as walk.modes */

    bool did; /* there was more than the start of tracing, since the last gap */

    bool lost; /* the place is unknown until a packet has an address */

    struct walk_missing missing; /* since the last PSB; behind_psb is not used */

    /* Addresses of edges that are stubs: of `at`, and of returns[] behind it. */
    uint64_t stubs[1 + WALK_RETURNS];

    fast_edge returns[WALK_RETURNS]; /* ring. Without depth nothing behind stubs[0] counts */
};

struct fast_reached {
    uint64_t ip;

    uint32_t node, count;
};

struct fast_hit {
    uint64_t ip;

    uint32_t epoch;

    fast_edge edge; /* 0: none */
};

/* Why execution cannot be followed any further from where it stands. */
enum fast_stuck {
    FAST_NOT_STUCK,
    FAST_STUCK_CODE, /* no instruction is known there */
    FAST_STUCK_CALL, /* a return to a call that was not seen, in code that is missing */
};

/* A gap, where counts alone are wanted. */
struct fast_gap {
    enum dec_gap reason;

    const struct dec_image *image;

    bool did; /* as of struct fast_state, before it */
};

enum { FAST_HITS = 1 << 14, FAST_REACHED = 1 << 8, FAST_BITS = 62 /* that may wait */ };

/* What fast_cross() found ahead of it while tracing was off, for the PSB+ that it found there. */
struct fast_ahead {
    ST_VEC(const uint8_t *) headers; /* ends of the PSB+ on the way */

    size_t next; /* of them */

    bool whole;

    const uint8_t *clock_from, *clock_to; /* the next TSC or TMA packet at or behind the first is the other */

    bool clock_tsc;
};

/* Branches that are nothing to a stack are not told, only counted. */
struct fast_idle {
    uint64_t cond_jump, jump, taken;
};

struct fast_last {
    uint32_t node;

    size_t words; /* of the trail; 0: it is not told */

    bool branch; /* it is one */

    bool untold; /* as of struct fast, before it */
};

/* The last branch that is not told, since the last entry of the trail. */
struct fast_quiet {
    uint32_t branch; /* node << 1 | side; 0: none */

    bool untold; /* as of struct fast, before it */

    uint64_t pending; /* likewise, behind it */
};

/* A walk over stretches. */
struct fast {
    struct walk *w;

    struct fast_pool *pool; /* NULL: none */

    struct fast_graph *graph;

    struct fast_node *nodes; /* by number; reserved, as `info` of the graph */

    struct fast_exact_visits *exact_visits; /* by number, likewise; NULL where the trail is wanted */

    uint64_t *weights; /* of steps: number * 2 + side, likewise; NULL where only counts are: fast_follow.c */

    struct fast_hit *hits; /* addresses looked up of late */

    struct fast_reached reached[FAST_REACHED]; /* instructions within nodes, where interrupts were of late */

    bool counting; /* only counts are wanted: visits; else the trail */

    struct fast_state s;

    struct fast_state start; /* behind the PSB+ before the stretch */

    const uint8_t *from; /* where the stretch begins */

    const uint8_t *begin, *p, *end; /* the run of bytes; p: behind the packet that is being taken */

    uint32_t delta; /* of visits. 1; all ones to take a stretch back */

    uint64_t bits; /* of TNT packets that wait: the last is the lowest */

    unsigned nbits;

    ST_VEC(uint32_t) trail; /* of the stretch, where events are wanted: fast_trail.c */

    uint64_t pending; /* instructions since the last entry of the trail, */

    bool untold; /* and whether a branch that is not told was among them */

    struct fast_idle idle; /* all of those of the stretch */

    struct fast_last last; /* branch that a bit of trace decided */

    struct fast_quiet quiet;

    uint32_t begun; /* a node of which the instructions before its branch are pending already; 0: none */

    bool begun_point; /* and a point stands behind those */

    struct fast_ahead ahead;

    size_t pool_from; /* offset in the run: the pool is asked again */

    enum fast_stuck stuck;

    bool synced; /* the stretch ended at a gap, and the walk stands behind the next PSB+ */

    ST_VEC(struct fast_gap) gaps; /* where counts alone are wanted: those that are not counted yet */

    bool far_waits; /* the address of a far branch that switched the address space is still to come */

    enum dec_slow why; /* the last stretch could not be done */

    uint64_t loose; /* instructions that ended at no branch of the graph */
};

typedef ST_VEC(size_t) psb_list; /* offsets in a run of bytes */

/* ST_ENOMEM. */
int fast_new(struct fast **fast, struct fast_graph *graph, struct walk *w, struct st_error *err);
void fast_free(struct fast *fast);

/* Lends a walk to another ring, as if it were new: with what it knows of the graph. */
void fast_lend(struct fast *fast, struct walk *w);

/* Walks all of a run of bytes by turns of both walks. As walk_run(). */
int fast_run(struct fast *fast, const struct pt_run *run);

/* fast_follow.c, where the trail is wanted: what of these returns false cannot be done here. */

/* Takes bits of TNT packets. `timed`: fast_point_last() follows. */
bool fast_follow(struct fast *f, uint64_t bits, bool timed);

/* Asks whose trace it is, if it may be another behind the branch that was left last: from or to the kernel.
 */
bool fast_ask_last(struct fast *f);

/* The time of what comes now is that of the last of those bits: its branch is behind it in the trail. */
bool fast_point_last(struct fast *f);

/* Nothing may follow: the last branch is told, so that it is known until when there was one. */
bool fast_tell_quiet(struct fast *f);

/* Leaves a node by a side, and stands there. */
bool fast_leave(struct fast *f, uint32_t node, unsigned side);

/* The instructions of a node are pending: all of them, or those before its branch. */
void fast_run_over(struct fast *f, uint32_t node);
void fast_run_up_to(struct fast *f, uint32_t node);

/* fast_walk.c: what of these returns false cannot be done here. */

/* Takes the bits of a TNT packet; `timed` as of fast_follow(). */
bool fast_bits(struct fast *f, uint64_t bits, bool timed);

/* The edge of a node as it stands for itself. */
fast_edge fast_edge_of(const struct fast *f, uint32_t node, unsigned side);

/* Opens an edge. FAST_NO_EDGE: as fast_graph_at(). */
fast_edge fast_open(struct fast *f, fast_edge edge);

/* A direct call's return address as an edge: its node's FAST_FALL skips nothing. */
static inline fast_edge fast_behind_call(const fast_edge *to, uint64_t at)
{
    return *to ? *to : (uint32_t)(at >> FAST_SHIFT << 1 | FAST_FALL) << FAST_SHIFT | FAST_OPEN;
}

/* Takes the bits that wait. */
bool fast_flush_bits(struct fast *f, bool timed);

static inline bool fast_flush(struct fast *f)
{
    return fast_flush_bits(f, false);
}

/* The edge behind the branch of a node. */
fast_edge fast_fall(const struct fast *f, uint32_t node);

/* The edge to the code at an address. */
fast_edge fast_look_up(struct fast *f, uint64_t ip);

/* Whether execution stands at code that is not known: it is stuck then. */
static inline bool fast_is_stuck(struct fast *f, fast_edge at)
{
    if ((at & 7) != FAST_TIP || !fast_is_lost(&f->graph->info[at >> FAST_SHIFT]))
        return false;
    f->stuck = FAST_STUCK_CODE;
    return true;
}

/* A compressed return without a call: it is stuck if its call may have been in missing code. */
static inline void fast_no_call(struct fast *f)
{
    f->stuck = f->s.missing.reason ? FAST_STUCK_CALL : FAST_NOT_STUCK;
}

/* n instructions ran that end at no branch. */
void fast_ran(struct fast *f, uint32_t n);

/* The side by which a node is left that needs no trace and pushes nothing. False: it is none of those. */
bool fast_skips(fast_edge at, unsigned *side);

/* Goes on to the next node that needs trace; *edge is then that node. */
bool fast_advance(struct fast *f, fast_edge *edge);

/* Goes on to the next node that may switch the address space: a mov to cr3 or a far branch. */
bool fast_advance_paging(struct fast *f, fast_edge *edge);

/* Opens the edge at which execution stands, if it is not open yet. */
bool fast_open_here(struct fast *f);

/* Where counts alone are wanted: asks whose trace it is, if it may be another behind a branch from or to the
 * kernel, which was that of the node. */
bool fast_ask_behind(struct fast *f, uint32_t node);

/* Passes a node that needs no trace; of another: false. */
bool fast_pass(struct fast *f, fast_edge at);

/* Goes on to an address without a branch that needs trace. */
bool fast_reach(struct fast *f, uint64_t ip);

/* Stands at an address. */
void fast_stand(struct fast *f, uint64_t ip);

uint64_t fast_ip(const struct fast *f, fast_edge edge);
void fast_push(struct fast *f, fast_edge edge);
void fast_push_ip(struct fast *f, uint64_t ip);
bool fast_pop(struct fast *f, fast_edge *edge);

/* Asks whose trace it is. What stands under addresses may have changed. */
bool fast_ask(struct fast *f);
bool fast_epochs(struct fast *f);

/* Adds up a node that was left without skipping any, or takes it back. */
static inline void fast_visit(struct fast *f, uint32_t node, unsigned side)
{
    f->exact_visits[node].visits[side] += f->delta;
    f->s.did = true;
    f->s.begin = false;
}

/* A packet told which mode the code is of. */
static inline void fast_told_mode(struct fast *f, enum code_mode mode)
{
    f->s.modes |= (uint8_t)(1u << mode);
}

/* Whether a PIP packet is one of what is decoded: of no guest. */
static inline bool fast_is_host(const struct fast *f, const uint8_t *pip)
{
    return !(pip[2] & 1) || !f->w->guests;
}

/* fast.c: */

/* The stretch behind the next PSB, up to `to`. False: it cannot be done here, and is as if it had not been
 * tried. */
bool fast_step(struct fast *f, const uint8_t *to);

/* fast_pool.c: */

/* Some threads that walk at once where counts alone are wanted. ST_ENOMEM. */
struct fast_pool;
int fast_pool_new(struct fast_pool **pool, struct fast *owner, unsigned threads, struct st_error *err);
void fast_pool_free(struct fast_pool *pool);

/* Walks the stretches from PSB *at on, before which the owner stands, to the one before `end`. *at is the
 * first that was not walked, and the owner stands before that. */
void fast_pool_walk(struct fast_pool *pool, const psb_list *psbs, size_t *at, size_t end);

/* What all but the owner visited becomes counts. */
void fast_pool_count(struct fast_pool *pool, struct dec_flow_counts *counts);

/* fast_packets.c: */

/* From f->p to behind the next PSB+, at `to`, or to the end of the run. */
bool fast_stretch(struct fast *f, const uint8_t *to);

/* The limits of the present state, from its times. */
void fast_limit(struct fast *f);

/* fast_ask(), at the time so far. */
bool fast_ask_now(struct fast *f);

/* The time of what comes now, if packets told a new one. Where counts alone are wanted, it is worked out from
 * the limit on only. */
bool fast_point(struct fast *f);

/* A packet of time or none at all at p. False: neither, or it cannot be read. */
bool fast_time(struct fast *f, const uint8_t *p, size_t size);

/* fast_events.c, where what is at p, in front of f->p, is taken: */

bool fast_enable(struct fast *f, const uint8_t *p);
bool fast_disable(struct fast *f, const uint8_t *p);

/* A switch of the address space. */
bool fast_paging(struct fast *f);

/* A FUP packet that is an interrupt's, with what came of it behind it. */
bool fast_interrupt(struct fast *f, const uint8_t *p);

/* Takes one that stands between such a FUP and the TIP or TIP.PGD that answers it. */
bool fast_within_interrupt(struct fast *f, const uint8_t *p, size_t size);

bool fast_mode(struct fast *f, const uint8_t *p);

/* fast_lost.c: */

/* A packet of that size in front of f->p that could not be taken where execution stands: it is, if that is
 * one of the places where the walk by libipt finds its way again. `to` as of fast_stretch(). */
bool fast_take_lost(struct fast *f, const uint8_t *p, size_t size, const uint8_t *to);

/* The trace ends within the packet at p. */
bool fast_end(struct fast *f, const uint8_t *p);

/* An OVF packet in front of f->p, with the FUP behind it that says where tracing goes on, if it does. */
bool fast_overflow(struct fast *f);

/* A packet while the place is lost. */
bool fast_search(struct fast *f, const uint8_t *p, size_t size);

/* If execution is stuck: a gap, and the place is lost. */
bool fast_lose(struct fast *f);

/* Some of the gaps of a walk are counted. */
void fast_count_gaps(const struct fast *f, size_t first, size_t end);

/* fast_psb.c: */

/* Stands behind the next PSB+ of which nothing else is known but its times, and tells so. */
bool fast_sync(struct fast *f, const uint8_t *psb);

/* Goes behind the PSB+, whose times are known and whose state should be that of the walk; takes over the
 * mode. */
bool fast_behind_psb(struct fast *f, const uint8_t *psb);

/* Stands behind a PSB+ of which nothing else is known. False: it cannot be read. */
bool fast_begin(struct fast *f, const uint8_t *psb);

/* Whether there is nothing unusual from f->p, behind a PSB+, up to the first packet of a branch: libipt reads
 * ahead so far, or less far, and tells nothing of that PSB+ where it fails. In time linear in the trace, for
 * all PSB+ of a run together. */
bool fast_ahead_is_whole(struct fast *f);

/* Over the PSB+ at p, whose state must be that of the walk. In time linear in the trace, all of them
 * together. */
bool fast_cross(struct fast *f, const uint8_t *p);

/* fast_trail.c: */

/* A trail is entries of words: a tag in the low TRAIL_BITS bits of the first, what it is of above; in the
 * second the instructions since the entry before (those of a branch included) and TRAIL_UNTOLD; then what the
 * tag says.
 */
enum trail_tag {
    TRAIL_BRANCH, /* node << 1 | side: a direct branch */
    TRAIL_TO,     /* node; address: an indirect branch */
    TRAIL_LEAVE,  /* node; address: a branch with which tracing ended */
    TRAIL_POINT,  /* whether it is exact; time, cycles */
    TRAIL_REST, /* whether a branch in the kernel, which is not told, stands there: whose trace it is is asked
                 */
    TRAIL_ASYNC,   /* from, to */
    TRAIL_ENABLE,  /* flags; address */
    TRAIL_DISABLE, /* 0; address: asynchronously */
    TRAIL_LOST,  /* node << 1 | whether it is a return without its call: the place is lost behind the node */
    TRAIL_FOUND, /* 0; address: the place is known again */
    TRAIL_OFF,   /* 0; offset of a packet that there cannot be while tracing is off */
    TRAIL_SYNC,  /* whether tracing is on; address: begins anew at a PSB+ */
    TRAIL_OVERFLOW /* likewise, behind packets that were lost */
};

enum { TRAIL_BITS = 4 };

/* Of the second word: branches that are not told are among the instructions. */
#define TRAIL_UNTOLD ((uint32_t)1 << 31)

/* Whether the stretch's trail is written; else visits are counted. */
static inline bool fast_trailing(const struct fast *f)
{
    return !f->counting;
}

/* Room for `more` words. */
static inline bool fast_room(struct fast *f, size_t more)
{
    return f->trail.room - f->trail.n >= more || st_vec_reserve(&f->trail, more) == 0;
}

/* An entry with what is pending. */
bool fast_entry(struct fast *f, enum trail_tag tag, uint32_t of);
bool fast_entry_ip(struct fast *f, enum trail_tag tag, uint32_t of, uint64_t ip);

/* What is pending becomes an entry, if there is anything. */
bool fast_rest(struct fast *f);

/* There is no trail, and nothing pending. */
void fast_forget(struct fast *f);

/* The trail becomes events. 0 or what walk_run() returns. */
int fast_tell(struct fast *f);

/* The visits become counts. */
void fast_count(struct fast *f, struct dec_flow_counts *counts);

#endif
