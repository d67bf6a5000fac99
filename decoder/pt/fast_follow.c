/* Along the edges of the graph where the trail is wanted. Branches that are told become entries; runs of
 * others are one addition a bit of trace: of the weight of a step, which is a node with those behind it that
 * need no trace and are not told either. */
#include "decoder/pt/fast.h"

#include "decoder/pt/fast_packet.h"

#include <string.h>

enum {
    FUEL = 1 << 16, /* branches in a row that need no trace, before the other walk looks for a cycle */
    HOPS = 8,       /* nodes that a step takes along at most */
    MOST = 1 << 16, /* instructions of a step: a packet's bits do not overflow */
};

/* Of a weight: instructions, and of what is not told conditional jumps, jumps and taken branches. 0: not
 * known yet. */
#define WEIGHT_RAN   (((uint64_t)1 << 24) - 1)
#define WEIGHT_COND  ((uint64_t)1 << 24)
#define WEIGHT_JUMP  ((uint64_t)1 << 32)
#define WEIGHT_TAKEN ((uint64_t)1 << 48)
#define WEIGHT_TOLD  ((uint64_t)1 << 63) /* the branch is told; no other is in the step */

/* Whether a direct jump stays within a function, and does not go to its beginning. */
static bool stays(const struct fast *f, const struct fast_node_info *info)
{
    uint64_t from = fast_from(f->graph, info), to = fast_target(f->graph, info);
    struct dec_place place;
    if (!to)
        return false;
    dec_space_symbol(f->graph->epochs[info->epoch].space, f->s.now, to, &place);
    return place.symbol && from - place.start < place.size && to != place.start;
}

/* Whether a stack needs to know that a node was left by a side. */
static bool is_told(const struct fast *f, uint32_t node, unsigned side)
{
    struct fast_node_info *info = &f->graph->info[node];
    unsigned end = info->run.end;
    if (end == CODE_FALLS || end >= CODE_PTWRITE)
        return false;
    if (!f->w->options->terse || !info->run.direct || (end != CODE_COND_JUMP && end != CODE_JUMP))
        return true;
    if (side == FAST_FALL)
        return false;
    unsigned known = atomic_load_explicit(&info->stays, memory_order_relaxed);
    if (known == FAST_NOT_ASKED) {
        known = stays(f, info) ? FAST_STAYS : FAST_GOES;
        atomic_store_explicit(&info->stays, (uint8_t)known, memory_order_relaxed);
    }
    return known == FAST_GOES;
}

/* The weight of a node alone. */
static uint64_t weigh(const struct fast *f, uint32_t node, unsigned side)
{
    const struct fast_node_info *info = &f->graph->info[node];
    uint64_t ran = info->run.count + (info->run.end != CODE_FALLS);
    if (is_told(f, node, side))
        return ran | WEIGHT_TOLD;
    if (info->run.end != CODE_COND_JUMP && info->run.end != CODE_JUMP)
        return ran;
    if (side == FAST_TAKEN && fast_target(f->graph, info) != fast_next(f->graph, info))
        ran += WEIGHT_TAKEN;
    return ran + (info->run.end == CODE_JUMP ? WEIGHT_JUMP : WEIGHT_COND);
}

/* Opens the edge of a node's side, and weighs the step along it. */
static bool open_step(struct fast *f, uint32_t node, unsigned side)
{
    fast_edge at = fast_graph_open(f->graph, node, side, f->s.now);
    uint64_t weight = weigh(f, node, side);
    unsigned next;
    if (at == FAST_NO_EDGE)
        return false;
    for (unsigned hops = 0; !(weight & WEIGHT_TOLD) && hops < HOPS && fast_skips(at, &next); hops++) {
        uint64_t more = weigh(f, at >> FAST_SHIFT, next);
        fast_edge behind = fast_graph_open(f->graph, at >> FAST_SHIFT, next, f->s.now);
        if (more & WEIGHT_TOLD || behind == FAST_NO_EDGE ||
            (weight & WEIGHT_RAN) + (more & WEIGHT_RAN) > MOST)
            break;
        weight += more;
        at = behind;
    }
    f->nodes[node].to[side] = at;
    f->weights[2 * (size_t)node + side] = weight;
    return true;
}

/* What was added up is pending. */
static inline void settle(struct fast *f, uint64_t sum)
{
    f->pending += sum & WEIGHT_RAN;
    sum &= ~(WEIGHT_RAN | WEIGHT_TOLD);
    if (!sum)
        return;
    f->idle.cond_jump += sum / WEIGHT_COND & 0xff;
    f->idle.jump += sum / WEIGHT_JUMP & 0xffff;
    f->idle.taken += sum / WEIGHT_TAKEN;
    f->untold = true;
}

bool fast_ask_last(struct fast *f)
{
    const struct fast_last *last = &f->last;
    if (!f->s.ask_due || !last->branch || !((f->graph->info[last->node].start | fast_ip(f, f->s.at)) >> 63))
        return true;
    return (last->words || fast_entry(f, TRAIL_REST, 1)) && fast_ask(f);
}

void fast_run_up_to(struct fast *f, uint32_t node)
{
    if (f->counting || f->begun == node)
        return;
    f->pending += f->graph->info[node].run.count;
    f->begun = node;
}

void fast_run_over(struct fast *f, uint32_t node)
{
    if (f->counting)
        return;
    fast_run_up_to(f, node);
    f->pending += f->graph->info[node].run.end != CODE_FALLS;
    f->begun = 0;
    f->begun_point = false;
}

/* The branch of the node, which was left last, is not told. */
static void keep_quiet(struct fast *f, uint32_t node, unsigned side)
{
    f->quiet =
        (struct fast_quiet){.branch = node << 1 | side, .untold = f->last.untold, .pending = f->pending};
}

bool fast_tell_quiet(struct fast *f)
{
    struct fast_quiet quiet = f->quiet;
    const struct fast_node_info *info = &f->graph->info[quiet.branch >> 1];
    uint64_t behind = f->pending - quiet.pending;
    if (!quiet.branch)
        return true;
    /* Telling it counts it. */
    f->idle.cond_jump -= info->run.end == CODE_COND_JUMP;
    f->idle.jump -= info->run.end == CODE_JUMP;
    f->idle.taken -=
        (quiet.branch & 1) == FAST_TAKEN && fast_target(f->graph, info) != fast_next(f->graph, info);
    f->pending = quiet.pending;
    f->untold = quiet.untold;
    bool told = fast_entry(f, TRAIL_BRANCH, quiet.branch);
    f->pending = behind;
    return told;
}

bool fast_leave(struct fast *f, uint32_t node, unsigned side)
{
    uint64_t weight = weigh(f, node, side);
    fast_run_over(f, node);
    f->last = (struct fast_last){.node = node, .untold = f->untold, .branch = weight & ~WEIGHT_RAN};
    f->s.at = fast_edge_of(f, node, side);
    settle(f, weight & ~WEIGHT_RAN);
    if (!(weight & WEIGHT_TOLD)) {
        if (f->last.branch)
            keep_quiet(f, node, side);
        return true;
    }
    f->last.words = 2;
    return fast_entry(f, TRAIL_BRANCH, node << 1 | side);
}

/* A compressed return. */
static bool leave_by_return(struct fast *f, uint32_t node)
{
    fast_edge edge;
    if (!fast_pop(f, &edge)) {
        fast_no_call(f);
        return false;
    }
    fast_run_over(f, node);
    f->last = (struct fast_last){.node = node, .untold = f->untold, .branch = true, .words = 4};
    f->s.at = edge;
    return fast_entry_ip(f, TRAIL_TO, node, fast_ip(f, edge));
}

/* A bit of trace, where execution need not stand at what it decides yet. */
static bool take_bit(struct fast *f, bool bit)
{
    fast_edge at;
    if (!fast_advance(f, &at))
        return false;
    if ((at & 7) == FAST_RETURN)
        return bit && leave_by_return(f, at >> FAST_SHIFT);
    return (at & 7) == FAST_COND && fast_leave(f, at >> FAST_SHIFT, bit ? FAST_TAKEN : FAST_FALL);
}

/* Where it may be asked at each branch whose trace it is. */
static bool follow_slowly(struct fast *f, uint64_t *bits)
{
    for (; *bits << 1 != TNT_NONE; *bits <<= 1) {
        if (!take_bit(f, *bits >> 63) || !fast_ask_last(f))
            return false;
    }
    return true;
}

/* All but the last bit, up to the node that it decides, or to where it is stuck: the loop that all the time
 * goes into. */
static bool follow(struct fast *f, uint64_t *all)
{
    struct fast_node *const nodes = f->nodes;
    uint64_t *const weights = f->weights;
    uint64_t at = f->s.at, bits = *all, sum = 0;
    unsigned fuel = FUEL, top = f->s.top, depth = f->s.depth, side;
    for (;;) {
        size_t node = at >> FAST_SHIFT;
        if ((at & 7) == FAST_COND) {
            if (bits << 1 == TNT_NONE)
                break;
            side = bits >> 63;
            bits <<= 1;
        } else if ((at & 7) == FAST_RETURN) {
            if (bits << 1 == TNT_NONE)
                break;
            if (!(bits >> 63) || depth == 0)
                break;
            bits <<= 1;
            at = f->s.returns[top];
            top = (top + WALK_RETURNS - 1) % WALK_RETURNS;
            depth--;
            settle(f, sum);
            sum = 0;
            f->pending += f->graph->info[node].run.count + 1;
            if (!fast_entry_ip(f, TRAIL_TO, (uint32_t)node, fast_ip(f, (fast_edge)at)))
                return false;
            continue;
        } else if ((at & 7) == FAST_CALL) {
            top = (top + 1) % WALK_RETURNS;
            f->s.returns[top] = fast_behind_call(&nodes[node].to[FAST_FALL], at);
            depth += depth < WALK_RETURNS;
            side = FAST_TAKEN;
            if (!--fuel)
                return false;
        } else if ((at & 7) == FAST_JUMP || (at & 7) == FAST_PASS) {
            side = (at & 7) == FAST_JUMP ? FAST_TAKEN : FAST_FALL;
            settle(f, sum);
            sum = 0;
            if (!--fuel)
                return false;
        } else if ((at & 7) == FAST_OPEN) {
            at = fast_open(f, (fast_edge)at);
            if (at == FAST_NO_EDGE)
                return false;
            continue;
        } else {
            break;
        }
        uint64_t weight = weights[2 * node + side];
        if (weight == 0) {
            if (!open_step(f, (uint32_t)node, side))
                return false;
            weight = weights[2 * node + side];
        }
        sum += weight & ~WEIGHT_TOLD;
        const uint64_t before = at;
        at = nodes[node].to[side];
        if (at == before && !(weight & WEIGHT_TOLD) && bits >> 63 == side && bits << 1 != TNT_NONE) {
            /* A loop of one step: as often as the same bit follows, but for the last one. */
            unsigned n = packet_tnt_same(bits);
            n -= bits << n == TNT_NONE;
            sum += n * weight;
            bits <<= n;
            continue;
        }
        if (weight & WEIGHT_TOLD) {
            settle(f, sum);
            sum = 0;
            if (!fast_entry(f, TRAIL_BRANCH, (uint32_t)node << 1 | side))
                return false;
        }
    }
    settle(f, sum);
    f->s.top = top;
    f->s.depth = depth;
    f->s.at = (fast_edge)at;
    *all = bits;
    if (bits << 1 == TNT_NONE && ((at & 7) == FAST_COND || (at & 7) == FAST_RETURN))
        return true;
    if ((at & 7) == FAST_RETURN && bits >> 63)
        fast_no_call(f);
    fast_is_stuck(f, (fast_edge)at);
    return false;
}

/* The last bit of a packet, where execution stands at what it decides: as take_bit(). */
static bool take_last(struct fast *f, bool bit)
{
    uint32_t node = f->s.at >> FAST_SHIFT;
    if ((f->s.at & 7) == FAST_RETURN)
        return bit && leave_by_return(f, node);
    const struct fast_node_info *info = &f->graph->info[node];
    unsigned side = bit ? FAST_TAKEN : FAST_FALL;
    uint64_t weight = f->weights[2 * (size_t)node + side];
    fast_edge succ = fast_graph_succ(f->graph, node, side);
    bool told = weight ? weight & WEIGHT_TOLD : is_told(f, node, side);
    f->last = (struct fast_last){.node = node, .untold = f->untold, .branch = true, .words = told ? 2 : 0};
    f->s.at = succ ? succ : (node << 1 | side) << FAST_SHIFT | FAST_OPEN;
    f->pending += info->run.count + 1u;
    if (told)
        return fast_entry(f, TRAIL_BRANCH, node << 1 | side);
    f->idle.cond_jump++;
    f->idle.taken +=
        bit && (info->run.displacement & 0xffff || fast_target(f->graph, info) != fast_next(f->graph, info));
    f->untold = true;
    keep_quiet(f, node, side);
    return true;
}

bool fast_follow(struct fast *f, uint64_t bits, bool timed)
{
    bool taken = f->s.ask_due ? follow_slowly(f, &bits) && take_bit(f, bits >> 63)
                              : follow(f, &bits) && take_last(f, bits >> 63);
    return taken && (timed || fast_ask_last(f));
}

/* The branch of the last bit, which is told, goes behind the point. */
static bool point_told(struct fast *f)
{
    uint32_t words[4];
    size_t n = f->last.words;
    f->trail.n -= n;
    memcpy(words, f->trail.at + f->trail.n, n * sizeof(*words));
    f->pending = words[1] & ~TRAIL_UNTOLD;
    f->untold = words[1] & TRAIL_UNTOLD;
    if (!fast_point(f) || !fast_room(f, n))
        return false;
    words[1] = 0;
    memcpy(f->trail.at + f->trail.n, words, n * sizeof(*words));
    f->trail.n += n;
    return fast_ask_last(f);
}

bool fast_point_last(struct fast *f)
{
    if (f->last.words)
        return point_told(f);
    struct fast_quiet quiet = f->quiet;
    f->untold = f->last.untold;
    if (!fast_point(f))
        return false;
    if (!f->quiet.branch)
        f->quiet = (struct fast_quiet){.branch = quiet.branch};
    f->untold = true;
    return fast_ask_last(f);
}
