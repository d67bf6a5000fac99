/* `decode --dump packets`. */
#include "decoder/cmd/dump.h"

#include "decoder/pt/config.h"
#include "decoder/pt/packet_rare.h"
#include "decoder/pt/pieces.h"

#include <intel-pt.h>
#include <inttypes.h>

static const char *name_of(enum pt_packet_type type)
{
    static const char *const names[] = {
        [ppt_unknown] = "unknown", [ppt_pad] = "pad",         [ppt_psb] = "psb",
        [ppt_psbend] = "psbend",   [ppt_fup] = "fup",         [ppt_tip] = "tip",
        [ppt_tip_pge] = "tip.pge", [ppt_tip_pgd] = "tip.pgd", [ppt_tnt_8] = "tnt.8",
        [ppt_tnt_64] = "tnt.64",   [ppt_mode] = "mode",       [ppt_pip] = "pip",
        [ppt_vmcs] = "vmcs",       [ppt_cbr] = "cbr",         [ppt_tsc] = "tsc",
        [ppt_tma] = "tma",         [ppt_mtc] = "mtc",         [ppt_cyc] = "cyc",
        [ppt_stop] = "stop",       [ppt_ovf] = "ovf",         [ppt_mnt] = "mnt",
        [ppt_exstop] = "exstop",   [ppt_mwait] = "mwait",     [ppt_pwre] = "pwre",
        [ppt_pwrx] = "pwrx",       [ppt_ptw] = "ptw",
    };
    bool known = type >= 0 && (size_t)type < sizeof(names) / sizeof(names[0]) && names[type];
    return known ? names[type] : "?";
}

static void put_ip(FILE *out, const struct pt_packet_ip *ip)
{
    if (ip->ipc == pt_ipc_suppressed)
        fputs(" none", out);
    else
        fprintf(out, " %d:%" PRIx64, (int)ip->ipc, ip->ip);
}

static void put_bits(FILE *out, const struct pt_packet_tnt *tnt)
{
    fputc(' ', out);
    for (unsigned bit = tnt->bit_size; bit > 0; bit--)
        fputc(tnt->payload >> (bit - 1) & 1 ? '!' : '.', out);
}

static void put_mode(FILE *out, const struct pt_packet_mode *mode)
{
    if (mode->leaf == pt_mol_exec)
        fprintf(out, " exec csl=%u csd=%u", mode->bits.exec.csl, mode->bits.exec.csd);
    else if (mode->leaf == pt_mol_tsx)
        fprintf(out, " tsx intx=%u abrt=%u", mode->bits.tsx.intx, mode->bits.tsx.abrt);
    else
        fprintf(out, " leaf=%x", (unsigned)mode->leaf);
}

static void put_power(FILE *out, const struct pt_packet *packet)
{
    switch (packet->type) {
    case ppt_exstop:
        fprintf(out, " ip=%u", packet->payload.exstop.ip);
        break;
    case ppt_mwait:
        fprintf(out, " hints=%x ext=%x", packet->payload.mwait.hints, packet->payload.mwait.ext);
        break;
    case ppt_pwre:
        fprintf(out, " c%u.%u", (packet->payload.pwre.state + 1u) & 15,
                (packet->payload.pwre.sub_state + 1u) & 15);
        break;
    case ppt_pwrx:
        fprintf(out, " last=c%u deepest=c%u", (packet->payload.pwrx.last + 1u) & 15,
                (packet->payload.pwrx.deepest + 1u) & 15);
        break;
    case ppt_ptw:
        fprintf(out, " %" PRIx64 " ip=%u", packet->payload.ptw.payload, packet->payload.ptw.ip);
        break;
    default:
        break;
    }
}

static void put_payload(FILE *out, const struct pt_packet *packet)
{
    switch (packet->type) {
    case ppt_fup:
    case ppt_tip:
    case ppt_tip_pge:
    case ppt_tip_pgd:
        put_ip(out, &packet->payload.ip);
        break;
    case ppt_tnt_8:
    case ppt_tnt_64:
        put_bits(out, &packet->payload.tnt);
        break;
    case ppt_mode:
        put_mode(out, &packet->payload.mode);
        break;
    case ppt_pip:
        fprintf(out, " cr3=%" PRIx64 " nr=%u", packet->payload.pip.cr3, packet->payload.pip.nr);
        break;
    case ppt_vmcs:
        fprintf(out, " %" PRIx64, packet->payload.vmcs.base);
        break;
    case ppt_cbr:
        fprintf(out, " %u", packet->payload.cbr.ratio);
        break;
    case ppt_tsc:
        fprintf(out, " %" PRIx64, packet->payload.tsc.tsc);
        break;
    case ppt_tma:
        fprintf(out, " ctc=%x fc=%x", packet->payload.tma.ctc, packet->payload.tma.fc);
        break;
    case ppt_mtc:
        fprintf(out, " %x", packet->payload.mtc.ctc);
        break;
    case ppt_cyc:
        fprintf(out, " %" PRIu64, packet->payload.cyc.value);
        break;
    case ppt_mnt:
        fprintf(out, " %" PRIx64, packet->payload.mnt.payload);
        break;
    default:
        put_power(out, packet);
    }
}

/* A packet of Event Trace, which libipt 2.0.5 does not know. Returns its size; 0: it is none. */
static size_t put_event(FILE *out, const struct pt_config *pt, uint64_t offset)
{
    const uint8_t *p = pt->begin + offset;
    if (pt->end - p < 2 || p[0] != PACKET_EXTENDED || (p[1] != EXTENDED_CFE && p[1] != EXTENDED_EVD))
        return 0;
    size_t size = packet_any_size(p, pt->end);
    if (size && p[1] == EXTENDED_CFE)
        fprintf(out, "cfe type=%u vector=%u ip=%u\n", p[2] & 0x1fu, p[3], p[2] >> 7);
    else if (size)
        fprintf(out, "evd type=%u %" PRIx64 "\n", p[2] & 0x3fu, packet_number(p + 3, 8));
    return size;
}

/* Prints from the next PSB to the end or to what is no packet. Returns whether more may follow behind. */
static bool put_stretch(FILE *out, struct pt_packet_decoder *decoder, uint64_t base)
{
    const struct pt_config *pt = pt_pkt_get_config(decoder);
    if (pt_pkt_sync_forward(decoder) < 0)
        return false;
    for (;;) {
        struct pt_packet packet;
        uint64_t offset = 0;
        pt_pkt_get_offset(decoder, &offset);
        int size = pt_pkt_next(decoder, &packet, sizeof(packet));
        if (size == -pte_eos || ferror(out))
            return false;
        fprintf(out, "%08" PRIx64 " ", base + offset);
        size_t event = size < 0 ? put_event(out, pt, offset) : 0;
        if (event && pt_pkt_sync_set(decoder, offset + event) == 0)
            continue;
        if (size < 0) {
            fprintf(out, "bad: %s\n", pt_errstr(pt_errcode(size)));
            return true;
        }
        fputs(name_of(packet.type), out);
        put_payload(out, &packet);
        fputc('\n', out);
    }
}

static int put_run(FILE *out, const struct dec_pt_config *config, const struct pt_run *run, uint64_t base,
                   struct st_error *err)
{
    struct pt_config pt;
    pt_configure(&pt, config, run->bytes, run->size);
    struct pt_packet_decoder *decoder = pt_pkt_alloc_decoder(&pt);
    if (!decoder)
        return st_nomem(err, "libipt's packet decoder");
    while (put_stretch(out, decoder, base))
        ;
    pt_pkt_free_decoder(decoder);
    return 0;
}

int dec_dump_packets(FILE *out, const struct dec_pt_config *config, uint32_t ring,
                     const struct dec_piece *pieces, size_t npieces, struct st_error *err)
{
    pt_runs runs = {0};
    int rc = pt_runs_join(&(const struct dec_flow_options){0}, pieces, npieces, &runs, err);
    uint64_t base = npieces ? pieces[0].offset : 0;
    for (size_t i = 0; rc == 0 && i < runs.n; i++) {
        fprintf(out, "# ring %u, %zu bytes\n", ring, runs.at[i].size);
        rc = put_run(out, config, &runs.at[i], base, err);
        base += runs.at[i].size;
    }
    pt_runs_free(&runs);
    if (rc == 0 && (fflush(out) || ferror(out)))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write the packets");
    return rc;
}
