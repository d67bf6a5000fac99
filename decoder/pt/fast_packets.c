/* The packets of a stretch, one after the other. */
#include "decoder/pt/fast.h"
#include "decoder/pt/fast_packet.h"

#include <string.h>

static const uint64_t NEVER = UINT64_MAX;

/* Up to so many TSC ticks a cycle, limits are worked out without a division. */
enum { MOST_RATIO = 8 };

enum { NEAR_CYCLES = 1 << 12 };

/* How many ticks of the crystal from the last TMA packet on do not reach the limit for sure, cycles behind
 * them included. */
static void limit_ctc(struct fast_state *s)
{
    const struct flow_times *t = &s->times;
    const struct dec_pt_config *config = t->config;
    s->limit_ctc = 0;
    if (!t->base.counts || t->base.mtc_known_mask != 0xff || !config->nom_freq || t->ratio > MOST_RATIO)
        return;
    uint64_t first = t->base.ctc_tsc + MOST_RATIO * NEAR_CYCLES;
    if (s->limit == NEVER)
        s->limit_ctc = NEVER;
    else if (s->limit > first)
        s->limit_ctc = (uint64_t)((double)(s->limit - first) * config->cpuid15_eax / config->cpuid15_ebx);
}

/* How many cycles from times.from on do not reach the limit for sure. */
static void limit_cycles(struct fast_state *s)
{
    s->limit_cycles = NEVER;
    if (s->limit == NEVER)
        return;
    uint64_t ticks = s->limit > s->times.from ? s->limit - s->times.from : 0;
    /* No division where it needs not be near: this is done for each MTC packet. */
    s->limit_cycles =
        s->times.ratio <= MOST_RATIO ? ticks / MOST_RATIO : (uint64_t)((double)ticks / s->times.ratio);
}

void fast_limit(struct fast *f)
{
    struct fast_state *s = &f->s;
    uint64_t until = s->epochs_until;
    if (!f->counting)
        return;
    if (!s->ask_due && s->where.until < until)
        until = s->where.until;
    s->limit = until <= s->now ? 0 : dec_clock_tsc(&f->w->options->config.clock, until);
    if (s->limit != NEVER && s->limit > 0)
        s->limit--; /* rounded */
    limit_cycles(s);
    limit_ctc(s);
}

/* Whether nothing can change before the limit, and the times so far do not reach it. */
static bool is_early(const struct fast_state *s)
{
    return s->times.tsc < s->limit && s->times.cycles < s->limit_cycles;
}

/* s.now as of the times so far; *ns is what packets told. */
static bool now(struct fast *f, uint64_t *ns)
{
    struct flow_times *t = &f->s.times;
    if (!t->base.known)
        return true;
    if (!times_settle(t, f->p, f->end))
        return false;
    *ns = dec_clock_ns(&t->config->clock, t->tsc);
    if (*ns > f->s.now)
        f->s.now = *ns;
    return true;
}

/* The point's entry in the trail. */
static bool tell_point(struct fast *f, uint64_t ns)
{
    const struct flow_times *t = &f->s.times;
    if (!fast_entry_ip(f, TRAIL_POINT, t->fresh, ns) || !fast_room(f, 1))
        return false;
    f->trail.at[f->trail.n++] = (uint32_t)t->counted;
    return true;
}

bool fast_point(struct fast *f)
{
    struct fast_state *s = &f->s;
    struct flow_times *t = &s->times;
    uint64_t ns = 0;
    if (!t->base.known || t->serial == s->serial)
        return true;
    if (f->counting && is_early(s)) {
        s->serial = t->serial;
        return true;
    }
    if (!fast_flush(f))
        return false;
    s->serial = t->serial;
    if (!now(f, &ns))
        return false;
    if (fast_trailing(f) && !tell_point(f, ns))
        return false;
    s->ask_due |= s->now >= s->where.until;
    if (s->now >= s->epochs_until && !fast_epochs(f))
        return false;
    fast_limit(f);
    return true;
}

bool fast_ask_now(struct fast *f)
{
    uint64_t ns;
    if ((f->counting && !now(f, &ns)) || !fast_ask(f))
        return false;
    fast_limit(f);
    return true;
}

static bool on_cyc(struct fast *f, const uint8_t *p, size_t size)
{
    struct flow_times *t = &f->s.times;
    uint64_t cycles = packet_cyc(p, size);
    if (packet_is_cut_cyc(p, size, f->end))
        return false;
    t->counted += cycles;
    if (!t->base.known)
        return true;
    t->cycles += cycles;
    t->fresh = true;
    t->serial++;
    if (t->config->nom_freq || t->bounded)
        return true;
    bool known = times_bound(t, f->p, f->end);
    if (f->counting)
        limit_cycles(&f->s); /* their length is now known */
    return known;
}

/* A packet that is about time, CYC apart. */
static bool on_clock(struct fast *f, const uint8_t *p)
{
    struct flow_times *t = &f->s.times;
    bool done = true;
    if (*p == PACKET_TSC)
        times_tsc(t, packet_number(p + 1, 7));
    else if (*p == PACKET_MTC)
        times_mtc(t, p[1]);
    else if (p[1] == EXTENDED_TMA)
        done = times_tma(t, (uint16_t)packet_number(p + 2, 2), (uint16_t)(packet_number(p + 5, 2) & 0x1ff));
    else if ((done = times_settle(t, f->p, f->end)))
        times_cbr(t, p[2]);
    if (f->counting)
        limit_cycles(&f->s);
    if (*p != PACKET_MTC && f->counting)
        limit_ctc(&f->s);
    return done;
}

bool fast_time(struct fast *f, const uint8_t *p, size_t size)
{
    if (*p == PACKET_PAD)
        return true;
    if ((*p & 3) == 3)
        return on_cyc(f, p, size);
    if (*p == PACKET_TSC || *p == PACKET_MTC)
        return on_clock(f, p);
    return *p == PACKET_EXTENDED && (p[1] == EXTENDED_TMA || p[1] == EXTENDED_CBR) && on_clock(f, p);
}

/* Stands at the target of a branch by the node, which keeps the edge. */
static void go(struct fast *f, uint32_t node, uint64_t ip)
{
    struct fast_node *n = &f->nodes[node];
    fast_edge edge = n->to[FAST_TAKEN];
    if ((edge & 7) != FAST_OPEN) {
        const struct fast_node_info *info = &f->graph->info[edge >> FAST_SHIFT];
        if (info->start == ip && info->epoch == f->s.epochs[ip >> 63]) {
            f->s.at = edge;
            return;
        }
    }
    edge = fast_look_up(f, ip);
    if (edge == FAST_NO_EDGE)
        fast_stand(f, ip);
    else
        f->s.at = n->to[FAST_TAKEN] = edge;
}

/* Whether the branch at the end of a node goes on behind itself. */
static bool stays(const struct fast *f, fast_edge at, uint64_t ip)
{
    uint32_t node = at >> FAST_SHIFT;
    struct fast_node *n = &f->nodes[node];
    const struct fast_node_info *info = &f->graph->info[node];
    if ((at & 7) != FAST_TIP_CALL) {
        if (n->to[FAST_FALL] == 0)
            n->to[FAST_FALL] = (uint32_t)fast_next(f->graph, info);
        if (n->to[FAST_FALL] != (uint32_t)ip)
            return false;
    }
    return fast_next(f->graph, info) == ip;
}

static bool on_tip(struct fast *f, const uint8_t *p)
{
    fast_edge at, ignored;
    bool known = packet_ip(p, &f->s.last_ip);
    uint64_t ip = f->s.last_ip;
    if (!known || !f->s.on || !fast_advance(f, &at))
        return false;
    uint32_t node = at >> FAST_SHIFT;
    fast_run_over(f, node);
    if (!fast_point(f))
        return false;
    f->far_waits = false;
    if ((at & 7) == FAST_RETURN)
        fast_pop(f, &ignored);
    else if ((at & 7) == FAST_TIP_CALL)
        fast_push(f, fast_fall(f, node));
    else if ((at & 7) != FAST_TIP)
        return false;
    if (!fast_trailing(f))
        fast_visit(f, node, stays(f, at, ip) ? FAST_FALL : FAST_TAKEN);
    else if (!fast_entry_ip(f, TRAIL_TO, node, ip))
        return false;
    f->s.times.fresh = false;
    if (f->s.ask_due && (ip | fast_ip(f, at)) >> 63) {
        if (!fast_ask_now(f))
            return false;
    }
    go(f, node, ip);
    return true;
}

/* Bits wait for more: nothing depends on when they came, or the time of the last is still to be told. */
static bool keep_tnt(struct fast *f, uint64_t bits, bool timed)
{
    unsigned n = 63 - (unsigned)__builtin_ctzll(bits);
    if (f->nbits + n > FAST_BITS && !fast_flush(f))
        return false;
    if (n > FAST_BITS / 2)
        return fast_flush(f) && fast_bits(f, bits, timed);
    f->bits = f->bits << n | bits >> (64 - n);
    f->nbits += n;
    return true;
}

/* The time of the last bit, which was a branch of the kernel where execution is there now. */
static bool point_behind(struct fast *f)
{
    if (!fast_point(f))
        return false;
    if (!f->s.ask_due || !(fast_ip(f, f->s.at) >> 63))
        return true;
    bool done = fast_ask(f);
    fast_limit(f);
    return done;
}

static bool on_tnt(struct fast *f, const uint8_t *p)
{
    uint64_t bits = packet_tnt(p);
    struct flow_times *t = &f->s.times;
    if (!f->s.on || !bits || bits == TNT_NONE)
        return false;
    bool timed = t->base.known && t->serial != f->s.serial;
    if (!keep_tnt(f, bits, timed))
        return false;
    if (f->counting ? !point_behind(f) : timed && (!fast_flush_bits(f, true) || !fast_point_last(f)))
        return false;
    t->fresh = false;
    return true;
}

static bool on_extended(struct fast *f, const uint8_t *p, size_t size)
{
    switch (p[1]) {
    case EXTENDED_TNT:
        return on_tnt(f, p);
    case EXTENDED_PIP:
        return fast_is_host(f, p) && fast_flush(f) && fast_paging(f);
    case EXTENDED_OVF:
        return fast_flush(f) && fast_overflow(f);
    case EXTENDED_VMCS: /* tells nothing of the flow */
        f->s.times.fresh = false;
        return true;
    case EXTENDED_TMA:
    case EXTENDED_CBR:
        return fast_time(f, p, size);
    default:
        return false;
    }
}

static bool on_odd(struct fast *f, const uint8_t *p)
{
    if (*p == PACKET_TSC || *p == PACKET_MTC)
        return on_clock(f, p);
    if (!fast_flush(f))
        return false;
    switch (*p & 0x1f) {
    case PACKET_TIP:
        return on_tip(f, p);
    case PACKET_PGE:
        return fast_enable(f, p);
    case PACKET_PGD:
        return fast_disable(f, p);
    case PACKET_FUP:
        return fast_interrupt(f, p);
    default:
        return *p == PACKET_MODE && fast_mode(f, p);
    }
}

/* Past PAD packets. */
static void skip_pads(struct fast *f, const uint8_t *to)
{
    const uint8_t *p = f->p;
    uint64_t eight;
    while ((size_t)(to - p) >= sizeof(eight)) {
        memcpy(&eight, p, sizeof(eight));
        if (eight)
            break;
        p += sizeof(eight);
    }
    while (p < to && *p == PACKET_PAD)
        p++;
    f->p = p;
}

/* Cycles and the crystal's ticks while no branch is told: what they add up to matters alone. */
static void add_times(struct fast *f, const uint8_t *to)
{
    struct flow_times *t = &f->s.times;
    const uint8_t *p = f->p;
    uint64_t ctc = t->base.ctc, cycles = 0, all = 0;
    uint8_t last = t->base.last_mtc;
    bool mtc = false;
    for (; p < to; p++) {
        for (; (size_t)(to - p) >= 4 && packet_is_tick(p); p += 4) {
            all += cycles + ((uint64_t)(*p >> 3) | (uint64_t)(p[1] >> 1) << 5);
            cycles = 0;
            ctc += (uint64_t)((p[3] - last) & 0xff) << (t->config->mtc_freq & 15);
            last = p[3];
            mtc = true;
        }
        if (p == to)
            break;
        if ((*p & 7) == 3) {
            cycles += *p >> 3;
        } else if ((*p & 7) == 7 && p + 1 < to && !(p[1] & 1) && !packet_is_cut_cyc(p, 2, to)) {
            cycles += (uint64_t)(*p >> 3) | (uint64_t)(p[1] >> 1) << 5;
            p++;
        } else if (*p == PACKET_MTC && p + 1 < to) {
            p++;
            ctc += (uint64_t)((*p - last) & 0xff) << (t->config->mtc_freq & 15);
            last = *p;
            all += cycles;
            cycles = 0;
            mtc = true;
        } else if (*p != PACKET_PAD) {
            break;
        }
    }
    if (p == f->p)
        return;
    f->p = p;
    t->counted += all + cycles;
    if (mtc)
        times_reach(t, ctc, last, cycles);
    else
        t->cycles += cycles;
    t->fresh = true;
    t->serial++;
    if (f->counting)
        limit_cycles(&f->s);
}

/* Whether add_times() may: all that there is to tell of time is known. */
static bool adds_times(const struct fast *f)
{
    const struct flow_times *t = &f->s.times;
    return (!f->s.on || f->s.lost) && t->base.counts && t->base.mtc_known_mask == 0xff && t->config->nom_freq;
}

/* A packet of that size in front of f->p. */
static bool take(struct fast *f, const uint8_t *p, size_t size)
{
    if (f->s.lost)
        return fast_search(f, p, size);
    if (!(*p & 1))
        return *p == PACKET_EXTENDED ? on_extended(f, p, size) : *p == PACKET_PAD || on_tnt(f, p);
    return (*p & 3) == 3 ? on_cyc(f, p, size) : on_odd(f, p);
}

/* What count_run() adds up. */
struct tally {
    uint64_t bits; /* as of struct fast */

    unsigned nbits;

    uint64_t cycles; /* since the last MTC packet, if there was one */

    uint64_t most; /* cycles: time comes to the limit with so many */

    uint64_t ctc;

    uint32_t last_mtc;

    bool mtc, timed; /* there was an MTC packet; one of time at all */
};

/* What a tally holds becomes that of the state. */
static void keep_tally(struct fast *f, const struct tally *tally)
{
    struct flow_times *t = &f->s.times;
    f->bits = tally->bits;
    f->nbits = tally->nbits;
    if (!tally->timed || !t->base.known)
        return;
    t->cycles = tally->cycles;
    t->serial++;
    if (!tally->mtc)
        return;
    times_reach(t, tally->ctc, (uint8_t)tally->last_mtc, tally->cycles);
    limit_cycles(&f->s);
}

/* Of these, what returns 0 cannot be added; else it is the size of the packet. */

static inline size_t add_tnt(struct fast *f, struct tally *sum, uint32_t byte)
{
    unsigned n = 30 - (unsigned)__builtin_clz(byte);
    if (sum->nbits + n > FAST_BITS) {
        n = sum->nbits;
        sum->nbits = 0;
        if (!fast_bits(f, (sum->bits << 1 | 1) << (63 - n), false))
            return 0;
        n = 30 - (unsigned)__builtin_clz(byte);
    }
    sum->bits = sum->bits << n | (byte >> 1 & ((1u << n) - 1));
    sum->nbits += n;
    return 1;
}

static inline size_t add_cyc(struct tally *sum, const uint8_t *p, const uint8_t *to)
{
    uint64_t cycles = sum->cycles + (*p >> 3);
    size_t size = *p & 4 ? 2 : 1;
    if (size == 2) {
        if (p + 1 >= to || p[1] & 1 || packet_is_cut_cyc(p, size, to))
            return 0;
        cycles += (uint64_t)(p[1] >> 1) << 5;
    }
    if (cycles >= sum->most)
        return 0;
    sum->cycles = cycles;
    sum->timed = true;
    return size;
}

static inline size_t add_mtc(struct tally *sum, const struct fast_state *s, const uint8_t *p)
{
    uint64_t ticks = (uint64_t)((p[1] - sum->last_mtc) & 0xff) << (s->times.config->mtc_freq & 15);
    if (sum->ctc + ticks >= s->limit_ctc)
        return 0;
    sum->ctc += ticks;
    sum->last_mtc = p[1];
    sum->cycles = 0;
    sum->most = s->limit_ctc == NEVER ? NEVER : NEAR_CYCLES;
    sum->mtc = sum->timed = true;
    return 2;
}

/* The packets that there are most of, as long as nothing comes between and time is early: where only counts
 * are wanted. */
static bool count_run(struct fast *f, const uint8_t *to)
{
    const struct fast_state *s = &f->s;
    const struct flow_times *t = &s->times;
    const uint8_t *p = f->p;
    const bool simple = t->config->nom_freq || t->bounded || !t->base.known;
    struct tally sum = {.bits = f->bits,
                        .nbits = f->nbits,
                        .cycles = t->cycles,
                        .most = t->base.known ? s->limit_cycles : NEVER,
                        .ctc = t->base.ctc,
                        .last_mtc = t->base.last_mtc};
    bool done = true;
    if (!is_early(s))
        return true;
    for (size_t size = 1; p < to && size; p += size) {
        size = 0;
        if (!(*p & 1) && *p > PACKET_EXTENDED) {
            size = add_tnt(f, &sum, *p);
            if (!size)
                done = false;
        } else if ((*p & 3) == 3 && simple) {
            size = add_cyc(&sum, p, to);
        } else if (*p == PACKET_MTC && p + 1 < to) {
            size = add_mtc(&sum, s, p);
        }
    }
    f->p = p;
    keep_tally(f, &sum);
    return done;
}

/* Why a packet of that size could not be taken. */
static enum dec_slow why(const uint8_t *p, size_t size)
{
    enum code_mode mode;
    if (size == 0)
        return DEC_SLOW_PACKET;
    if (*p == PACKET_EXTENDED && p[1] == EXTENDED_OVF)
        return DEC_SLOW_OVERFLOW;
    if (*p == PACKET_MODE)
        return packet_mode(p, &mode) ? DEC_SLOW_MODE : DEC_SLOW_TRANSACTION;
    return DEC_SLOW_CODE;
}

/* Takes the packet at f->p. */
static bool take_next(struct fast *f, const uint8_t *to)
{
    const uint8_t *p = f->p;
    size_t size = packet_size(p, f->end);
    f->p += size;
    if (size ? take(f, p, size) || fast_take_lost(f, p, size, to)
             : to == f->end && packet_is_cut(p, f->end) && fast_end(f, p))
        return true;
    f->why = why(p, size);
    return false;
}

bool fast_stretch(struct fast *f, const uint8_t *to)
{
    f->nbits = 0;
    f->far_waits = false;
    f->begun = 0;
    f->begun_point = false;
    f->synced = false;
    f->stuck = FAST_NOT_STUCK;
    f->why = DEC_SLOW_CODE;
    fast_limit(f);
    while (f->p < to) {
        if (*f->p == PACKET_PAD)
            skip_pads(f, to);
        else if (((*f->p & 3) == 3 || *f->p == PACKET_MTC) && adds_times(f))
            add_times(f, to);
        if (f->counting && f->s.on && !f->s.lost && !count_run(f, to) && !fast_lose(f))
            return false;
        if (f->p < to && !take_next(f, to))
            return false;
    }
    if (f->synced)
        return fast_rest(f);
    if ((!fast_flush(f) && !fast_lose(f)) || f->p != to || f->far_waits)
        return false;
    f->why = DEC_SLOW_STATE;
    if (!f->counting && !fast_tell_quiet(f))
        return false;
    return (to == f->end || fast_cross(f, to)) && fast_rest(f);
}
