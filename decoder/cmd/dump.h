/* `decode --dump`: a line an event on stdout: TIME TID CPU FROM TO KIND SYMBOL.
 *
 * TIME is s.ns of the perf clock (raw input without a clock: the TSC as it is); TID and CPU -1 if unknown;
 * FROM and TO hexadecimal, 0 where there is none; KIND as dec_kind_name() with marks behind it; SYMBOL is the
 * name at TO (at FROM, where TO is 0) as name+0xoff. */
#ifndef ST_DECODER_CMD_DUMP_H
#define ST_DECODER_CMD_DUMP_H

#include "decoder/pt/flow.h"
#include "decoder/sideband/sideband.h"

#include <stdio.h>

/* "jcc", "jmp", "call", "return", "syscall" (far call), "iret" (far return), "farjmp", "int" (DEC_ASYNC),
 * "tr-start", "tr-end", "gap", "ptwrite", "power". */
const char *dec_kind_name(enum dec_kind kind);

/* Context of dec_dump_branches, which is a dec_emit_fn. `space_of` gives the address space for names; NULL:
 * no names. A branch that was not taken is no line. */
struct dec_dump {
    FILE *out;

    bool raw_time; /* TIME is not ns */

    const struct dec_space *(*space_of)(void *ctx, int32_t pid, int32_t tid, uint64_t time);

    void *ctx;
};
int dec_dump_branches(void *dump, const struct dec_stream_info *info, const struct dec_event *events,
                      size_t n, const char *detail);

/* One line a packet: OFFSET NAME PAYLOAD, offsets within the ring, for one ring. A broken packet is a line
 * "bad", and the listing goes on at the next PSB. ST_EFAIL: writing failed. */
int dec_dump_packets(FILE *out, const struct dec_pt_config *config, uint32_t ring,
                     const struct dec_piece *pieces, size_t npieces, struct st_error *err);

/* One line a sample with a call chain, in the order of their times: TIME TID CPU ADDRESS..., the innermost
 * address first. ST_EFAIL: writing failed; ST_EBADFILE: a sample is damaged. */
int dec_dump_samples(FILE *out, const struct dec_sideband *sb, struct st_error *err);

/* The time of a line ("12.000000034"); buf needs 32 bytes. Returns buf. */
char *dec_dump_time(uint64_t time, bool raw_time, char *buf, size_t size);

#endif
