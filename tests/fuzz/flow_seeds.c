/* flow_seeds FOLDER: inputs to begin fuzzing the flow decoder with. fuzz_flow.c tells their form: 4 bytes of
 * settings, code for the address where the trace starts, packets. */
#include "../unit/decoder/flow_script.h"

enum {
    BASE = 0x401000,
    OTHER = 0x500000,
    /* Of the second byte of settings (fuzz_flow.c). */
    HOLE = 32,
    LATER = 64,
    UNKNOWN = 128,
    /* Of the third. */
    EVENT_TRACE = 64,
    NO_TNT = 128
};

struct seed {
    const char *name;

    uint8_t settings[4]; /* the third, below those bits: the code's size / 4 */

    uint8_t code[32];

    void (*trace)(struct script *s);
};

static void put_mtc(struct script *s, uint8_t ctc)
{
    put(s, (struct pt_packet){.type = ppt_mtc, .payload.mtc.ctc = ctc});
}

static void put_tsx(struct script *s, bool in_transaction, bool aborted)
{
    struct pt_packet packet = {.type = ppt_mode};
    packet.payload.mode.leaf = pt_mol_tsx;
    packet.payload.mode.bits.tsx.intx = in_transaction;
    packet.payload.mode.bits.tsx.abrt = aborted;
    put(s, packet);
}

static void trace_loop(struct script *s)
{
    put_tnt(s, "TTNTN");
    put_tsc(s, 20000);
    put_tnt(s, "TTTTTTTTNN");
}

static void trace_calls(struct script *s)
{
    put_tnt(s, "T");
    put_ip(s, ppt_tip, BASE + 0xb);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip, BASE);
    put_ip(s, ppt_tip, 0x500000);
}

static void trace_times(struct script *s)
{
    struct pt_packet cbr = {.type = ppt_cbr, .payload.cbr.ratio = 20};
    struct pt_packet tma = {.type = ppt_tma, .payload.tma = {.ctc = 0x1234, .fc = 20}};
    put(s, tma);
    put(s, cbr);
    for (unsigned i = 0; i < 6; i++) {
        put_cyc(s, 40 + i);
        put_tnt(s, "T");
        put_mtc(s, (uint8_t)(0x91 + i));
    }
    put_tsc(s, 90000);
    put_tnt(s, "NN");
}

static void trace_events(struct script *s)
{
    put_ip(s, ppt_fup, BASE + 4);
    put_ip(s, ppt_tip, BASE);
    put_ip(s, ppt_fup, BASE + 1);
    put_ip(s, ppt_tip_pgd, 0);
    put_tsc(s, 20000);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, BASE);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip_pgd, BASE + 2);
}

static void trace_losses(struct script *s)
{
    put_tnt(s, "TN");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, BASE + 1);
    put_tnt(s, "TT");
    put_psb(s, BASE + 4, 30000);
    put_tnt(s, "TN");
    put_psb(s, 0, 40000);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, BASE);
    put_plain(s, ppt_stop);
}

static void trace_tsx(struct script *s)
{
    put_tsx(s, true, false);
    put_ip(s, ppt_fup, BASE);
    put_tnt(s, "TN");
    put_tsx(s, false, true);
    put_ip(s, ppt_fup, BASE + 1);
    put_ip(s, ppt_tip, BASE + 4);
}

static void trace_other(struct script *s)
{
    struct pt_packet ptw = {.type = ppt_ptw, .payload.ptw = {.payload = 0x1234, .plc = 1, .ip = 1}};
    struct pt_packet pip = {.type = ppt_pip, .payload.pip.cr3 = 0x12000};
    put(s, ptw);
    put_ip(s, ppt_fup, BASE);
    put(s, pip);
    put_tnt(s, "TT");
    put_ip(s, ppt_tip, BASE);
}

static void put_pip(struct script *s, bool guest)
{
    put(s, (struct pt_packet){.type = ppt_pip, .payload.pip = {.cr3 = 0x7000, .nr = guest}});
}

static void trace_guest(struct script *s)
{
    put_tnt(s, "N");
    put_pip(s, true);
    put(s, (struct pt_packet){.type = ppt_vmcs, .payload.vmcs = {.base = 0x5000}});
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "TTT");
    put_ip(s, ppt_fup, BASE);
    put_pip(s, false);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip, BASE + 5);
    put_tnt(s, "T");
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, BASE);
    put_tnt(s, "T");
    put_pip(s, false);
    put_psb(s, BASE, 20000);
    put_tnt(s, "T");
}

static void put_bytes(struct script *s, const uint8_t *bytes, size_t n)
{
    size_t at = script_size(s);
    for (size_t i = 0; i < n; i++)
        put_plain(s, ppt_pad);
    memcpy(s->trace + at, bytes, n);
}

static void trace_event_trace(struct script *s)
{
    put_tnt(s, "N");
    put_bytes(s, (const uint8_t[]){0x99, 0x05}, 2);
    put_ip(s, ppt_fup, BASE + 3);
    put_bytes(s, (const uint8_t[]){0x02, 0x13, 0x82, 0x00}, 4);
    put_ip(s, ppt_fup, BASE + 3);
    put_tnt(s, "T");
    put_bytes(s, (const uint8_t[]){0x02, 0x53, 0x00, 0x13, 0x02, 0x13, 0x81, 0, 0, 0, 0}, 11);
    put_bytes(s, (const uint8_t[]){0x02, 0x13, 0x01, 0x0e}, 4);
    put_ip(s, ppt_fup, BASE + 4);
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "N");
}

static void trace_probe(struct script *s)
{
    put_tnt(s, "N");
    put_ip(s, ppt_tip_pgd, 0);
    put_ip(s, ppt_tip_pge, 0x50100d);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "NT");
    put_ip(s, ppt_tip_pgd, 0);
}

static void trace_newer(struct script *s)
{
    put_tnt(s, "N");
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "N");
    put_ip(s, ppt_fup, BASE + 0xd);
    put_ip(s, ppt_tip, BASE);
}

/* Reserved bits of a TMA packet are set. */
static void trace_damage(struct script *s)
{
    struct pt_packet tma = {.type = ppt_tma, .payload.tma = {.ctc = 0x34, .fc = 0x100}};
    put_plain(s, ppt_pad);
    put(s, tma);
    s->trace[script_size(s) - 1] |= 0xd0;
    put_tnt(s, "TN");
    put_tsc(s, 20000);
    put_tnt(s, "N");
}

/* Into code that is missing, and every packet by which the place is found again. */
static void trace_lost(struct script *s)
{
    put_ip(s, ppt_tip, 0x600000);
    put_tnt(s, "TTN");
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, 0x600000);
    put_pip(s, false);
    put_tsc(s, 20000);
    put_ip(s, ppt_fup, 0x600004);
    put_pip(s, false);
    put_ip(s, ppt_tip, BASE);
    put_ip(s, ppt_fup, 0x600000);
    put_ip(s, ppt_tip_pgd, 0);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, 0x600000);
    put_cyc(s, 50);
    put_tnt(s, "TTTTTTTTTTNN");
    put_psb(s, 0x600008, 21000);
    put_tnt(s, "T");
    put_ip(s, ppt_tip_pgd, 0);
    put_psb(s, 0, 22000);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, BASE);
    put_tnt(s, "TN");
}

/* A guest runs, and a mode is lost, while the place is not known. */
static void trace_lost_guest(struct script *s)
{
    put_tnt(s, "T");
    put_ip(s, ppt_tip_pgd, 0);
    put_tsc(s, 20000);
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip_pge, BASE);
    put_tnt(s, "N");
    put_ip(s, ppt_tip, BASE);
    put_psb(s, BASE, 21000);
    put_ip(s, ppt_fup, BASE);
    put_ip(s, ppt_tip, 0x600000);
    put_tnt(s, "T");
    put_ip(s, ppt_fup, 0x600004);
    put_pip(s, true);
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "TT");
    put_pip(s, false);
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "T");
    put_psb(s, BASE, 22000);
    put_ip(s, ppt_fup, BASE);
    put_ip(s, ppt_tip, 0x600000);
    put_pip(s, true);
    put_ip(s, ppt_tip, BASE);
    put_psb(s, BASE, 23000);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, BASE);
    put_tnt(s, "T");
}

static void put_psb_of_host(struct script *s, uint64_t ip, uint64_t tsc)
{
    put_plain(s, ppt_psb);
    put_tsc(s, tsc);
    put_mode(s, ptem_64bit);
    put_pip(s, false);
    put_ip(s, ppt_fup, ip);
    put_plain(s, ppt_psbend);
    put_tnt(s, "T");
}

/* Overflows behind PSB+ that the fast walk goes on from, once a guest ran. */
static void trace_hidden_guest(struct script *s)
{
    put_tnt(s, "N");
    put_pip(s, true);
    put_ip(s, ppt_tip, BASE);
    put_ip(s, ppt_fup, BASE);
    put_pip(s, false);
    put_ip(s, ppt_tip, BASE + 5);
    put_tnt(s, "T");
    put_psb_of_host(s, BASE, 20000);
    put_psb_of_host(s, BASE, 21000);
    put_plain(s, ppt_ovf);
    put_ip(s, ppt_fup, BASE);
    put_tnt(s, "T");
    put_psb_of_host(s, BASE, 22000);
    put_psb_of_host(s, BASE, 23000);
    put_plain(s, ppt_ovf);
    put_psb_of_host(s, BASE, 24000);
}

/* Likewise, once code of the other length ran. */
static void trace_hidden_mode(struct script *s)
{
    put_tnt(s, "TT");
    put_ip(s, ppt_fup, BASE);
    put_mode(s, ptem_32bit);
    put_ip(s, ppt_tip, BASE);
    put_tnt(s, "TT");
    put_ip(s, ppt_fup, BASE);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip, BASE);
    for (unsigned i = 2; i < 6; i++) {
        put_psb(s, BASE, i * 10000);
        put_tnt(s, "TT");
        put_psb(s, BASE, i * 10000 + 5000);
        put_tnt(s, "TT");
        put_plain(s, ppt_ovf);
        put_ip(s, ppt_fup, i % 2 ? BASE : 0xffffffff81000000);
        put_tnt(s, "TT");
    }
}

/* Calls into code that is missing and returns to it. */
static void trace_returns(struct script *s)
{
    put_tnt(s, "T");
    put_ip(s, ppt_tip, OTHER);
    put_tnt(s, "T");
    put_psb(s, OTHER, 20040);
    put_ip(s, ppt_tip, BASE + 0xb);
    put_tnt(s, "T");
    put_tsc(s, 20060);
    put_ip(s, ppt_tip, OTHER + 4);
    put_tnt(s, "TT");
    put_ip(s, ppt_tip, BASE + 0xb);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, BASE + 5);
    put_ip(s, ppt_tip, OTHER + 0x1000);
    put_tsc(s, 30500);
    put_ip(s, ppt_tip, BASE + 5);
    put_ip(s, ppt_tip, OTHER + 0x1000);
    put_tnt(s, "TN");
}

/* In the kernel it may be asked at each branch whose code runs. */
static void trace_kernel(struct script *s)
{
    const uint64_t kernel = 0xffffffff81000000;
    put_tnt(s, "TN");
    put_ip(s, ppt_fup, BASE + 1);
    put_ip(s, ppt_tip, kernel);
    for (unsigned i = 1; i < 10; i++) {
        put_tnt(s, "TTTTT");
        put_tsc(s, 10000 + i * 30);
        put_tnt(s, "TTTN");
        put_cyc(s, 10);
        put_tnt(s, "TTTTTTTTTNTTTTTTTTN");
        put_psb(s, i % 4 ? kernel : 0x600000, 10010 + i * 30);
        put_ip(s, ppt_fup, kernel + 1);
        put_ip(s, ppt_tip, i % 3 ? kernel : BASE);
    }
}

/* Cut where tracing is off, and at the end. */
static void trace_cut(struct script *s)
{
    put_tnt(s, "TN");
    put_ip(s, ppt_fup, BASE + 1);
    put_ip(s, ppt_tip_pgd, 0);
    put_tnt(s, "T");
    put_ip(s, ppt_tip, BASE);
    put_mtc(s, 3);
    put_psb(s, BASE, 20000);
    put_tnt(s, "TN");
    put_ip(s, ppt_tip_pgd, BASE);
    put_ip(s, ppt_tip, BASE);
    put_psb(s, 0, 20500);
    put_mode(s, ptem_64bit);
    put_ip(s, ppt_tip_pge, BASE);
    put_tnt(s, "TN");
    put(s, (struct pt_packet){.type = ppt_pad});
    s->trace[script_size(s) - 1] = 0x6d; /* a TIP packet, of which nothing follows */
}

/* nop; jne +1; nop; jne -6; nop */
#define LOOP                                                                                                 \
    {                                                                                                        \
        0x90, 0x75, 0x01, 0x90, 0x75, 0xfa, 0x90                                                             \
    }
/* call +6; call *rax; jne self; nop; nop; ret */
#define CALLS                                                                                                \
    {                                                                                                        \
        0xe8, 6, 0, 0, 0, 0xff, 0xd0, 0x75, 0xfe, 0x90, 0x90, 0xc3                                           \
    }
/* ptwrite rax; jmp *rax; syscall; iretq; int3 */
#define SOME                                                                                                 \
    {                                                                                                        \
        0xf3, 0x48, 0x0f, 0xae, 0xe0, 0x75, 0x02, 0xff, 0xe0, 0x0f, 0x05, 0x48, 0xcf, 0xcc                   \
    }
/* jne; nop; jne; syscall */
#define PROBE                                                                                                \
    {                                                                                                        \
        0x75, 0xfe, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x75, 0xfe, 0x0f, 0x05                                     \
    }
/* jne +3; vmresume; jne -7 */
#define GUEST                                                                                                \
    {                                                                                                        \
        0x75, 0x03, 0x0f, 0x01, 0xc3, 0x75, 0xf9                                                             \
    }
/* add $1,%r16; push2 %rax,%rbx; jne +11; jmpabs; {rex2} ret */
#define NEWER                                                                                                \
    {                                                                                                        \
        0xd5, 0x18, 0x83, 0xc0, 0x01, 0x62, 0xf4, 0x64, 0x18, 0xff, 0xf0, 0x75, 0x0b, 0xd5, 0x00, 0xa1,      \
            0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0xd5, 0x00, 0xc3                                 \
    }

static const struct seed seeds[] = {
    {"loop", {0, 0, 8, 0}, LOOP, trace_loop},
    {"loop32", {64, 0, 8, 128}, LOOP, trace_loop},
    {"calls", {0, 16, 8, 128}, CALLS, trace_calls},
    {"calls-snapshot", {128, 2 | 4 | 16, 8, 64}, CALLS, trace_calls},
    {"times", {16 | 32 | 3, 0, 8, 0}, LOOP, trace_times},
    {"times-alone", {3, 0, 8, 0}, LOOP, trace_times},
    {"times-damaged", {4, 8 | 16, 8, 100}, LOOP, trace_damage},
    {"events", {0, 0, 8, 0}, LOOP, trace_events},
    {"losses", {0, 8 | 16, 8, 100}, LOOP, trace_losses},
    {"tsx", {128, 1, 8, 0}, LOOP, trace_tsx},
    {"other", {0, 0, 8, 0}, SOME, trace_other},
    {"lost", {0, 0, 8, 0}, CALLS, trace_lost},
    {"lost-loop", {16 | 32 | 3, 0, 8, 0}, LOOP, trace_lost},
    {"lost-hole", {0, HOLE, 8, 0}, CALLS, trace_lost},
    {"lost-hole-loop", {0, HOLE, 8, 0}, LOOP, trace_lost},
    {"lost-nowhere", {0, UNKNOWN, 8, 0}, CALLS, trace_lost},
    {"returns", {0, LATER, 8, 0}, CALLS, trace_returns},
    {"returns-hole", {0, LATER | HOLE, 8, 0}, CALLS, trace_returns},
    {"returns-nowhere", {0, LATER | UNKNOWN, 8, 0}, CALLS, trace_returns},
    {"kernel", {0, 0, 8, 0}, LOOP, trace_kernel},
    {"kernel-unknown", {0, UNKNOWN, 8, 0}, LOOP, trace_kernel},
    {"kernel-unknown-times", {16 | 32 | 3, UNKNOWN, 8, 0}, LOOP, trace_kernel},
    {"cut", {0, 0, 8, 0}, LOOP, trace_cut},
    {"lost-guest", {0, 0, 8, 0}, GUEST, trace_lost_guest},
    {"hidden-guest", {0, 0, 8, 0}, GUEST, trace_hidden_guest},
    {"hidden-mode", {0, 0, 8, 0}, GUEST, trace_hidden_mode},
    {"cut-unknown", {0, UNKNOWN | HOLE, 8, 0}, LOOP, trace_cut},
    {"newer", {0, 0, 8, 0}, NEWER, trace_newer},
    {"probe", {0, 0, 8 | 192, 0}, PROBE, trace_probe},
    {"guest", {0, 0, 8, 0}, GUEST, trace_guest},
    {"event-trace", {0, 0, EVENT_TRACE | 8, 0}, LOOP, trace_event_trace},
    {"no-tnt", {0, 0, NO_TNT | 8, 128}, CALLS, trace_calls},
    {"newer32", {64, 0, 8, 0}, NEWER, trace_newer},
};

static void save(const char *folder, const struct seed *seed)
{
    char path[4096];
    struct script s;
    FILE *f;

    script_open(&s);
    seed->trace(&s);
    snprintf(path, sizeof(path), "%s/%s", folder, seed->name);
    f = fopen(path, "we");
    if (!f || fwrite(seed->settings, sizeof(seed->settings), 1, f) != 1 ||
        fwrite(seed->code, sizeof(seed->code), 1, f) != 1 || fwrite(s.trace, script_size(&s), 1, f) != 1 ||
        fclose(f)) {
        fprintf(stderr, "flow_seeds: %s: %m\n", path);
        exit(1);
    }
    script_close(&s);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: flow_seeds FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
        save(argv[1], &seeds[i]);
    return 0;
}
