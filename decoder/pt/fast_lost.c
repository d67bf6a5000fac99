/* Where the fast walk loses its way, in code that is missing, and finds it again: as the walk by libipt does
 * (walk_skip(), walk_sync()). */
#include "decoder/pt/fast.h"

#include "decoder/pt/fast_packet.h"

/* What is missing behind a node. */
static struct walk_missing missing_at(const struct fast *f, const struct fast_node_info *info)
{
    const struct dec_space *space = f->s.where.space;
    return walk_missing_at(space, space ? dec_space_find(space, f->s.now, info->start) : NULL);
}

static bool add_gap(struct fast *f, enum dec_gap reason, const struct dec_image *image)
{
    struct fast_gap gap = {.reason = reason, .image = image, .did = f->s.did};
    f->s.did = false;
    return st_vec_push(&f->gaps, gap) == 0;
}

static bool count_lost(struct fast *f, const struct fast_node_info *info)
{
    if (info->run.end == CODE_BAD)
        return add_gap(f, DEC_GAP_MISMATCH, missing_at(f, info).image);
    return add_gap(f, f->s.missing.reason, f->s.missing.image);
}

bool fast_lose(struct fast *f)
{
    enum fast_stuck stuck = f->stuck;
    uint32_t node = f->s.at >> FAST_SHIFT;
    f->stuck = FAST_NOT_STUCK;
    if (stuck == FAST_NOT_STUCK)
        return false;
    const struct fast_node_info *info = &f->graph->info[node];
    if (info->run.end == CODE_NONE)
        f->s.missing = missing_at(f, info);
    else
        fast_ran(f, info->run.count);
    f->s.missing.lasts = info->run.end != CODE_BAD;
    bool told =
        f->counting ? count_lost(f, info) : fast_entry(f, TRAIL_LOST, node << 1 | (stuck == FAST_STUCK_CALL));
    f->nbits = 0;
    f->far_waits = false;
    f->begun = 0;
    f->begun_point = false;
    f->s.lost = true;
    f->s.begin = false;
    f->s.depth = 0;
    f->s.leave = 0;
    return told;
}

/* `now`: at the time that packets told last; else at that of the point before, from which on nothing changes
 * where only counts are wanted and it was early. */
static bool find(struct fast *f, uint64_t ip, bool now)
{
    f->s.lost = false;
    f->s.begin = true;
    if (!(now ? fast_ask_now(f) : fast_ask(f)) || (!f->counting && !fast_entry_ip(f, TRAIL_FOUND, 0, ip)))
        return false;
    fast_limit(f);
    fast_stand(f, ip);
    return true;
}

static bool search_tip(struct fast *f, const uint8_t *p)
{
    if (!f->s.on || !packet_ip(p, &f->s.last_ip) || !fast_point(f))
        return false;
    f->s.times.fresh = false;
    return find(f, f->s.last_ip, true);
}

static bool search_disable(struct fast *f, const uint8_t *p)
{
    if (!f->s.on)
        return false;
    packet_ip(p, &f->s.last_ip);
    f->s.on = false;
    f->s.leave = 0;
    return true;
}

/* An interrupt: where it went is the place, and only then comes the time of what else it changed. */
static bool search_interrupt(struct fast *f, const uint8_t *p)
{
    bool more = false;
    if (!f->s.on || !packet_ip(p, &f->s.last_ip))
        return false;
    f->s.times.fresh = false;
    for (size_t size;; more |= !packet_is_time(p)) {
        p = f->p;
        size = packet_size(p, f->end);
        if (size == 0)
            return false;
        f->p += size;
        if ((*p & 0x1f) == PACKET_TIP || (*p & 0x1f) == PACKET_PGD)
            break;
        if (!fast_within_interrupt(f, p, size))
            return false;
    }
    bool known = packet_ip(p, &f->s.last_ip);
    if ((*p & 0x1f) == PACKET_TIP ? !known || !find(f, f->s.last_ip, false) : !search_disable(f, p))
        return false;
    bool done = !more || fast_point(f);
    f->s.times.fresh = false;
    return done;
}

static bool is_branch(const uint8_t *p)
{
    return (*p & 0x1f) == PACKET_TIP || (!(*p & 1) && (*p != PACKET_EXTENDED || p[1] == EXTENDED_TNT));
}

/* Whether libipt takes a packet for damage behind an OVF packet. */
static bool is_no_resume(const uint8_t *p)
{
    return is_branch(p) || (*p & 0x1f) == PACKET_PGD || (*p == PACKET_EXTENDED && p[1] == EXTENDED_PSBEND);
}

static bool tell_overflow(struct fast *f, bool on)
{
    struct fast_state *s = &f->s;
    s->did |= s->begin;
    bool told =
        f->counting ? add_gap(f, DEC_GAP_OVERFLOW, NULL) : fast_entry_ip(f, TRAIL_OVERFLOW, on, s->last_ip);
    s->depth = 0;
    s->leave = 0;
    s->missing.lasts = false;
    s->on = s->begin = on;
    s->lost &= !on;
    if (on) {
        told &= fast_ask(f);
        fast_stand(f, s->last_ip);
    }
    fast_limit(f);
    return told;
}

/* Whether the packets that were lost may have told of a guest, or of another mode, so that none is known
 * where tracing goes on (as on_overflow() of the walk by libipt). In Linux code above 4 GiB is of 64 bits. */
static bool hides_state(const struct fast *f)
{
    const struct fast_state *s = &f->s;
    bool modes = s->modes & (s->modes - 1);
    return f->w->had_guest || (modes && (!(s->last_ip >> 32) || s->mode != CODE_64));
}

/* The time is that of the OVF packet, unless a CBR packet, an event, comes before the FUP. */
bool fast_overflow(struct fast *f)
{
    const uint8_t *fup = f->p;
    bool later = false;
    size_t size;
    for (; (size = packet_size(fup, f->end)) && packet_is_time(fup); fup += size)
        later |= *fup == PACKET_EXTENDED && fup[1] == EXTENDED_CBR;
    bool on = size && (*fup & 0x1f) == PACKET_FUP;
    if (f->w->odd_overflows || f->far_waits || (size ? is_no_resume(fup) : fup != f->end))
        return false;
    later &= on;
    if (!later && !fast_point(f))
        return false;
    f->s.times.fresh = false;
    f->s.last_ip = 0;
    while (on && f->p < fup) {
        const uint8_t *p = f->p;
        f->p += packet_size(p, f->end);
        if (!fast_time(f, p, (size_t)(f->p - p)))
            return false;
    }
    if ((later && !fast_point(f)) || (on && (!packet_ip(fup, &f->s.last_ip) || hides_state(f))))
        return false;
    f->p += on ? size : 0;
    f->s.times.fresh &= !on;
    return tell_overflow(f, on);
}

static bool search_extended(struct fast *f, const uint8_t *p, size_t size)
{
    switch (p[1]) {
    case EXTENDED_TNT:
        f->s.times.fresh = false;
        return f->s.on;
    case EXTENDED_PIP:
        if (!fast_is_host(f, p) || !fast_point(f))
            return false;
        f->s.times.fresh = false;
        return true;
    case EXTENDED_VMCS:
        f->s.times.fresh = false;
        return true;
    case EXTENDED_OVF:
        return fast_overflow(f);
    default:
        return fast_time(f, p, size);
    }
}

bool fast_search(struct fast *f, const uint8_t *p, size_t size)
{
    if (packet_is_time(p))
        return fast_time(f, p, size);
    if (*p == PACKET_EXTENDED)
        return search_extended(f, p, size);
    if (!(*p & 1)) { /* bits of branches that are not known */
        f->s.times.fresh = false;
        return f->s.on;
    }
    switch (*p & 0x1f) {
    case PACKET_TIP:
        return search_tip(f, p);
    case PACKET_PGE:
        return fast_enable(f, p);
    case PACKET_PGD:
        f->s.times.fresh = false;
        return search_disable(f, p);
    case PACKET_FUP:
        return search_interrupt(f, p);
    default:
        return *p == PACKET_MODE && fast_mode(f, p);
    }
}

/* There is a branch at p, while tracing is off. */
static bool tell_off(struct fast *f, const uint8_t *p)
{
    return f->counting ? add_gap(f, DEC_GAP_MISMATCH, NULL)
                       : fast_entry_ip(f, TRAIL_OFF, 0, (uint64_t)(p - f->begin));
}

/* So the trace was cut before, and the next PSB begins anew. */
static bool begin_anew(struct fast *f, const uint8_t *p, const uint8_t *to)
{
    bool told = tell_off(f, p);
    f->s.times.fresh = false;
    if (!told || to == f->end) {
        f->p = to;
        return told;
    }
    for (size_t size; f->p < to; f->p += size) {
        p = f->p;
        size = packet_size(p, f->end);
        if (size == 0)
            return false;
        if (!packet_is_time(p))
            f->s.times.fresh &= *p == PACKET_MODE || (*p == PACKET_EXTENDED && p[1] == EXTENDED_PSBEND);
        else if (!fast_time(f, p, size))
            return false;
    }
    return f->p == to;
}

bool fast_take_lost(struct fast *f, const uint8_t *p, size_t size, const uint8_t *to)
{
    if (!f->s.on && is_branch(p))
        return begin_anew(f, p, to) && (to == f->end || fast_sync(f, to));
    return !f->s.lost && fast_lose(f) && fast_search(f, p, size);
}

/* Of a packet that is cut the walk by libipt knows its kind: it goes on to the branch that it is of. */
bool fast_end(struct fast *f, const uint8_t *p)
{
    fast_edge at;
    bool branch = (*p != PACKET_EXTENDED || p + 1 < f->end) && is_branch(p);
    f->p = f->end;
    if (!branch)
        return !f->w->bdm64; /* that looks at the packet behind each branch before it tells it */
    if (!f->s.on)
        return tell_off(f, p);
    if (f->s.lost)
        return true;
    if (!fast_flush(f) || !fast_advance(f, &at))
        return fast_lose(f);
    if ((at & 7) == FAST_COND && (*p & 1)) /* they do not fit */
        return false;
    if (f->counting)
        fast_ran(f, f->graph->info[at >> FAST_SHIFT].run.count);
    else
        fast_run_up_to(f, at >> FAST_SHIFT);
    return true;
}

void fast_count_gaps(const struct fast *f, size_t first, size_t end)
{
    struct flow_out *out = f->w->out;
    for (size_t i = first; i < end; i++) {
        const struct fast_gap *gap = &f->gaps.at[i];
        out->idle &= !gap->did;
        bool lost = gap->reason == DEC_GAP_OVERFLOW;
        f->w->counts->overflows += lost;
        if (out_gap(out, gap->reason, gap->image, "") && !lost)
            f->w->counts->errors++;
    }
}
