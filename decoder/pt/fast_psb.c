/* PSB+: where a walk begins, and what it must agree with on its way. */
#include "decoder/pt/fast.h"

#include "decoder/pt/fast_packet.h"

#include <string.h>

/* What a PSB+ says besides time. */
struct header {
    uint64_t ip; /* 0: none, tracing is off */

    enum code_mode mode;

    bool has_mode, has_fup;

    bool has_event; /* libipt stops at the PSBEND for it, at the latest */
};

/* Erratum BDM70: a PSB+ that is sent when tracing is about to go on says that it is on already; its FUP
 * counts for nothing. p is behind that. False also where the address that follows is packed against another.
 */
static bool enable_follows(const struct fast *f, const uint8_t *p)
{
    for (size_t size; (size = packet_size(p, f->end)); p += size) {
        if ((*p & 0x1f) == PACKET_PGE)
            return *p >> 5 == 3 || *p >> 5 == 6;
        bool passed = *p == PACKET_MODE || packet_is_time(p) ||
                      (*p == PACKET_EXTENDED &&
                       (p[1] == EXTENDED_PSBEND || p[1] == EXTENDED_PIP || p[1] == EXTENDED_VMCS));
        if (!passed)
            return false;
    }
    return false;
}

/* Reads the PSB+ at p; applies its times if `apply`. False: it has something unusual, or is cut off. */
static bool read_header(struct fast *f, const uint8_t *p, bool apply, struct header *h)
{
    uint64_t last = 0;
    memset(h, 0, sizeof(*h));
    if (packet_size(p, f->end) != PSB_SIZE)
        return false;
    for (p += PSB_SIZE;;) {
        while (p < f->end && *p == PACKET_PAD)
            p++;
        size_t size = packet_size(p, f->end);
        if (size == 0)
            return false;
        f->p = p + size;
        if (*p == PACKET_EXTENDED && p[1] == EXTENDED_PSBEND)
            break;
        if ((*p & 0x1f) == PACKET_FUP) {
            h->has_fup = packet_ip(p, &last);
            h->ip = last;
            if (!h->has_fup)
                return false;
            f->s.times.fresh &= !apply;
            if (f->w->bdm70 && !f->s.on && enable_follows(f, f->p)) {
                h->has_fup = false;
                h->ip = last = 0;
            }
        } else if (*p == PACKET_MODE) {
            enum code_mode before = h->mode;
            if (packet_is_transaction(p) || (p[1] >> 5 == 0 && !packet_mode(p, &h->mode)) || p[1] >> 5 > 1)
                return false;
            if (h->has_mode && h->mode != before)
                return false;
            h->has_mode |= p[1] >> 5 == 0;
            h->has_event = true;
        } else if (*p == PACKET_EXTENDED &&
                   ((p[1] == EXTENDED_PIP && fast_is_host(f, p)) || p[1] == EXTENDED_VMCS)) {
            f->s.times.fresh &= !apply;
            h->has_event = true;
        } else if (packet_is_time(p)) {
            h->has_event |= *p == PACKET_EXTENDED && p[1] == EXTENDED_CBR;
            if (apply && !fast_time(f, p, size))
                return false;
        } else {
            return false;
        }
        p += size;
    }
    f->s.last_ip = last;
    return true;
}

static void know_mode(struct fast *f, const struct header *h)
{
    f->s.mode_known |= h->has_mode;
    if (h->has_mode)
        fast_told_mode(f, h->mode);
}

bool fast_behind_psb(struct fast *f, const uint8_t *psb)
{
    struct header h;
    if (!read_header(f, psb, false, &h) || h.has_fup != f->s.on)
        return false;
    if (h.has_mode && f->s.mode_known && h.mode != f->s.mode)
        return false;
    if (h.has_mode)
        f->s.mode = h.mode;
    know_mode(f, &h);
    return true;
}

bool fast_begin(struct fast *f, const uint8_t *psb)
{
    struct fast_state *s = &f->s;
    struct header h;
    memset(s, 0, sizeof(*s));
    s->times.config = &f->w->options->config;
    s->epochs[0] = s->epochs[1] = UINT32_MAX;
    if (!read_header(f, psb, true, &h))
        return false;
    s->mode = h.has_mode ? h.mode : f->w->options->config.bits == 32 ? CODE_32 : CODE_64;
    know_mode(f, &h);
    s->serial = h.has_fup && h.has_mode ? s->times.serial : 0; /* as fast_cross() leaves it */
    if (s->times.base.known)
        s->now = dec_clock_ns(&s->times.config->clock, s->times.tsc);
    if (!fast_ask(f))
        return false;
    s->on = h.has_fup;
    if (s->on)
        fast_stand(f, h.ip);
    return true;
}

/* The next TSC or TMA packet at or behind p, before `to`, is the one that there may be: of a TSC packet's TMA
 * packets, the first. */
static bool clock_is_whole(struct fast *f, const uint8_t *p)
{
    struct fast_ahead *a = &f->ahead;
    if (a->clock_from && p >= a->clock_from && p <= a->clock_to)
        return a->clock_tsc;
    a->clock_from = p;
    a->clock_tsc = true;
    for (size_t size;; p += size) {
        p = packet_past_times(p, f->end);
        size = packet_size(p, f->end);
        if (size == 0)
            break;
        bool tma = *p == PACKET_EXTENDED && p[1] == EXTENDED_TMA;
        bool state =
            *p == PACKET_MODE || (*p & 0x1f) == PACKET_FUP || (*p == PACKET_EXTENDED && p[1] != EXTENDED_TNT);
        if (tma || *p == PACKET_TSC || (!state && !packet_is_time(p))) {
            a->clock_tsc = !tma;
            break;
        }
    }
    a->clock_to = p;
    return a->clock_tsc;
}

/* Whether p, behind a PSB+, may be passed without a branch. -1: there is more to look at. */
static int looks_ahead(const uint8_t *p, size_t size, bool *header, bool *tsc)
{
    if (size == 0 || *p == PACKET_FUP) /* such a FUP has no address */
        return false;
    if (*p == PACKET_EXTENDED && p[1] == EXTENDED_TMA && !*tsc) /* damage */
        return false;
    *tsc |= *p == PACKET_TSC;
    if (packet_is_time(p) || (*p & 0x1f) == PACKET_FUP || *p == PACKET_MODE)
        return -1;
    if (*p != PACKET_EXTENDED || p[1] == EXTENDED_TNT || p[1] == EXTENDED_OVF)
        return !*header;
    if (p[1] == EXTENDED_PIP || p[1] == EXTENDED_VMCS)
        return -1;
    if (p[1] != (*header ? EXTENDED_PSBEND : EXTENDED_PSB))
        return false;
    *header = !*header;
    return -1;
}

/* Looks from here on. */
static bool look_ahead(struct fast *f)
{
    struct fast_ahead *a = &f->ahead;
    bool header = false, tsc = false;
    const uint8_t *p = f->p;
    int whole = -1;
    a->headers.n = a->next = 0;
    a->clock_from = NULL;
    while (whole < 0 && (p = packet_past_times(p, f->end)) < f->end) {
        size_t size = packet_size(p, f->end);
        bool before = header;
        if ((*p & 3) == 3 && packet_is_cut_cyc(p, size, f->end))
            whole = false;
        else
            whole = looks_ahead(p, size, &header, &tsc);
        p += size;
        if (before && !header && st_vec_push(&a->headers, p))
            return false;
    }
    a->whole = whole < 0 ? !header : whole;
    return a->whole;
}

bool fast_ahead_is_whole(struct fast *f)
{
    struct fast_ahead *a = &f->ahead;
    while (a->next < a->headers.n && a->headers.at[a->next] < f->p)
        a->next++;
    if (a->next == a->headers.n || a->headers.at[a->next] != f->p)
        return look_ahead(f);
    return a->whole && clock_is_whole(f, f->p);
}

bool fast_cross(struct fast *f, const uint8_t *p)
{
    struct header h;
    if (!read_header(f, p, true, &h) || h.has_fup != f->s.on)
        return false;
    if (!f->s.lost || !f->s.missing.lasts)
        f->s.missing.reason = 0;
    /* libipt goes to the place of a PSB+, and takes its time, by its mode: without one, which no CPU sends,
     * not before the next branch. */
    if ((f->s.on && !h.has_mode) || (h.has_mode && h.mode != f->s.mode))
        return false;
    if (f->s.on && !f->s.lost && !fast_reach(f, h.ip) && !fast_lose(f))
        return false;
    if (!fast_ahead_is_whole(f))
        return false;
    know_mode(f, &h);
    /* While tracing is off, nothing happens at that time. */
    return !f->s.on || fast_point(f);
}

/* The time at a PSB+ is told whether or not something else stands between. */
static bool point_at_psb(struct fast *f)
{
    bool fresh = f->s.times.fresh;
    f->s.times.fresh = true;
    bool done = fast_point(f);
    f->s.times.fresh = fresh;
    return done;
}

bool fast_sync(struct fast *f, const uint8_t *psb)
{
    struct fast_state *s = &f->s;
    enum code_mode mode = s->mode;
    struct header h;
    s->on = s->lost = s->begin = false;
    s->depth = 0;
    s->leave = 0;
    s->missing.reason = 0;
    /* Without an event libipt reads on to the next PSB+, and takes that one's address. */
    if (!read_header(f, psb, true, &h) || !h.has_event || !fast_ahead_is_whole(f))
        return false;
    s->mode = h.has_mode ? h.mode : f->w->options->config.bits == 32 ? CODE_32 : CODE_64;
    s->mode_known = false;
    know_mode(f, &h);
    bool same = s->mode == mode;
    if (!point_at_psb(f) || !fast_ask_now(f) || !(same || fast_epochs(f)))
        return false;
    if (!f->counting && !fast_entry_ip(f, TRAIL_SYNC, h.has_fup, h.ip))
        return false;
    s->on = s->begin = h.has_fup;
    if (s->on)
        fast_stand(f, h.ip);
    f->synced = true;
    return true;
}
