/* Time along the packets of a run: TSC, TMA, MTC, CBR and CYC (SDM, Intel PT, "Timing Packets") -> TSC at any
 * packet. */
#ifndef ST_DECODER_PT_TIMES_H
#define ST_DECODER_PT_TIMES_H

#include "decoder/pt/flow.h"

#include <intel-pt.h>

/* What MTC packets count from. */
struct time_base {
    uint64_t tsc; /* of the last TSC or MTC packet */

    bool known;

    bool counts; /* a TMA packet tied the two counters together */

    bool tied; /* the last TSC packet has had its TMA packet */

    uint64_t ctc_tsc; /* TSC when the crystal counter stood at ctc */

    uint64_t ctc; /* ticks since that, by MTC packets */

    uint8_t last_mtc;

    uint8_t mtc_known_mask; /* the bits of last_mtc that are known */
};

/* Where a packet stands in time. */
struct packet_time {
    bool known;

    bool exact; /* a packet with the time directly precedes it */

    uint64_t tsc;

    uint64_t counted; /* cycles of all CYC packets before it */

    uint64_t serial; /* which packet gave the time: equal numbers, the same one */

    unsigned tnt_bits; /* of a TNT packet, else 0 */
};

struct flow_times {
    const struct dec_pt_config *config;

    struct pt_packet_decoder *packets, *ahead;

    struct pt_packet packet; /* the next one, at `offset` */

    uint64_t offset; /* of `packet`; UINT64_MAX: none left */

    uint64_t behind_psb; /* no PSB packet from here on was read yet */

    struct time_base base;

    uint64_t tsc; /* at `packet` */

    bool fresh; /* the packet before it had the time */

    uint64_t serial; /* of the packets that gave a time */

    uint64_t from; /* TSC where `cycles` began */

    uint64_t cycles;

    uint64_t counted; /* cycles of all CYC packets of the run */

    double ratio; /* TSC ticks a cycle; 0: unknown */

    bool bounded; /* `bound` was looked for */

    uint64_t bound; /* TSC of the next TSC or MTC packet */
};

/* config and pt (the run with its errata) stay the caller's. ST_ENOMEM. */
int times_init(struct flow_times *t, const struct dec_pt_config *config, const struct pt_config *pt,
               struct st_error *err);
void times_free(struct flow_times *t);

/* Of a follower that reads the packets itself: what stood in them. `packets` and `ahead` are not used. */
void times_tsc(struct flow_times *t, uint64_t payload);

/* False: it is damage, there is no TSC packet that it belongs to. */
bool times_tma(struct flow_times *t, uint16_t ctc, uint16_t fc);
void times_mtc(struct flow_times *t, uint8_t ctc);
void times_cbr(struct flow_times *t, uint8_t ratio);

/* As if MTC packets had led to that count of the crystal, and CYC packets to so many cycles since. */
void times_reach(struct flow_times *t, uint64_t ctc, uint8_t last_mtc, uint64_t cycles);

/* Finds the next absolute time at or behind `ahead`, if it was not looked for yet: cycles cannot pass it, and
 * tell their length by it. Before the next absolute time it makes no difference where it is called. False: as
 * times_settle(). */
bool times_bound(struct flow_times *t, const uint8_t *ahead, const uint8_t *end);

/* tsc of cycles that were added up since `from`. False: what follows at `ahead` cannot be read, or cannot be.
 */
bool times_settle(struct flow_times *t, const uint8_t *ahead, const uint8_t *end);

/* Goes on with what such a follower knew in front of `offset`. False: there is no packet. */
bool times_resume(struct flow_times *t, const struct flow_times *known, uint64_t offset);

/* The time of the packet at `offset`. Offsets may only grow from call to call. */
void times_at(struct flow_times *t, uint64_t offset, struct packet_time *time);

/* The time of the first packet at or behind `offset` that tells where execution went (TIP, TIP.PGE, TIP.PGD).
 */
void times_at_tip(struct flow_times *t, uint64_t offset, struct packet_time *time);

/* The time that the PSB at `offset` and the state behind it, up to PSBEND, tell. */
void times_at_psb(struct flow_times *t, uint64_t offset, struct packet_time *time);

#endif
