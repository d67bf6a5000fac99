/* The stream of events on its way out of the flow decoder: times are given, batches made, repeated gaps
 * dropped. */
#ifndef ST_DECODER_PT_OUT_H
#define ST_DECODER_PT_OUT_H

#include "decoder/pt/flow.h"

enum {
    OUT_ROOM = 8192, /* events held back at most, to wait for the next point of time */
    OUT_DETAIL = 768,
};

struct flow_out {
    dec_emit_fn *emit;

    void *ctx;

    struct dec_stream_info info;

    int32_t cpu;

    struct dec_flow_counts *counts;

    struct dec_event *events; /* OUT_ROOM of them */

    uint64_t *at; /* of each: instructions since the last point when it happened */

    size_t n;

    size_t first; /* of events: from here on they wait for their times */

    size_t gap; /* the gap among the events, at most one: how many there are up to and with it; 0: none */

    char detail[OUT_DETAIL]; /* of that gap */

    bool timed; /* a point was seen */

    bool off; /* tracing is off behind the last event that has its time */

    bool exact; /* the next event stands at the point */

    uint64_t point; /* ns */

    uint64_t told; /* the latest time that packets gave; `point` may have moved on from it */

    uint64_t given; /* the latest time that was given to an event */

    uint64_t instructions; /* since the point */

    uint64_t since_event; /* instructions since the last event */

    uint32_t cycles; /* the counter at the last point */

    bool cycles_known;

    uint64_t cycles_left; /* for the next event */

    double ns_per_instruction; /* as last seen */

    bool idle; /* nothing was decoded since the last gap, a DEC_ENABLE apart */

    bool open; /* a DEC_ENABLE was told, and neither DEC_DISABLE nor DEC_GAP behind it */

    uint64_t gap_key; /* of that gap: reason and image */

    int rc; /* what emit returned, or ST_ENOMEM */
};

/* rate: the first guess of ns an instruction. ST_ENOMEM. */
int out_init(struct flow_out *out, const struct dec_flow_options *options, struct dec_flow_counts *counts,
             struct st_error *err);
void out_free(struct flow_out *out);

/* Who the events belong to from here on. */
void out_who(struct flow_out *out, const struct dec_where *where);

/* A packet gave the time, perf ns; exact: directly before the packet of the next event. What is held back
 * gets its times. cycles: all that CYC packets told so far, modulo 2^32; it is followed from the second point
 * behind a gap on. */
void out_point(struct flow_out *out, uint64_t ns, bool exact, uint32_t cycles);

/* n instructions ran. */
static inline void out_ran(struct flow_out *out, uint64_t n)
{
    out->instructions += n;
    out->since_event += n;
    out->counts->instructions += n;
}

/* Something happened that is not told. */
static inline void out_untold(struct flow_out *out)
{
    out->idle = false;
    out->exact = false;
}

/* Any event but a gap. For DEC_PTWRITE arg is the payload, else it is ignored. */
void out_event(struct flow_out *out, enum dec_kind kind, uint16_t flags, uint64_t from, uint64_t to,
               uint64_t arg);

/* Takes back a DEC_ENABLE that was the last event, if it is still here: nothing could be decoded after it.
 * Returns whether it was. */
bool out_take_back(struct flow_out *out);

/* A gap; image may be NULL. Returns whether it was new: not the same as the last with nothing decoded since,
 * a DEC_ENABLE apart, which is taken back; where it is no longer here, the gap is told once more, and not
 * counted.
 */
bool out_gap(struct flow_out *out, enum dec_gap reason, const struct dec_image *image, const char *detail);

/* Gives times and hands everything on. */
void out_flush(struct flow_out *out);

#endif
