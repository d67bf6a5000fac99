/* PSB+: where a walk begins, and what it must agree with on its way. */
#include "decoder/fast.h"

#include "decoder/fast_packet.h"

#include <string.h>

/* What a PSB+ says besides time. */
struct header {
    uint64_t ip; /* 0: none, tracing is off */

    enum code_mode mode;

    bool has_mode, has_fup;
};

/* Reads the PSB+ at p; applies its times if `apply`. False: it has something unusual, or is cut off. */
static bool read_header(struct fast *f, const uint8_t *p, bool apply, struct header *h)
{
    uint64_t last = 0;
    memset(h, 0, sizeof(*h));
    if (packet_size(p, f->end) != PSB_SIZE)
        return false;
    for (p += PSB_SIZE;;) {
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
        } else if (*p == PACKET_MODE) {
            enum code_mode before = h->mode;
            if (packet_is_transaction(p) || (p[1] >> 5 == 0 && !packet_mode(p, &h->mode)) || p[1] >> 5 > 1)
                return false;
            if (h->has_mode && h->mode != before)
                return false;
            h->has_mode |= p[1] >> 5 == 0;
        } else if (*p == PACKET_EXTENDED && p[1] == EXTENDED_PIP) {
            f->s.times.fresh &= !apply;
        } else if (packet_is_time(p)) {
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

bool fast_behind_psb(struct fast *f, const uint8_t *psb)
{
    struct header h;
    if (!read_header(f, psb, false, &h) || h.has_fup != f->s.on)
        return false;
    if (h.has_mode && f->s.mode_known && h.mode != f->s.mode)
        return false;
    if (h.has_mode)
        f->s.mode = h.mode;
    f->s.mode_known |= h.has_mode;
    return true;
}

bool fast_begin(struct fast *f, const uint8_t *psb)
{
    struct fast_state *s = &f->s;
    struct header h;
    memset(s, 0, sizeof(*s));
    s->times.config = &f->w->options->config;
    s->worlds[0] = s->worlds[1] = UINT32_MAX;
    if (!read_header(f, psb, true, &h))
        return false;
    s->mode = h.has_mode ? h.mode : f->w->options->config.bits == 32 ? CODE_32 : CODE_64;
    s->mode_known = h.has_mode;
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

/* Whether there is nothing unusual up to the first packet of a branch: libipt reads ahead so far behind a
 * PSB+, or less far, and tells nothing of that PSB+ where it fails. */
static bool ahead_is_whole(const struct fast *f)
{
    bool header = false, tsc = false;
    size_t size;
    for (const uint8_t *p = f->p; p < f->end; p += size) {
        size = packet_size(p, f->end);
        if (size == 0 || *p == PACKET_FUP) /* such a FUP has no address */
            return false;
        if (*p == PACKET_EXTENDED && p[1] == EXTENDED_TMA && !tsc) /* damage */
            return false;
        tsc |= *p == PACKET_TSC;
        if (packet_is_time(p) || (*p & 0x1f) == PACKET_FUP || *p == PACKET_MODE)
            continue;
        if (*p != PACKET_EXTENDED || p[1] == EXTENDED_TNT)
            return !header;
        if (p[1] == EXTENDED_PIP)
            continue;
        if (p[1] != (header ? EXTENDED_PSBEND : EXTENDED_PSB))
            return false;
        header = !header;
    }
    return !header;
}

bool fast_cross(struct fast *f, const uint8_t *p)
{
    struct header h;
    if (!read_header(f, p, false, &h) || h.has_fup != f->s.on)
        return false;
    if (f->s.on && (!fast_reach(f, h.ip) || (h.has_mode && h.mode != f->s.mode)))
        return false;
    if (!ahead_is_whole(f))
        return false;
    f->s.mode_known |= h.has_mode;
    if (!read_header(f, p, true, &h))
        return false;
    /* While tracing is off, nothing happens at that time; libipt tells of a PSB+ by its mode. */
    return !f->s.on || !h.has_mode || fast_point(f, POINT_NOW);
}
