/* Events of the trace that are no branches of the code: tracing on and off, interrupts, overflows, modes. */
#include "base/progress.h"
#include "decoder/pt/walk.h"

#include <string.h>

/* When the event that was fetched happened. One that took no packet belongs to those of the one before it;
 * where several packets make an event (FUP, PIP, MODE.Exec, then TIP), a CYC packet may stand among them: the
 * last one's time counts. */
static void time_event(struct walk *w)
{
    uint64_t offset;
    if (w->event.status_update) {
        times_at(&w->times, w->offset, &w->event_time);
        return;
    }
    if (pt_qry_get_offset(w->query, &offset) < 0 || offset == w->offset)
        return;
    bool whole = w->event.type == ptev_enabled || w->event.type == ptev_async_disabled ||
                 w->event.type == ptev_async_branch || w->event.type == ptev_async_paging ||
                 w->event.type == ptev_exec_mode;
    if (whole)
        times_at_tip(&w->times, w->offset, &w->event_time);
    else
        times_at(&w->times, w->offset, &w->event_time);
}

int walk_fetch(struct walk *w)
{
    if (w->held || !(w->status & pts_event_pending))
        return 0;
    walk_before_query(w);
    int status = pt_qry_event(w->query, &w->event, sizeof(w->event));
    if (status < 0)
        return walk_refused(w, status);
    w->status = status;
    w->held = true;
    w->event_offset = w->offset;
    time_event(w);
    if (w->options->reference && w->offset > w->counted) {
        st_progress_add(w->offset - w->counted);
        w->counted = w->offset;
    }
    return 0;
}

/* The instruction that an event is tied to; false: none. */
static bool place_of(const struct pt_event *event, uint64_t *ip)
{
    if (event->ip_suppressed && event->type != ptev_async_disabled && event->type != ptev_async_branch)
        return false;
    switch (event->type) {
    case ptev_async_disabled:
        *ip = event->variant.async_disabled.at;
        return true;
    case ptev_async_branch:
        *ip = event->variant.async_branch.from;
        return true;
    case ptev_async_paging:
        *ip = event->variant.async_paging.ip;
        return true;
    case ptev_async_vmcs:
        *ip = event->variant.async_vmcs.ip;
        return true;
    case ptev_exec_mode:
        *ip = event->variant.exec_mode.ip;
        return true;
    case ptev_tsx:
        *ip = event->variant.tsx.ip;
        return true;
    case ptev_exstop:
        *ip = event->variant.exstop.ip;
        return true;
    case ptev_mwait:
        *ip = event->variant.mwait.ip;
        return true;
    default:
        return false;
    }
}

bool walk_place(const struct walk *w, uint64_t *ip)
{
    return w->held && place_of(&w->event, ip);
}

/* Whether the held event takes effect now. Those that are tied to the instruction at ip itself wait for the
 * walk over that instruction. */
static bool is_due(const struct walk *w)
{
    const struct pt_event *event = &w->event;
    uint64_t ip;
    switch (event->type) {
    case ptev_disabled:
        return event->status_update;
    case ptev_paging:
    case ptev_ptwrite:
        return !w->enabled;
    case ptev_async_disabled:
    case ptev_async_branch:
        return w->enabled && place_of(event, &ip) && ip == w->ip;
    case ptev_exstop:
    case ptev_mwait:
        return !w->enabled || !place_of(event, &ip) || ip == w->ip;
    default:
        return !place_of(event, &ip) || ip == w->ip;
    }
}

int walk_guest(struct walk *w)
{
    return walk_gap(w, WALK_LOST, DEC_GAP_NO_IMAGE, NULL,
                    "a virtual machine's guest runs: its code is not known");
}

/* Whether execution can be followed from a place that a packet told while it was not. In Linux code above 4
 * GiB is of 64 bits. */
static bool can_begin(struct walk *w, uint64_t ip)
{
    if (w->mode_lost && ip >> 32) {
        w->mode_lost = false;
        w->mode = CODE_64;
    }
    return !w->guest && !w->mode_lost;
}

/* Page tables are switched, and with them perhaps host and guest. `bound`: by the instruction at which the
 * walk stands, which is told first. Else the event has a place, at which execution is then. */
static int on_paging(struct walk *w, bool non_root, bool bound, uint64_t ip)
{
    bool before = w->guest;
    w->guest = non_root && w->guests;
    w->had_guest |= w->guest;
    if (w->guest == before || !w->enabled || bound || w->event.ip_suppressed)
        return 0;
    if (w->guest)
        return walk_guest(w);
    if (!can_begin(w, ip))
        return 0;
    int rc = walk_ask(w);
    walk_stretch(w, ip, 0);
    return rc;
}

static int on_enabled(struct walk *w)
{
    const struct pt_event *event = &w->event;
    if (event->status_update)
        return w->enabled ? 0 : walk_refused(w, -pte_bad_status_update);
    if (event->ip_suppressed)
        return walk_refused(w, -pte_noip);
    if (w->enabled)
        return walk_refused(w, -pte_bad_context);
    uint64_t ip = event->variant.enabled.ip;
    if (!can_begin(w, ip)) {
        w->enabled = true;
        return w->guest ? walk_guest(w) : WALK_LOST;
    }
    int rc = walk_ask(w);
    walk_stretch(w, ip, w->leave && w->leave == ip ? DEC_RESUMED : 0);
    return rc;
}

/* Erratum SKD022: a VM entry that ends tracing has a FUP as if an interrupt had come before it. */
static void leave_by_vm_entry(struct walk *w)
{
    const struct code_run run = {.end = CODE_FAR_RETURN, .length = 3};
    struct walk_branch b = {.run = &run, .next = w->ip + run.length, .taken = true};
    out_ran(w->out, 1);
    walk_send(w, &b);
    out_event(w->out, DEC_DISABLE, 0, w->ip, 0, 0);
    w->leave = 0;
    w->enabled = false;
}

static int on_async_disabled(struct walk *w)
{
    w->begin = false;
    if (w->skd022 && w->where.space && code_is_vm_entry(w->where.space, w->now, w->ip)) {
        leave_by_vm_entry(w);
        return 0;
    }
    out_event(w->out, DEC_DISABLE, DEC_ASYNC_DISABLE | (w->in_tx ? DEC_IN_TX : 0), w->ip, 0, 0);
    w->leave = w->ip;
    w->enabled = false;
    return 0;
}

static int on_async_branch(struct walk *w)
{
    uint16_t flags = DEC_TAKEN | (w->in_tx ? DEC_IN_TX : 0) | (w->aborted ? DEC_TX_ABORT : 0);
    uint64_t to = w->event.variant.async_branch.to;
    if (w->event.ip_suppressed)
        return walk_refused(w, -pte_noip);
    w->begin = false;
    w->loop_n = 0;
    out_event(w->out, DEC_ASYNC, flags, w->ip, to, 0);
    bool kernel = (w->ip | to) >> 63;
    w->aborted = false;
    w->ip = to;
    return kernel ? walk_ask(w) : 0;
}

static int on_overflow(struct walk *w)
{
    walk_overflowed(w);
    walk_forget(w);
    if (w->event.ip_suppressed) {
        w->enabled = false;
        return 0;
    }
    w->guest |= w->had_guest; /* the PIP packet that would say who runs may have been lost */
    w->mode_lost |= w->modes & (w->modes - 1);
    if (!can_begin(w, w->event.variant.overflow.ip)) {
        w->enabled = true;
        return w->guest ? walk_guest(w) : WALK_LOST;
    }
    int rc = walk_ask(w);
    walk_stretch(w, w->event.variant.overflow.ip, 0);
    return rc;
}

static int on_exec_mode(struct walk *w)
{
    static const enum code_mode modes[] = {
        [ptem_unknown] = CODE_64, [ptem_16bit] = CODE_16, [ptem_32bit] = CODE_32, [ptem_64bit] = CODE_64};
    const struct pt_event *event = &w->event;
    unsigned mode = event->variant.exec_mode.mode;
    if (mode > ptem_64bit)
        return walk_refused(w, -pte_bad_packet);
    if (event->status_update && w->enabled && w->mode_known && !w->mode_lost && w->mode != modes[mode])
        return walk_refused(w, -pte_bad_status_update);
    bool lost = w->mode_lost;
    w->mode = modes[mode];
    w->mode_known = true;
    w->modes |= 1u << w->mode;
    w->mode_lost = false;
    if (!lost || !w->enabled || event->ip_suppressed || w->guest)
        return 0;
    int rc = walk_ask(w);
    walk_stretch(w, event->variant.exec_mode.ip, 0);
    return rc;
}

static int on_tsx(struct walk *w)
{
    w->in_tx = w->event.variant.tsx.speculative;
    w->aborted = w->event.variant.tsx.aborted;
    return 0;
}

static void on_ptwrite(struct walk *w)
{
    uint64_t ip = w->event.ip_suppressed ? w->ip : w->event.variant.ptwrite.ip;
    w->begin = false;
    out_event(w->out, DEC_PTWRITE, 0, ip, 0, w->event.variant.ptwrite.payload);
}

static void on_power(struct walk *w, enum dec_power what, uint32_t value, uint64_t ip)
{
    w->begin = false;
    out_event(w->out, DEC_POWER, 0, ip, 0, DEC_POWER_ARG(what, value));
}

static uint32_t entry_of(const struct pt_event *event)
{
    return (uint32_t)(event->variant.pwre.state << 4 | event->variant.pwre.sub_state) |
           (event->variant.pwre.hw ? 256u : 0);
}

static uint32_t exit_of(const struct pt_event *event)
{
    uint32_t wake = (event->variant.pwrx.interrupt ? DEC_WAKE_INTERRUPT : 0) |
                    (event->variant.pwrx.store ? DEC_WAKE_STORE : 0) |
                    (event->variant.pwrx.autonomous ? DEC_WAKE_HARDWARE : 0);
    return (uint32_t)event->variant.pwrx.last << 4 | (uint32_t)event->variant.pwrx.deepest << 12 | wake << 16;
}

static void take_power(struct walk *w)
{
    const struct pt_event *event = &w->event;
    bool known = !event->ip_suppressed;
    switch (event->type) {
    case ptev_mwait:
        on_power(w, DEC_POWER_MWAIT, event->variant.mwait.hints, known ? event->variant.mwait.ip : 0);
        break;
    case ptev_exstop: /* with an address it may have been a packet of Event Trace */
        if (!w->event_trace || !known)
            on_power(w, DEC_POWER_STOPPED, 0, known ? event->variant.exstop.ip : 0);
        break;
    case ptev_pwre:
        on_power(w, DEC_POWER_ENTRY, entry_of(event), 0);
        break;
    case ptev_pwrx:
        on_power(w, DEC_POWER_EXIT, exit_of(event), 0);
        break;
    default:
        break;
    }
}

/* Whether something happens with the held event at its time: not with one that has no place, nor with the
 * state that a PSB+ tells while tracing is off. */
static bool happens(const struct walk *w)
{
    switch (w->event.type) {
    case ptev_cbr:
    case ptev_vmcs:
    case ptev_async_vmcs:
        return false;
    default:
        return w->enabled || !w->event.status_update;
    }
}

/* Takes the held event. */
static int on_event(struct walk *w)
{
    w->held = false;
    if (happens(w))
        walk_time(w, &w->event_time);
    switch (w->event.type) {
    case ptev_enabled:
        return on_enabled(w);
    case ptev_disabled: /* only as a status update */
        return w->enabled ? walk_refused(w, -pte_bad_status_update) : 0;
    case ptev_async_disabled:
        return on_async_disabled(w);
    case ptev_async_branch:
        return on_async_branch(w);
    case ptev_overflow:
        return on_overflow(w);
    case ptev_exec_mode:
        return on_exec_mode(w);
    case ptev_tsx:
        return on_tsx(w);
    case ptev_ptwrite:
        on_ptwrite(w);
        return 0;
    case ptev_paging:
        return on_paging(w, w->event.variant.paging.non_root, true, 0);
    case ptev_async_paging:
        return on_paging(w, w->event.variant.async_paging.non_root, false, w->event.variant.async_paging.ip);
    default:
        take_power(w);
        return 0;
    }
}

int walk_take_bound(struct walk *w, enum pt_event_type type)
{
    int rc = walk_fetch(w);
    if (rc || !w->held || w->event.type != type)
        return rc;
    rc = on_event(w);
    return rc ? rc : walk_fetch(w);
}

int walk_events(struct walk *w)
{
    for (;;) {
        int rc = walk_fetch(w);
        if (rc || !w->held || !is_due(w))
            return rc;
        if (w->event.status_update && w->event.type != ptev_cbr && w->event_offset >= w->until)
            return WALK_PSB;
        rc = on_event(w);
        if (rc)
            return rc;
    }
}

enum {
    SEARCH = 100 /* the place is still unknown */
};

/* An event while the place is unknown. SEARCH; 0: it is known again; else a walk_result. */
static int lost_event(struct walk *w)
{
    bool before = w->enabled;
    switch (w->event.type) {
    case ptev_disabled:
    case ptev_async_disabled:
        w->held = false;
        w->enabled = w->event.status_update && before;
        w->leave = 0;
        return SEARCH;
    case ptev_async_branch:
        w->held = false;
        if (w->event.ip_suppressed || !can_begin(w, w->event.variant.async_branch.to))
            return SEARCH; /* whether it left the guest or changed the mode comes behind it */
        walk_stretch(w, w->event.variant.async_branch.to, 0);
        return 0;
    default:
        break;
    }
    int rc = on_event(w);
    if (rc == WALK_LOST && (w->guest || w->mode_lost))
        return SEARCH;
    return rc ? rc : w->begin ? 0 : SEARCH;
}

/* The next address in a TIP, past conditional branches: their bits would be taken for what follows the TIP.
 * As lost_event. */
static int lost_query(struct walk *w)
{
    uint64_t ip;
    int taken;
    int status = pt_qry_cond_branch(w->query, &taken);
    w->tnt_left = 0;
    if (status >= 0) {
        w->status = status;
        return SEARCH;
    }
    if (status != -pte_bad_query)
        return walk_refused(w, status);
    walk_before_query(w);
    status = pt_qry_indirect_branch(w->query, &ip);
    if (status < 0)
        return walk_refused(w, status);
    w->status = status;
    if (status & pts_ip_suppressed || !can_begin(w, ip))
        return SEARCH;
    if (walk_after_query(w, &w->event_time))
        walk_time(w, &w->event_time);
    walk_stretch(w, ip, 0);
    return 0;
}

static int skip_one(struct walk *w)
{
    int rc = walk_fetch(w);
    if (rc)
        return rc;
    if (w->held)
        return lost_event(w);
    if (w->enabled)
        return lost_query(w);
    return w->status & pts_eos ? WALK_END : walk_refused(w, -pte_no_enable);
}

int walk_skip(struct walk *w)
{
    int rc;
    walk_forget(w);
    w->begin = false;
    do
        rc = skip_one(w);
    while (rc == SEARCH);
    if (rc == 0 && w->missing.lasts)
        w->missing.behind_psb = w->times.behind_psb;
    w->missing.lasts = false;
    if (rc == WALK_LOST) /* libipt stands where it cannot go on: it would say the same again */
        return WALK_SYNC;
    return rc ? rc : walk_ask(w);
}
