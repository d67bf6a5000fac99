/* Along the edges of the graph. */
#include "decoder/pt/fast.h"

#include "decoder/pt/fast_packet.h"

enum {
    FUEL = 1 << 16, /* branches in a row that need no trace, before the other walk looks for a cycle */
    HOPS = 8,       /* nodes that an edge skips at most */
};

uint64_t fast_ip(const struct fast *f, fast_edge edge)
{
    uint32_t rest = edge >> FAST_SHIFT;
    if ((edge & 7) == FAST_OPEN && rest & FAST_STUB)
        return f->s.stubs[rest & ~(uint32_t)FAST_STUB];
    return fast_edge_ip(f->graph, edge);
}

/* The edge to an address that is kept in stubs[at]. */
static fast_edge stub(struct fast *f, unsigned at, uint64_t ip)
{
    f->s.stubs[at] = ip;
    return ((uint32_t)FAST_STUB | at) << FAST_SHIFT | FAST_OPEN;
}

void fast_stand(struct fast *f, uint64_t ip)
{
    f->s.at = stub(f, 0, ip);
}

static fast_edge look_up(struct fast *f, uint32_t epoch, uint64_t ip)
{
    struct fast_hit *hit = &f->hits[(ip ^ ip >> 14 ^ epoch) % FAST_HITS];
    if (hit->ip == ip && hit->epoch == epoch && hit->edge)
        return hit->edge;
    fast_edge edge = fast_graph_at(f->graph, epoch, f->s.now, ip);
    if (edge != FAST_NO_EDGE)
        *hit = (struct fast_hit){.ip = ip, .epoch = epoch, .edge = edge};
    return edge;
}

fast_edge fast_look_up(struct fast *f, uint64_t ip)
{
    return look_up(f, f->s.epochs[ip >> 63], ip);
}

bool fast_skips(fast_edge at, unsigned *side)
{
    *side = (at & 7) == FAST_JUMP ? FAST_TAKEN : FAST_FALL;
    return (at & 7) == FAST_JUMP || (at & 7) == FAST_PASS;
}

/* Past the nodes on the way that need no trace and push nothing, if they are few: execution need not have
 * been there yet, but an interrupt alone keeps it from it. */
static fast_edge skip(struct fast *f, fast_edge edge)
{
    unsigned side;
    for (fast_edge at = edge, hops = 0; hops < HOPS; hops++) {
        if (!fast_skips(at, &side))
            return at;
        at = fast_graph_open(f->graph, at >> FAST_SHIFT, side, f->s.now);
        if (at == FAST_NO_EDGE)
            return edge;
    }
    return edge;
}

/* Follows an edge that is open, and closes it: the shared one. */
fast_edge fast_open(struct fast *f, fast_edge edge)
{
    uint32_t rest = edge >> FAST_SHIFT;
    if (rest & FAST_STUB) {
        uint64_t ip = fast_ip(f, edge);
        return look_up(f, f->s.epochs[ip >> 63], ip);
    }
    uint32_t node = rest >> 1;
    unsigned side = rest & 1;
    fast_edge found = fast_graph_open(f->graph, node, side, f->s.now);
    if (found == FAST_NO_EDGE)
        return found;
    f->nodes[node].to[side] = found;
    if (!f->counting)
        return found;
    if (f->graph->info[node].run.end != CODE_CALL ||
        side == FAST_TAKEN) /* else it goes to the return stack */
        f->nodes[node].to[side] = skip(f, found);
    return found;
}

/* The shared edge of a node as it stands for itself. */
fast_edge fast_edge_of(const struct fast *f, uint32_t node, unsigned side)
{
    fast_edge edge = fast_graph_succ(f->graph, node, side);
    return edge ? edge : (node << 1 | side) << FAST_SHIFT | FAST_OPEN;
}

void fast_push(struct fast *f, fast_edge edge)
{
    f->s.top = (f->s.top + 1) % WALK_RETURNS;
    f->s.returns[f->s.top] = edge;
    if (f->s.depth < WALK_RETURNS)
        f->s.depth++;
}

void fast_push_ip(struct fast *f, uint64_t ip)
{
    fast_push(f, stub(f, 1 + (f->s.top + 1) % WALK_RETURNS, ip));
}

bool fast_pop(struct fast *f, fast_edge *edge)
{
    if (f->s.depth == 0)
        return false;
    *edge = f->s.returns[f->s.top];
    f->s.top = (f->s.top + WALK_RETURNS - 1) % WALK_RETURNS;
    f->s.depth--;
    return true;
}

/* Code of another code epoch is not that of the edges: what is kept of them becomes addresses again. */
static void forget_edges(struct fast *f, unsigned side)
{
    for (unsigned i = 0, slot = f->s.top; i < f->s.depth;
         i++, slot = (slot + WALK_RETURNS - 1) % WALK_RETURNS) {
        uint64_t ip = fast_ip(f, f->s.returns[slot]);
        if (ip >> 63 == side)
            f->s.returns[slot] = stub(f, 1 + slot, ip);
    }
    uint64_t ip = f->s.on ? fast_ip(f, f->s.at) : 0;
    if (f->s.on && ip >> 63 == side)
        fast_stand(f, ip);
}

bool fast_epochs(struct fast *f)
{
    const struct dec_space *whole = f->s.where.space;
    f->s.epochs_until = UINT64_MAX;
    if (whole && dec_space_probed(whole)) /* its code is not all known: libipt's walk says where */
        return false;
    for (unsigned side = 0; side < 2; side++) {
        const struct dec_space *space = whole ? dec_space_side(whole, (uint64_t)side << 63) : NULL;
        int epoch = fast_graph_epoch(f->graph, space, f->s.now, f->s.mode);
        if (epoch < 0)
            return false;
        if ((uint32_t)epoch != f->s.epochs[side])
            forget_edges(f, side);
        f->s.epochs[side] = (uint32_t)epoch;
        if (f->graph->epochs[epoch].until < f->s.epochs_until)
            f->s.epochs_until = f->graph->epochs[epoch].until;
    }
    return true;
}

bool fast_ask(struct fast *f)
{
    const struct dec_flow_options *options = f->w->options;
    f->s.ask_due = false;
    if (f->s.asked && f->s.now < f->s.where.until)
        return true;
    if (options->where(options->where_ctx, options->ring, f->s.now, &f->s.where))
        return false;
    f->s.asked = true;
    return fast_epochs(f);
}

fast_edge fast_fall(const struct fast *f, uint32_t node)
{
    return fast_edge_of(f, node, FAST_FALL);
}

/* The open edge that stands for one in a node. */
static inline fast_edge open_of(const char *nodes, const fast_edge *to)
{
    size_t n = (size_t)((const char *)to - nodes) / sizeof(*to);
    return (uint32_t)(n / 4 << 1 | n % 4) << FAST_SHIFT | FAST_OPEN;
}

/* Execution stands behind the branch of an edge that was taken last, no further. */
static inline void stand_near(struct fast *f, fast_edge *to)
{
    fast_edge open = open_of((const char *)f->nodes, to);
    uint32_t node = open >> FAST_SHIFT >> 1;
    unsigned side = open >> FAST_SHIFT & 1;
    f->s.at = fast_edge_of(f, node, side);
    if ((*to == 0 || *to != fast_graph_succ(f->graph, node, side))) {
        to[2] -= f->delta;
        f->exact_visits[node].visits[side] += f->delta;
    }
}

/* The loop that all the time goes into where counts alone are wanted. The edge that was taken last is *to:
 * one to the node that it stands in is only a load. */
static bool count_bits(struct fast *f, uint64_t bits)
{
    char *const nodes = (char *)f->nodes;
    const uint32_t delta = f->delta;
    fast_edge *to = NULL;
    const uint64_t all = bits;
    uint64_t at = f->s.at;
    unsigned fuel = FUEL, top = f->s.top, depth = f->s.depth;
    while (bits != TNT_NONE) {
        if ((at & 7) == FAST_COND) {
            to = (fast_edge *)(nodes + (bits >> 63) * sizeof(*to) + at - FAST_COND);
            bits <<= 1;
        } else if ((at & 7) == FAST_RETURN) {
            if (!(bits >> 63) || depth == 0)
                break;
            fast_edge edge = f->s.returns[top];
            top = (top + WALK_RETURNS - 1) % WALK_RETURNS;
            depth--;
            bits <<= 1;
            ((struct fast_node *)(nodes + at - FAST_RETURN))->visits[FAST_TAKEN] += delta;
            to = NULL;
            at = edge;
            continue;
        } else if ((at & 7) == FAST_CALL) {
            to = (fast_edge *)(nodes + at - FAST_CALL);
            top = (top + 1) % WALK_RETURNS;
            f->s.returns[top] = fast_behind_call(to + FAST_FALL, at);
            to += FAST_TAKEN;
            depth += depth < WALK_RETURNS;
            if (!--fuel)
                return false;
        } else if ((at & 7) == FAST_JUMP || (at & 7) == FAST_PASS) {
            to = (fast_edge *)(nodes + (at & ~(uint64_t)7));
            to += (at & 7) == FAST_JUMP ? FAST_TAKEN : FAST_FALL;
            if (!--fuel)
                return false;
        } else if ((at & 7) == FAST_OPEN) {
            fast_edge succ = fast_open(f, at ? (fast_edge)at : open_of(nodes, to));
            if (succ == FAST_NO_EDGE)
                return false;
            at = at ? succ : *to;
            continue;
        } else {
            break;
        }
        to[2] += delta;
        const uint64_t before = at;
        at = *to;
        if (at == before && bits != TNT_NONE && to == (fast_edge *)(nodes + at - FAST_COND) + (bits >> 63)) {
            /* A loop of one step: as often as the same bit follows. */
            unsigned n = packet_tnt_same(bits);
            to[2] += n * delta;
            bits <<= n;
        }
    }
    f->s.top = top;
    f->s.depth = depth;
    f->s.at = (fast_edge)at;
    f->s.did |= bits != all;
    if (bits != TNT_NONE) {
        if ((at & 7) == FAST_RETURN && bits >> 63)
            fast_no_call(f);
        fast_is_stuck(f, (fast_edge)at);
        return false;
    }
    if (to)
        stand_near(f, to);
    return true;
}

/* One bit, where whose trace it is may be asked at each branch. */
static bool count_bit(struct fast *f, bool bit)
{
    fast_edge at, to;
    if (!fast_advance(f, &at))
        return false;
    uint32_t node = at >> FAST_SHIFT;
    if ((at & 7) == FAST_RETURN && bit) {
        if (!fast_pop(f, &to)) {
            fast_no_call(f);
            return false;
        }
    } else if ((at & 7) == FAST_COND) {
        to = fast_edge_of(f, node, bit ? FAST_TAKEN : FAST_FALL);
    } else {
        return false;
    }
    fast_visit(f, node, bit ? FAST_TAKEN : FAST_FALL);
    f->s.at = to;
    return fast_ask_behind(f, node);
}

bool fast_bits(struct fast *f, uint64_t bits, bool timed)
{
    fast_edge at;
    f->s.begin = false;
    if (fast_trailing(f))
        return fast_follow(f, bits, timed);
    for (; bits != TNT_NONE && f->s.ask_due && fast_ip(f, f->s.at) >> 63; bits <<= 1) {
        if (!count_bit(f, bits >> 63))
            return false;
    }
    /* Whether there was a branch shows where it is walked step by step. */
    return (f->s.did || fast_advance(f, &at)) && count_bits(f, bits);
}

bool fast_flush_bits(struct fast *f, bool timed)
{
    unsigned n = f->nbits;
    f->nbits = 0;
    return n == 0 || fast_bits(f, (f->bits << 1 | 1) << (63 - n), timed);
}

bool fast_ask_behind(struct fast *f, uint32_t node)
{
    if (!f->s.ask_due || !((f->graph->info[node].start | fast_ip(f, f->s.at)) >> 63))
        return true;
    bool done = fast_ask(f);
    fast_limit(f);
    return done;
}

bool fast_pass(struct fast *f, fast_edge at)
{
    if ((at & 7) != FAST_PASS && (at & 7) != FAST_CALL && (at & 7) != FAST_JUMP)
        return false;
    uint32_t node = at >> FAST_SHIFT;
    unsigned side = (at & 7) == FAST_PASS ? FAST_FALL : FAST_TAKEN;
    if ((at & 7) == FAST_CALL)
        fast_push(f, fast_edge_of(f, node, FAST_FALL));
    if (fast_trailing(f))
        return fast_leave(f, node, side) && fast_ask_last(f);
    f->s.at = fast_edge_of(f, node, side);
    bool did = f->s.did || (at & 7) != FAST_PASS;
    fast_visit(f, node, side);
    f->s.did = did;
    return (at & 7) == FAST_PASS || fast_ask_behind(f, node);
}

bool fast_open_here(struct fast *f)
{
    if ((f->s.at & 7) == FAST_OPEN)
        f->s.at = fast_open(f, f->s.at);
    return f->s.at != FAST_NO_EDGE;
}

bool fast_advance(struct fast *f, fast_edge *edge)
{
    for (unsigned fuel = FUEL; fuel; fuel--) {
        if (!fast_open_here(f))
            return false;
        *edge = f->s.at;
        if (fast_is_stuck(f, f->s.at))
            return false;
        if (!fast_pass(f, f->s.at))
            return true;
    }
    return false;
}

bool fast_advance_paging(struct fast *f, fast_edge *edge)
{
    for (unsigned fuel = FUEL; fuel; fuel--) {
        if (!fast_open_here(f))
            return false;
        *edge = f->s.at;
        const struct code_run *run = &f->graph->info[f->s.at >> FAST_SHIFT].run;
        if (run->end == CODE_MOV_CR3 || run->end == CODE_FAR_CALL || run->end == CODE_FAR_RETURN ||
            run->end == CODE_FAR_JUMP)
            return true;
        if (fast_is_stuck(f, f->s.at) || !fast_pass(f, f->s.at))
            return false;
    }
    return false;
}

void fast_ran(struct fast *f, uint32_t n)
{
    f->s.begin = false;
    if (fast_trailing(f))
        f->pending += n;
    else
        f->loose += (uint64_t)(int64_t)(int32_t)f->delta * n;
}

/* How many instructions there are in a node's run up to `ip`. False: it is not the address of one of them. */
static bool reaches(struct fast *f, uint32_t node, uint64_t ip, uint32_t *count)
{
    const struct fast_node_info *info = &f->graph->info[node];
    struct fast_reached *r = &f->reached[(ip ^ ip >> 8 ^ node) % FAST_REACHED];
    if (r->node != node || r->ip != ip) {
        if (!fast_graph_reaches(f->graph, info, f->s.now, ip, count))
            return false;
        *r = (struct fast_reached){.ip = ip, .node = node, .count = *count};
    }
    *count = r->count;
    return true;
}

bool fast_reach(struct fast *f, uint64_t ip)
{
    for (unsigned fuel = FUEL; fuel; fuel--) {
        if (fast_ip(f, f->s.at) == ip)
            return true;
        if (!fast_open_here(f))
            return false;
        uint32_t node = f->s.at >> FAST_SHIFT, count;
        const struct fast_node_info *info = &f->graph->info[node];
        if (ip > info->start && ip <= info->start + info->run.bytes && reaches(f, node, ip, &count)) {
            fast_stand(f, ip);
            fast_ran(f, count);
            return true;
        }
        if (fast_is_stuck(f, f->s.at) || !fast_pass(f, f->s.at))
            return false;
    }
    return false;
}
