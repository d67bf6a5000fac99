/* The packets with times, followed beside the walk. */
#include "decoder/pt/times.h"

#include "decoder/pt/fast_packet.h"

#include <string.h>

static const uint64_t NO_OFFSET = UINT64_MAX;

static const double LONGEST =
    1e12; /* TSC ticks, minutes, without any absolute time: those cycles are damage */

/* Erratum SKD007: an OVF stands within a CYC. */
static void mend_cyc(struct pt_packet_decoder *decoder, struct pt_packet *packet, uint64_t offset)
{
    const struct pt_config *config = pt_pkt_get_config(decoder);
    const uint8_t *p = config->begin + offset;
    if (packet->type != ppt_cyc || !config->errata.skd007 || !packet_is_cut_cyc(p, packet->size, config->end))
        return;
    packet->type = ppt_ovf;
    pt_pkt_sync_set(decoder, offset + 3);
}

/* The next packet of a decoder, past what is no packet. False: none left. */
static bool next_packet(struct pt_packet_decoder *decoder, struct pt_packet *packet, uint64_t *offset)
{
    for (;;) {
        if (pt_pkt_get_offset(decoder, offset) == 0) {
            int size = pt_pkt_next(decoder, packet, sizeof(*packet));
            if (size >= 0) {
                mend_cyc(decoder, packet, *offset);
                return true;
            }
            if (size == -pte_eos)
                return false;
        }
        if (pt_pkt_sync_forward(decoder) < 0)
            return false;
    }
}

static void step(struct flow_times *t)
{
    if (!next_packet(t->packets, &t->packet, &t->offset))
        t->offset = NO_OFFSET;
    else if (t->packet.type == ppt_psb)
        t->behind_psb = t->offset + 1;
}

int times_init(struct flow_times *t, const struct dec_pt_config *config, const struct pt_config *pt,
               struct st_error *err)
{
    memset(t, 0, sizeof(*t));
    t->config = config;
    t->packets = pt_pkt_alloc_decoder(pt);
    t->ahead = pt_pkt_alloc_decoder(pt);
    if (!t->packets || !t->ahead) {
        times_free(t);
        return st_nomem(err, "libipt's packet decoder");
    }
    step(t);
    return 0;
}

void times_free(struct flow_times *t)
{
    pt_pkt_free_decoder(t->packets);
    pt_pkt_free_decoder(t->ahead);
    t->packets = t->ahead = NULL;
}

/* TSC packets hold 56 bits; the rest is that of the reference, whichever way is nearer. */
static uint64_t whole_tsc(uint64_t payload, uint64_t reference)
{
    const uint64_t turn = (uint64_t)1 << 56;
    uint64_t tsc = payload | (reference & ~(turn - 1));
    if (reference > tsc && reference - tsc > turn / 2)
        return tsc + turn;
    if (tsc > reference && tsc - reference > turn / 2 && tsc >= turn)
        return tsc - turn;
    return tsc;
}

static void apply_tsc(const struct flow_times *t, struct time_base *base, const struct pt_packet_tsc *packet)
{
    base->tsc = whole_tsc(packet->tsc, base->known ? base->tsc : t->config->reference);
    base->known = true;
    base->tied = false;
}

/* Crystal ticks to TSC ticks. */
static uint64_t ticks(const struct dec_pt_config *config, uint64_t ctc)
{
    uint32_t below = config->cpuid15_eax;
    if (ctc < (uint64_t)1 << 32)
        return below & (below - 1) ? ctc * config->cpuid15_ebx / below
                                   : ctc * config->cpuid15_ebx >> __builtin_ctz(below);
    return (uint64_t)((unsigned __int128)ctc * config->cpuid15_ebx / config->cpuid15_eax);
}

/* TMA: the crystal counter at the TSC packet before it, and how many TSC ticks it had been standing there. */
static void apply_tma(const struct flow_times *t, struct time_base *base, const struct pt_packet_tma *packet)
{
    uint32_t rest = packet->ctc & ((1u << (t->config->mtc_freq & 15)) - 1);
    base->tied = true;
    base->counts = base->known && t->config->cpuid15_eax && t->config->cpuid15_ebx;
    if (!base->counts)
        return;
    base->ctc_tsc = base->tsc - packet->fc - ticks(t->config, rest);
    base->ctc = 0;
    base->last_mtc = (uint8_t)(packet->ctc >> (t->config->mtc_freq & 15));
    /* TMA has 16 bits of the counter, which may not reach to the top of MTC's 8. */
    base->mtc_known_mask = t->config->mtc_freq > 8 ? 0xff >> (t->config->mtc_freq - 8) : 0xff;
}

/* MTC: 8 bits of the crystal counter. False: nothing ties it to the TSC. */
static bool apply_mtc(const struct flow_times *t, struct time_base *base, const struct pt_packet_mtc *packet)
{
    if (!base->counts)
        return false;
    base->ctc += (uint64_t)((packet->ctc - base->last_mtc) & base->mtc_known_mask)
                 << (t->config->mtc_freq & 15);
    base->mtc_known_mask = 0xff;
    base->last_mtc = packet->ctc;
    uint64_t tsc = base->ctc_tsc + ticks(t->config, base->ctc);
    if (tsc > base->tsc)
        base->tsc = tsc;
    return true;
}

/* What look_ahead() learns: the next absolute time, and the cycles on the way there. */
struct outlook {
    struct time_base base;

    uint64_t cycles;

    bool pause; /* tracing went off or packets were lost: the cycles do not account for all of the time */
};

/* Whether the packet has an absolute time. */
static bool look_at(const struct flow_times *t, struct outlook *o, const struct pt_packet *packet)
{
    switch (packet->type) {
    case ppt_tsc:
        apply_tsc(t, &o->base, &packet->payload.tsc);
        return true;
    case ppt_tma:
        apply_tma(t, &o->base, &packet->payload.tma);
        return false;
    case ppt_mtc:
        return apply_mtc(t, &o->base, &packet->payload.mtc);
    case ppt_cyc:
        o->cycles += packet->payload.cyc.value;
        return false;
    case ppt_tip_pgd:
    case ppt_ovf:
        o->pause = true;
        return false;
    default:
        return false;
    }
}

/* Finds the next absolute time, which CYC packets before it cannot pass. Where no bus ratio is known, the
 * cycles up to there tell how long one is. */
static void look_ahead(struct flow_times *t)
{
    struct outlook o = {.base = t->base, .cycles = t->cycles};
    struct pt_packet packet;
    uint64_t offset;
    t->bounded = true;
    t->bound = UINT64_MAX;
    if (pt_pkt_get_offset(t->packets, &offset) < 0 || pt_pkt_sync_set(t->ahead, offset) < 0)
        return;
    while (next_packet(t->ahead, &packet, &offset)) {
        if (!look_at(t, &o, &packet))
            continue;
        t->bound = o.base.tsc;
        if (!t->config->nom_freq && !o.pause && o.cycles && t->bound > t->from)
            t->ratio = (double)(t->bound - t->from) / (double)o.cycles;
        return;
    }
}

/* A packet gave an absolute time. */
static void set_absolute(struct flow_times *t)
{
    t->from = t->base.tsc;
    t->cycles = 0;
    t->bounded = false;
    if (t->base.tsc > t->tsc)
        t->tsc = t->base.tsc;
    t->fresh = true;
    t->serial++;
}

/* tsc of the cycles since `from`, whose bound is known. False: so many are damage. */
static bool add_cycles(struct flow_times *t)
{
    double passed = (double)t->cycles * (t->ratio > 0 ? t->ratio : 1.0);
    uint64_t room = t->bound > t->from ? t->bound - t->from : 0;
    if (t->bound == UINT64_MAX && passed > LONGEST)
        return false;
    uint64_t tsc = t->from + (passed < (double)room ? (uint64_t)passed : room);
    if (tsc > t->tsc)
        t->tsc = tsc;
    return true;
}

static void apply_cyc(struct flow_times *t, const struct pt_packet_cyc *packet)
{
    t->counted += packet->value;
    if (!t->base.known)
        return;
    t->cycles += packet->value;
    if (!t->bounded)
        look_ahead(t);
    if (!add_cycles(t))
        return;
    t->fresh = true;
    t->serial++;
}

/* The core's clock against the bus clock; the TSC runs at the nominal ratio. */
static void apply_cbr(struct flow_times *t, const struct pt_packet_cbr *packet)
{
    if (!t->config->nom_freq || !packet->ratio)
        return;
    t->ratio = (double)t->config->nom_freq / packet->ratio;
    t->from = t->tsc;
    t->cycles = 0;
}

static void apply(struct flow_times *t)
{
    const struct pt_packet *packet = &t->packet;
    switch (packet->type) {
    case ppt_tsc:
        apply_tsc(t, &t->base, &packet->payload.tsc);
        set_absolute(t);
        break;
    case ppt_tma:
        apply_tma(t, &t->base, &packet->payload.tma);
        break;
    case ppt_mtc:
        if (apply_mtc(t, &t->base, &packet->payload.mtc))
            set_absolute(t);
        break;
    case ppt_cyc:
        apply_cyc(t, &packet->payload.cyc);
        break;
    case ppt_cbr:
        apply_cbr(t, &packet->payload.cbr);
        break;
    case ppt_pad:
    case ppt_psb:
    case ppt_psbend:
    case ppt_mode:
        break;
    default:
        t->fresh = false;
    }
}

void times_tsc(struct flow_times *t, uint64_t payload)
{
    apply_tsc(t, &t->base, &(const struct pt_packet_tsc){.tsc = payload});
    set_absolute(t);
}

bool times_tma(struct flow_times *t, uint16_t ctc, uint16_t fc)
{
    if (!t->base.known || t->base.tied)
        return false;
    apply_tma(t, &t->base, &(const struct pt_packet_tma){.ctc = ctc, .fc = fc});
    return true;
}

void times_mtc(struct flow_times *t, uint8_t ctc)
{
    if (apply_mtc(t, &t->base, &(const struct pt_packet_mtc){.ctc = ctc}))
        set_absolute(t);
}

void times_reach(struct flow_times *t, uint64_t ctc, uint8_t last_mtc, uint64_t cycles)
{
    t->base.ctc = ctc;
    if (apply_mtc(t, &t->base, &(const struct pt_packet_mtc){.ctc = t->base.last_mtc}))
        set_absolute(t);
    t->base.last_mtc = last_mtc;
    t->cycles = cycles;
}

void times_cbr(struct flow_times *t, uint8_t ratio)
{
    apply_cbr(t, &(const struct pt_packet_cbr){.ratio = ratio});
}

/* A packet as look_at() wants it, of those it looks at. */
static void unpack(const uint8_t *p, size_t size, struct pt_packet *packet)
{
    packet->type = ppt_pad;
    if ((*p & 3) == 3) {
        packet->type = ppt_cyc;
        packet->payload.cyc.value = packet_cyc(p, size);
    } else if (*p == PACKET_TSC) {
        packet->type = ppt_tsc;
        packet->payload.tsc.tsc = packet_number(p + 1, 7);
    } else if (*p == PACKET_MTC) {
        packet->type = ppt_mtc;
        packet->payload.mtc.ctc = p[1];
    } else if ((*p & 0x1f) == PACKET_PGD) {
        packet->type = ppt_tip_pgd;
    } else if (*p == PACKET_EXTENDED && p[1] == EXTENDED_TMA) {
        packet->type = ppt_tma;
        packet->payload.tma.ctc = (uint16_t)packet_number(p + 2, 2);
        packet->payload.tma.fc = (uint16_t)(packet_number(p + 5, 2) & 0x1ff);
    } else if (*p == PACKET_EXTENDED && p[1] == EXTENDED_OVF) {
        packet->type = ppt_ovf;
    }
}

bool times_bound(struct flow_times *t, const uint8_t *p, const uint8_t *end)
{
    struct outlook o = {.base = t->base, .cycles = t->cycles};
    struct pt_packet packet;
    if (t->bounded)
        return true;
    t->bounded = true;
    t->bound = UINT64_MAX;
    while (p < end) {
        size_t size = packet_size(p, end);
        if (size == 0)
            return packet_is_cut(p, end);
        if ((*p & 3) == 3 && packet_is_cut_cyc(p, size, end))
            return false;
        if (*p & 1 || *p == PACKET_EXTENDED) {
            unpack(p, size, &packet);
            if (packet.type != ppt_pad && look_at(t, &o, &packet)) {
                t->bound = o.base.tsc;
                if (!t->config->nom_freq && !o.pause && o.cycles && t->bound > t->from)
                    t->ratio = (double)(t->bound - t->from) / (double)o.cycles;
                return true;
            }
        }
        p += size;
    }
    return true;
}

bool times_settle(struct flow_times *t, const uint8_t *ahead, const uint8_t *end)
{
    if (t->cycles == 0)
        return true;
    return times_bound(t, ahead, end) && add_cycles(t);
}

bool times_resume(struct flow_times *t, const struct flow_times *known, uint64_t offset)
{
    struct pt_packet_decoder *packets = t->packets, *ahead = t->ahead;
    *t = *known;
    t->packets = packets;
    t->ahead = ahead;
    t->behind_psb = offset;
    if (pt_pkt_sync_set(packets, offset) < 0)
        return false;
    if (t->cycles && !t->bounded)
        look_ahead(t);
    if (t->cycles)
        add_cycles(t); /* the fast walk may not have done so yet */
    step(t);
    return true;
}

void times_at(struct flow_times *t, uint64_t offset, struct packet_time *time)
{
    while (t->offset < offset) {
        apply(t);
        step(t);
    }
    bool tnt = t->offset == offset && (t->packet.type == ppt_tnt_8 || t->packet.type == ppt_tnt_64);
    *time = (struct packet_time){.known = t->base.known,
                                 .exact = t->fresh,
                                 .tsc = t->tsc,
                                 .counted = t->counted,
                                 .serial = t->serial,
                                 .tnt_bits = tnt ? t->packet.payload.tnt.bit_size : 0};
}

void times_at_tip(struct flow_times *t, uint64_t offset, struct packet_time *time)
{
    times_at(t, offset, time);
    while (t->offset != NO_OFFSET && t->packet.type != ppt_tip && t->packet.type != ppt_tip_pge &&
           t->packet.type != ppt_tip_pgd) {
        apply(t);
        step(t);
    }
    times_at(t, 0, time);
}

void times_at_psb(struct flow_times *t, uint64_t offset, struct packet_time *time)
{
    times_at(t, offset, time);
    /* Behind damage there may be two that overlap, of which this one was passed over. */
    if (t->offset > offset && t->behind_psb <= offset && pt_pkt_sync_set(t->packets, offset) == 0)
        step(t);
    bool end = false;
    while (t->offset != NO_OFFSET && !end && t->packet.type != ppt_ovf) {
        end = t->packet.type == ppt_psbend;
        apply(t);
        step(t);
    }
    times_at(t, 0, time);
    time->exact = time->known; /* the FUP within belongs to the same moment */
}
