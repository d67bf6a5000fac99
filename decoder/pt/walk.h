/* The walk along the code under the guidance of the trace; what walk*.c and fast*.c share. libipt's query
 * decoder reads the packets. */
#ifndef ST_DECODER_PT_WALK_H
#define ST_DECODER_PT_WALK_H

#include "decoder/pt/code.h"
#include "decoder/pt/out.h"
#include "decoder/pt/times.h"

#include <intel-pt.h>

enum {
    WALK_RETURNS =
        64 /* depth of the return stack: SDM, Intel PT, "Indirect Transfer Compression for Returns" */
};

/* What the functions of the walk return, besides 0 (go on) and negative st_codes. */
enum walk_result {
    WALK_END = 1,  /* no trace left */
    WALK_LOST = 2, /* a gap was reported; the place is known again after the next packet with an address */
    WALK_SYNC = 3, /* a gap was reported; only the next PSB helps */
    WALK_STOP = 4, /* `where` or `emit` wants to stop: out->rc has their word */
    WALK_PSB = 5,  /* at a PSB+ behind `until`, whose state is the walk's */
};

/* Code that could not be walked: returns may lead back to calls in it. */
struct walk_missing {
    enum dec_gap reason; /* 0: none */

    const struct dec_image *image; /* may be NULL */

    uint64_t behind_psb; /* as in struct flow_times: the return stack begins anew at a PSB */

    bool lasts; /* execution is there until the place is known again */
};

struct walk {
    const struct dec_flow_options *options;

    struct pt_query_decoder *query;

    int status; /* enum pt_status_flag bits of the last query */

    uint64_t counted; /* bytes, for the progress of the reference */

    bool held; /* `event` was fetched and waits for the walk to come to its place */

    struct pt_event event;

    bool enabled; /* tracing is on, ip is where */

    bool begin; /* a stretch begins at ip: DEC_ENABLE was sent and nothing after it */

    uint64_t ip;

    enum code_mode mode;

    bool mode_known;

    bool in_tx, aborted;

    bool bdm64, bdm70, skd007, skd022, skl014; /* the CPU has that erratum, and it can matter (errata.h) */

    bool odd_overflows; /* or one about overflows: SKD007, SKD010, APL11, APL12 */

    bool event_trace; /* packets of Event Trace were taken out of the run */

    bool guests, guest, had_guest; /* PIP packets with NR=1 tell of guests; one runs, or may; one ran */

    unsigned modes; /* that packets told of so far, a bit each */

    bool mode_lost; /* an overflow may have lost a change of it */

    uint64_t leave; /* where the last DEC_DISABLE would have gone on; 0: unknown */

    uint64_t returns[WALK_RETURNS]; /* ring */

    unsigned top, depth;

    uint64_t loop_ip, loop_n, loop_most; /* Brent's search for a cycle of direct branches */

    struct flow_times times;

    uint64_t offset; /* of the packet that the next query consumes */

    struct packet_time
        tnt; /* of the TNT packet whose bits are being used: its time is that of the last bit */

    unsigned tnt_left; /* bits of it that are left */

    struct packet_time event_time; /* of the held event */

    uint64_t event_offset; /* and of the packet it was read at */

    uint64_t until; /* offset; UINT64_MAX: to the end */

    uint64_t now; /* the last point, perf ns */

    uint64_t serial; /* packet_time.serial of that point */

    struct dec_where where;

    bool asked;

    enum dec_gap gap_first; /* to be reported once it is known whose trace it is and when; 0: none */

    const struct dec_mapping *mapping; /* of the last instruction */

    struct walk_missing missing;

    struct code *code;

    struct flow_out *out;

    struct dec_flow_counts *counts;

    struct st_error *err;
};

/* Goes to the next PSB. 0 or a walk_result. */
int walk_sync(struct walk *w);

/* Walks from where the walk stands on (rc WALK_SYNC or WALK_LOST: from the next place that helps). WALK_PSB;
 * WALK_SYNC if `until` is not UINT64_MAX; else the end of the trace was reached: 0, or a negative st_code, or
 * what `where` or `emit` returned. */
int walk_run(struct walk *w, int rc);

/* Stands at a PSB+ whose state is the walk's already, as are the times `known` behind it. False: it cannot be
 * read. */
bool walk_resume(struct walk *w, uint64_t psb, const struct flow_times *known, uint64_t behind);

/* Tells what a branch did, and counts it. */
struct walk_branch {
    const struct code_run *run;

    uint64_t next; /* address behind it */

    uint64_t target; /* of a direct one */

    uint64_t to; /* where it went; 0: unknown */

    bool taken;

    bool direct;
};
void walk_send(struct walk *w, const struct walk_branch *b);

/* What is behind a call goes to the return stack. */
void walk_push(struct walk *w, uint64_t ip);

/* walk_leave.c: */

/* Whether the held event says that tracing went off with this branch, or may have. */
bool walk_leaves(const struct walk *w, const struct walk_branch *b);

/* Tracing went off with that branch; or a gap, where it is not known whether it was this one. 0 or a
 * walk_result. */
int walk_leave(struct walk *w, struct walk_branch *b);

/* At a NOP of the file which an optimised uprobe may have made a call to [uprobes-trampoline]: true if what
 * the trace tells next may be that one's system call. A gap was reported then, *rc is 0 or a walk_result. */
bool walk_probe(struct walk *w, int *rc);

/* walk_events.c: */

/* Fetches the next event if one is pending and none is held. 0 or a walk_result. */
int walk_fetch(struct walk *w);

/* The instruction that the held event is tied to; false: none. */
bool walk_place(const struct walk *w, uint64_t *ip);

/* Takes the next event if it is of that type: those that belong to the instruction at ip itself. 0 or a
 * walk_result. */
int walk_take_bound(struct walk *w, enum pt_event_type type);

/* Takes what is bound to ip (or, with tracing off, to nothing). 0 or a walk_result. */
int walk_events(struct walk *w);

/* A guest runs from here on: its code is not known. Reports a gap; a walk_result. */
int walk_guest(struct walk *w);

/* Skips to the next packet that tells where execution is. 0: found, ip is set. */
int walk_skip(struct walk *w);

/* walk.c, for walk_events.c: */

/* To be called before a query of libipt, and after one that succeeded: tells when the packet was sent that it
 * took, if any. */
void walk_before_query(struct walk *w);
bool walk_after_query(struct walk *w, struct packet_time *time);

/* The trace gives the time of what happens next. */
void walk_time(struct walk *w, const struct packet_time *time);

int walk_ask(struct walk *w);
void walk_stretch(struct walk *w, uint64_t ip, uint16_t flags);
void walk_forget(struct walk *w);

/* walk_gaps.c: */

/* Reports a gap (unless it repeats the last) and returns `result`. */
int walk_gap(struct walk *w, int result, enum dec_gap reason, const struct dec_image *image, const char *fmt,
             ...) __attribute__((format(printf, 5, 6)));

/* A gap for what libipt said, a negative status. WALK_END for the end of the trace. */
int walk_refused(struct walk *w, int status);

/* The same, of a packet that libipt does not stand at. */
int walk_refused_at(struct walk *w, int status, uint64_t offset);

/* There are no bytes at ip, and `mapping` is what holds it: says why, and remembers it. */
int walk_no_code(struct walk *w);

/* What is missing, of a space (NULL: none is known) and the mapping of the address in it (NULL: none). */
struct walk_missing walk_missing_at(const struct dec_space *space, const struct dec_mapping *mapping);

/* The bytes at ip are no instruction; `mapping` holds the run before them. */
int walk_bad_code(struct walk *w);

/* Packets were lost. */
void walk_overflowed(struct walk *w);

/* A return for which the trace has no address, and its call was not seen. */
int walk_no_call(struct walk *w);

/* The same where the call is in the code that is missing. */
int walk_call_missing(struct walk *w);

#endif
