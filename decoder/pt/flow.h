/* Control flow: the Intel PT bytes of one ring and the code they ran through -> branches
 * (decoder/event/event.h).
 *
 * The order of events, as it can be relied on:
 *   - a stretch begins with DEC_ENABLE (at the start of the trace, after a DEC_GAP, when tracing is enabled)
 * and ends with DEC_DISABLE, DEC_GAP or the end of the stream; between them every `from` is reached from the
 * last `to` without a further branch;
 *   - a branch that left the traced code (a system call in a user-only trace) comes first, with `to` 0 if the
 * packet has no address, then DEC_DISABLE whose `from` is that branch's; an asynchronous end (interrupt,
 * signal, page fault) is DEC_DISABLE with DEC_ASYNC_DISABLE and `from` = the instruction that did not run any
 * more;
 *   - DEC_ENABLE has DEC_RESUMED where it goes on behind the branch that left, or at the `from` of the
 * asynchronous end;
 *   - DEC_POWER stands anywhere, also while tracing is off;
 *   - DEC_GAP: a branch before it may have `to` 0 where its target was lost.
 * After an error decoding goes on at the next packet that tells an address, or at the next PSB where the
 * packets themselves are damaged. A gap that follows another of the same reason and file with nothing decoded
 * between them is not repeated, nor counted.
 *
 * Time: the trace holds points (TSC, MTC, CYC packets). An event at a point has DEC_TIME_EXACT; those between
 * two points are spread by the instructions between them, never beyond the later point, also where a gap is
 * among them; time never goes back within a ring.
 *
 * A ring of a CPU that traces the kernel changes threads in the middle of kernel code: dec_stream_info then
 * changes between two events without a DEC_DISABLE; what follows belongs to the other thread, which goes on
 * where it lost the CPU before. */
#ifndef ST_DECODER_PT_FLOW_H
#define ST_DECODER_PT_FLOW_H

#include "decoder/event/event.h"
#include "decoder/image/space.h"
#include "decoder/pt/clock.h"

#include <linux/perf_event.h>

/* How the trace was recorded. */
struct dec_pt_config {
    uint16_t family; /* 0: not an Intel CPU, or unknown: no errata */

    uint8_t model, stepping;

    uint8_t bits; /* 32 or 64: the code where the trace does not say yet; 0: 64 */

    uint8_t mtc_freq; /* IA32_RTIT_CTL.MTCFreq */

    uint8_t nom_freq; /* maximum non-turbo ratio, in 100 MHz; 0: unknown */

    uint32_t cpuid15_eax, cpuid15_ebx; /* TSC / crystal clock = ebx / eax; 0: unknown */

    struct dec_clock clock;

    uint64_t reference; /* a TSC near that of the trace, for the upper 8 of its 64 bits
                           (pd_auxtrace.reference); 0: they are 0 */

    bool has_time; /* TSC packets were recorded */

    bool event_trace; /* packets of Event Trace may be there (IA32_RTIT_CTL.EventEn) */

    bool no_tnt; /* TNT packets were not recorded (IA32_RTIT_CTL.DisTNT) */

    bool filtered; /* by addresses */
};

/* Fills it from a perf.data: the words of PD_RECORD_AUXTRACE_INFO (perfdata/format.h), the attribute of the
 * Intel PT event, and the CPUID feature ("GenuineIntel,6,94,3"; NULL: unknown). Words that are missing count
 * as 0. */
void dec_pt_config_from_perf(struct dec_pt_config *config, const uint64_t *priv, size_t npriv,
                             const struct perf_event_attr *attr, const char *cpuid);

/* The CPU from that feature alone: family, model, stepping; other makers' CPUs have no errata and leave it as
 * it is. */
void dec_pt_config_from_cpuid(struct dec_pt_config *config, const char *cpuid);

/* A piece of a ring's trace: the bytes of one PD_RECORD_AUXTRACE. */
struct dec_piece {
    const uint8_t *bytes; /* stay the caller's and must live as long as the flow decoder */

    size_t size;

    uint64_t offset; /* in the ring's stream (pd_auxtrace.offset) */

    bool truncated; /* bytes were lost directly before this piece (PERF_AUX_FLAG_TRUNCATED, PERF_RECORD_LOST
                       of the ring) */
};

/* Who runs on the ring at a time. */
struct dec_where {
    int32_t pid, tid; /* -1: unknown */

    int32_t cpu; /* -1: unknown */

    const struct dec_space *space; /* NULL: nothing is known of its code */

    uint64_t until; /* perf ns from when on this answer may be another; UINT64_MAX: always the same */
};

/* Asked at the start, and at or past `until` at every DEC_ENABLE and every branch that begins or ends in the
 * kernel. `time` is 0 where the trace has no time. Non-zero stops the decoding and is returned. */
typedef int dec_where_fn(void *ctx, uint32_t ring, uint64_t time, struct dec_where *where);

/* Why a stretch from PSB to PSB left the fast walk: the first that it met. */
enum dec_slow {
    DEC_SLOW_BEGIN,       /* what the first PSB behind a loss says cannot be taken over */
    DEC_SLOW_STILL,       /* libipt's walk was at work, and its state at the PSB cannot be taken over */
    DEC_SLOW_OVERFLOW,    /* an OVF packet, of a CPU with errata about it, among damage, or where it
                             may have hidden a guest or another mode */
    DEC_SLOW_TRANSACTION, /* a MODE.TSX packet outside of a PSB+ */
    DEC_SLOW_MODE,        /* a MODE.Exec packet that changes the mode */
    DEC_SLOW_PACKET,      /* a packet that the fast walk does not know, or damage */
    DEC_SLOW_STATE,       /* the PSB+ at its end says another state than the walk's, or is damaged */
    DEC_SLOW_CODE,        /* trace and code do not fit */
    DEC_SLOW_CAUSES
};

/* What was decoded. Classes count executed instructions as libipt classes them, taken or not. */
struct dec_flow_counts {
    uint64_t instructions;

    uint64_t cond_jump, jump, call, ret, far_call, far_return, far_jump;

    uint64_t taken; /* branches after which execution did not go on at the next instruction */

    uint64_t indirect; /* near jumps and calls through a register or memory, and returns */

    uint64_t errors; /* places where decoding failed, overflows not counted */

    uint64_t overflows;

    uint64_t gaps; /* DEC_GAP events */

    uint64_t bytes; /* of trace */

    /* Of the events: distinct times that packets gave, and the span they cover, the resolution achieved. 0
     * where only counts are wanted: time is followed there, but worked out only where it decides something.
     */
    uint64_t time_points, first_time, last_time;

    uint64_t slow; /* stretches from PSB to PSB that the fast walk gave to libipt's */

    uint64_t slow_by[DEC_SLOW_CAUSES];
};

/* Adds what was decoded of another ring. */
void dec_flow_counts_add(struct dec_flow_counts *to, const struct dec_flow_counts *more);

struct dec_flow;

/* Some bytes of a piece were copied, and are not looked at before the end. Called by several threads at once.
 */
typedef void dec_forget_fn(void *ctx, const uint8_t *bytes, size_t size);

/* What the rings of one decode share: the code that was decoded, as a graph. Several threads may run rings
 * over it at once. What a ring decodes to is the same with and without it. */
struct dec_session;

/* For so many bytes of trace in all rings. ST_ENOMEM. */
int dec_session_new(size_t bytes, struct dec_session **session, struct st_error *err);

/* NULL is allowed. */
void dec_session_free(struct dec_session *session);

struct dec_flow_options {
    struct dec_pt_config config;

    struct dec_session *session; /* NULL: none. The address spaces that `where` tells of must be the same, and
                                    unchanged, as long as it lives; all its rings are run with `emit`, and the
                                    same `terse` */

    uint32_t ring; /* handed on in dec_stream_info and to `where` */

    bool snapshot; /* pieces are successive snapshots of an overwritten ring: they may overlap, `offset` tells
                      nothing */

    unsigned threads; /* to use; 0: 1. With more, `where` is asked by several at once */

    size_t group; /* bytes of trace that a thread takes at a time, at least; 0: 256 KiB */

    bool reference; /* libipt's walk alone: slower, the same result */

    bool overwritten; /* older bytes were overwritten before the first piece: begin with a gap */

    dec_forget_fn *forget; /* may be NULL */

    void *forget_ctx;

    dec_where_fn *where;

    void *where_ctx;

    dec_emit_fn *emit; /* may be NULL: only counts are wanted */

    bool terse; /* leaves out what is nothing to a stack: jumps that are not taken, and direct ones within a
                   function. Their counts go to the event behind them. The last branch in front of a PSB or
                   the end is told. Where libipt's walk is at work it tells all */

    void *emit_ctx;
};

/* Decodes a ring: all its pieces, oldest first. Adds to *counts (may be NULL). Damaged traces are gaps, not
 * errors. ST_ENOMEM; ST_EFAIL: libipt refused to start, the message says why; else what `where` or `emit`
 * returned. */
int dec_flow_run(const struct dec_flow_options *options, const struct dec_piece *pieces, size_t npieces,
                 struct dec_flow_counts *counts, struct st_error *err);

#endif
