/* Along the code: runs of instructions, and the branches that the trace decides. */
#include "decoder/pt/walk.h"

#include <string.h>

/* libipt reads ahead to the next packet that matters and stops in front of it: that is the one the query will
 * take, unless bits of the last TNT packet are left. */
void walk_before_query(struct walk *w)
{
    if (pt_qry_get_offset(w->query, &w->offset) < 0)
        w->offset = 0;
}

bool walk_after_query(struct walk *w, struct packet_time *time)
{
    uint64_t offset;
    if (pt_qry_get_offset(w->query, &offset) < 0 || offset == w->offset)
        return false;
    times_at(&w->times, w->offset, time);
    return true;
}

void walk_time(struct walk *w, const struct packet_time *time)
{
    if (!time->known || time->serial == w->serial)
        return;
    w->serial = time->serial;
    uint64_t ns = dec_clock_ns(&w->options->config.clock, time->tsc);
    if (ns > w->now || !w->out->timed)
        w->now = ns;
    out_point(w->out, ns, time->exact, (uint32_t)time->counted);
}

int walk_ask(struct walk *w)
{
    if (w->asked && w->now < w->where.until)
        return 0;
    int rc = w->options->where(w->options->where_ctx, w->options->ring, w->now, &w->where);
    w->asked = true;
    w->mapping = NULL;
    if (rc) {
        w->out->rc = rc;
        return WALK_STOP;
    }
    out_who(w->out, &w->where);
    return 0;
}

/* Nothing that was learnt from the trace before holds any more. */
void walk_forget(struct walk *w)
{
    w->depth = 0;
    w->in_tx = false;
    w->aborted = false;
    w->leave = 0;
    w->loop_n = 0;
}

void walk_stretch(struct walk *w, uint64_t ip, uint16_t flags)
{
    w->enabled = true;
    w->ip = ip;
    w->begin = true;
    w->loop_n = 0;
    out_event(w->out, DEC_ENABLE, flags, 0, ip, 0);
}

/* The mapping that holds ip now, kept from one instruction to the next. */
static bool find_mapping(struct walk *w)
{
    const struct dec_mapping *mapping = w->mapping;
    if (mapping && w->ip >= mapping->start && w->ip < mapping->end && w->now < mapping->until)
        return true;
    w->mapping = w->where.space ? dec_space_find(w->where.space, w->now, w->ip) : NULL;
    return w->mapping != NULL;
}

static int find_run(struct walk *w, struct code_run *run)
{
    if (!find_mapping(w))
        return walk_no_code(w);
    int rc = code_at(w->code, w->where.space, w->now, w->mapping, w->ip, w->mode, run);
    if (rc == CODE_NO_BYTES)
        return walk_no_code(w);
    return rc ? st_nomem(w->err, "the code cache") : 0;
}

void walk_push(struct walk *w, uint64_t ip)
{
    w->top = (w->top + 1) % WALK_RETURNS;
    w->returns[w->top] = ip;
    if (w->depth < WALK_RETURNS)
        w->depth++;
}

static bool pop(struct walk *w, uint64_t *ip)
{
    if (w->depth == 0)
        return false;
    *ip = w->returns[w->top];
    w->top = (w->top + WALK_RETURNS - 1) % WALK_RETURNS;
    w->depth--;
    return true;
}

/* Direct branches that come back to the same place without using any trace would go round for ever: code and
 * trace do not fit. */
static bool is_endless(struct walk *w, uint64_t target)
{
    if (w->loop_n++ == 0) {
        w->loop_ip = target;
        w->loop_most = 1;
        return false;
    }
    if (target == w->loop_ip)
        return true;
    if (w->loop_n > w->loop_most) {
        w->loop_ip = target;
        w->loop_most *= 2;
        w->loop_n = 1;
    }
    return false;
}

static uint64_t mask(const struct walk *w, uint64_t ip)
{
    return w->mode == CODE_64 ? ip : w->mode == CODE_32 ? ip & 0xffffffffu : ip & 0xffffu;
}

static bool is_far(const struct code_run *run)
{
    return run->end == CODE_FAR_CALL || run->end == CODE_FAR_RETURN || run->end == CODE_FAR_JUMP;
}

/* A TIP packet. */
static int ask_tip(struct walk *w, struct walk_branch *b)
{
    struct packet_time time;
    walk_before_query(w);
    int status = pt_qry_indirect_branch(w->query, &b->to);
    if (status < 0)
        return walk_refused(w, status);
    w->status = status;
    if (status & pts_ip_suppressed)
        return walk_refused(w, -pte_noip);
    out_ran(w->out, 1);
    if (walk_after_query(w, &time))
        walk_time(w, &time);
    return 0;
}

/* A bit of a TNT packet. Returns what pt_qry_cond_branch does. */
static int ask_bit(struct walk *w, int *taken)
{
    walk_before_query(w);
    int status = pt_qry_cond_branch(w->query, taken);
    if (status < 0)
        return status;
    w->status = status;
    if (walk_after_query(w, &w->tnt))
        w->tnt_left = w->tnt.tnt_bits;
    return status;
}

/* The bit was good. A TNT packet is sent when it is full, so that its time is that of its last bit. */
static void use_bit(struct walk *w)
{
    out_ran(w->out, 1);
    if (w->tnt_left > 0 && --w->tnt_left == 0)
        walk_time(w, &w->tnt);
}

static int ask_tnt(struct walk *w, struct walk_branch *b)
{
    int taken;
    int status = ask_bit(w, &taken);
    if (status < 0)
        return walk_refused(w, status);
    use_bit(w);
    b->taken = taken;
    b->to = taken ? b->target : b->next;
    return 0;
}

/* A return has a bit when it goes where its call came from, else an address; it leaves the return stack
 * either way. */
static int decide_return(struct walk *w, struct walk_branch *b)
{
    int taken;
    uint64_t expected = 0;
    int status = ask_bit(w, &taken);
    if (status == -pte_bad_query) {
        pop(w, &expected);
        return ask_tip(w, b);
    }
    if (status < 0)
        return walk_refused(w, status);
    if (!taken)
        return walk_refused(w, -pte_bad_retcomp);
    if (!pop(w, &b->to))
        return walk_no_call(w);
    use_bit(w);
    return 0;
}

static int decide_direct(struct walk *w, struct walk_branch *b)
{
    out_ran(w->out, 1);
    b->to = b->target;
    return 0;
}

static int decide_call(struct walk *w, struct walk_branch *b)
{
    int rc = b->direct ? decide_direct(w, b) : ask_tip(w, b);
    if (rc == 0 && !(b->direct && b->run->displacement == 0))
        walk_push(w, b->next);
    return rc;
}

static int decide(struct walk *w, struct walk_branch *b)
{
    b->taken = true;
    switch (b->run->end) {
    case CODE_COND_JUMP:
        return ask_tnt(w, b);
    case CODE_JUMP:
        return b->direct ? decide_direct(w, b) : ask_tip(w, b);
    case CODE_CALL:
        return decide_call(w, b);
    case CODE_RETURN:
        return decide_return(w, b);
    default:
        return ask_tip(w, b);
    }
}

static void count_branch(struct dec_flow_counts *counts, const struct walk_branch *b)
{
    bool indirect = !b->direct && !is_far(b->run);
    static const size_t by_end[] = {[CODE_COND_JUMP] = offsetof(struct dec_flow_counts, cond_jump),
                                    [CODE_JUMP] = offsetof(struct dec_flow_counts, jump),
                                    [CODE_CALL] = offsetof(struct dec_flow_counts, call),
                                    [CODE_RETURN] = offsetof(struct dec_flow_counts, ret),
                                    [CODE_FAR_CALL] = offsetof(struct dec_flow_counts, far_call),
                                    [CODE_FAR_RETURN] = offsetof(struct dec_flow_counts, far_return),
                                    [CODE_FAR_JUMP] = offsetof(struct dec_flow_counts, far_jump)};
    ++*(uint64_t *)((char *)counts + by_end[b->run->end]);
    counts->indirect += indirect;
    counts->taken += b->taken && b->to != b->next;
}

void walk_send(struct walk *w, const struct walk_branch *b)
{
    static const uint16_t kinds[] = {
        [CODE_COND_JUMP] = DEC_COND_JUMP, [CODE_JUMP] = DEC_JUMP,         [CODE_CALL] = DEC_CALL,
        [CODE_RETURN] = DEC_RETURN,       [CODE_FAR_CALL] = DEC_FAR_CALL, [CODE_FAR_RETURN] = DEC_FAR_RETURN,
        [CODE_FAR_JUMP] = DEC_FAR_JUMP};
    uint16_t flags = b->taken ? DEC_TAKEN : 0;
    if (!b->direct && !is_far(b->run))
        flags |= DEC_INDIRECT;
    if (b->run->end == CODE_CALL && b->direct && b->run->displacement == 0)
        flags |= DEC_ZERO_CALL;
    if (w->in_tx)
        flags |= DEC_IN_TX;
    if (b->run->end == CODE_CALL || b->run->end == CODE_FAR_CALL)
        flags |= (uint16_t)((b->run->length & 15) << DEC_LENGTH_SHIFT);
    count_branch(w->counts, b);
    out_event(w->out, (enum dec_kind)kinds[b->run->end], flags, w->ip, b->to, 0);
}

/* A far transfer may switch the address space or the virtual machine, or both, in any order: those events
 * come before the packet with its target. */
static int take_paging(struct walk *w)
{
    int rc = walk_take_bound(w, ptev_vmcs);
    if (rc == 0)
        rc = walk_take_bound(w, ptev_paging);
    if (rc == 0)
        rc = walk_take_bound(w, ptev_vmcs);
    return rc;
}

/* Erratum BDM64: the packet of a branch directly before a transaction's abort may be wrong. If the place of
 * the abort cannot be reached from where the branch seems to lead, it led to that place. */
static int mend_abort(struct walk *w, struct walk_branch *b)
{
    struct code_run run;
    uint64_t place, from = w->ip;
    int rc = walk_fetch(w);
    if (rc || !walk_place(w, &place) || w->event.type != ptev_tsx || !w->event.variant.tsx.aborted ||
        place == b->to)
        return rc;
    w->ip = b->to;
    bool reached = false;
    if (find_mapping(w) && code_at(w->code, w->where.space, w->now, w->mapping, w->ip, w->mode, &run) == 0) {
        uint32_t count = run.count;
        reached =
            place > w->ip && code_reaches(w->code, w->where.space, w->now, w->ip, w->mode, place, &count);
    }
    w->ip = from;
    if (!reached)
        b->to = place;
    return 0;
}

static int walk_branch(struct walk *w, const struct code_run *run)
{
    struct walk_branch b = {.run = run, .direct = run->direct};
    int rc = is_far(run) ? take_paging(w) : 0;
    b.next = mask(w, w->ip + run->length);
    b.target = mask(w, b.next + (uint64_t)(int64_t)run->displacement);
    if (rc)
        return rc;
    if (walk_leaves(w, &b))
        return walk_leave(w, &b);
    if (b.direct && run->end != CODE_COND_JUMP) {
        if (is_endless(w, b.target))
            return w->status & pts_eos
                       ? WALK_END
                       : walk_gap(w, WALK_LOST, DEC_GAP_MISMATCH, NULL,
                                  "the code at 0x%llx goes round without end", (unsigned long long)w->ip);
    } else {
        w->loop_n = 0;
    }
    if (run->end == CODE_COND_JUMP && w->options->config.no_tnt)
        return walk_gap(w, WALK_LOST, DEC_GAP_LEFT_OUT, NULL,
                        "whether the jump at 0x%llx was taken was not recorded: the trace has no TNT packets",
                        (unsigned long long)w->ip);
    rc = decide(w, &b);
    if (rc == 0 && w->bdm64)
        rc = mend_abort(w, &b);
    if (rc)
        return rc;
    bool kernel = (w->ip | b.to) >> 63;
    if (w->guest) { /* it went to a place there */
        b.to = 0;
        walk_send(w, &b);
        return walk_guest(w);
    }
    walk_send(w, &b);
    w->ip = b.to;
    return kernel ? walk_ask(w) : 0;
}

/* What ends a run and is no branch. */
static int walk_other(struct walk *w, const struct code_run *run)
{
    int rc = 0;
    if (run->end == CODE_BAD)
        return walk_bad_code(w);
    if (run->end == CODE_PTWRITE)
        rc = walk_take_bound(w, ptev_ptwrite);
    else if (run->end == CODE_MOV_CR3)
        rc = take_paging(w);
    else if (run->end == CODE_PROBE && walk_probe(w, &rc))
        return rc;
    if (run->end != CODE_FALLS)
        out_ran(w->out, 1);
    w->ip = mask(w, w->ip + run->length);
    return rc;
}

/* From ip to behind the next branch, or to the place of the held event if that comes first. */
static int walk_step(struct walk *w)
{
    struct code_run run;
    uint64_t place;
    int rc = find_run(w, &run);
    if (rc)
        return rc;
    w->begin = false;
    if (walk_place(w, &place) && place > w->ip && place <= w->ip + run.bytes) {
        uint32_t count = run.count;
        if (code_reaches(w->code, w->where.space, w->now, w->ip, w->mode, place, &count)) {
            out_ran(w->out, count);
            w->ip = place;
            return 0;
        }
    }
    out_ran(w->out, run.count);
    w->ip = mask(w, w->ip + run.bytes);
    bool branch = run.end >= CODE_COND_JUMP && run.end <= CODE_FAR_JUMP;
    return branch ? walk_branch(w, &run) : walk_other(w, &run);
}

/* From one place to the next until the trace ends or the place is lost. */
static int walk_on(struct walk *w)
{
    for (;;) {
        int rc = walk_events(w);
        /* Behind the last packet nothing tells how far execution went. */
        if (rc == 0 && w->status & pts_eos && !w->held)
            rc = WALK_END;
        if (rc == 0 && !w->enabled)
            rc = walk_refused(w, -pte_no_enable);
        if (rc == 0)
            rc = walk_step(w);
        if (w->out->rc)
            return WALK_STOP;
        if (rc)
            return rc;
    }
}

int walk_sync(struct walk *w)
{
    uint64_t ip = 0;
    int status = pt_qry_sync_forward(w->query, &ip);
    w->held = false;
    w->mode_known = false;
    w->mode = w->options->config.bits == 32 ? CODE_32 : CODE_64;
    w->enabled = false;
    walk_forget(w);
    if (status < 0)
        return walk_refused(w, status);
    w->status = status;
    w->tnt_left = 0;
    if (pt_qry_get_sync_offset(w->query, &w->offset) == 0) {
        times_at_psb(&w->times, w->offset, &w->event_time);
        walk_time(w, &w->event_time);
    }
    int rc = walk_ask(w);
    if (w->gap_first) {
        bool exact = w->out->exact;
        out_gap(w->out, w->gap_first, NULL, "older trace was overwritten in the ring");
        w->out->exact = exact; /* the PSB+ has a time, and its place is that of then */
        w->gap_first = 0;
    }
    if (!(status & pts_ip_suppressed))
        walk_stretch(w, ip, 0);
    return rc;
}

bool walk_resume(struct walk *w, uint64_t psb, const struct flow_times *known, uint64_t behind)
{
    uint64_t ip;
    int status = pt_qry_sync_set(w->query, &ip, psb);
    if (status < 0 || !times_resume(&w->times, known, behind))
        return false;
    w->status = status;
    w->held = false;
    w->tnt_left = 0;
    w->offset = psb;
    return true;
}

int walk_run(struct walk *w, int rc)
{
    uint64_t last = UINT64_MAX, offset;
    if (rc == 0)
        rc = walk_on(w);
    while (rc == WALK_SYNC || rc == WALK_LOST) {
        if (rc == WALK_LOST) {
            rc = walk_skip(w);
        } else if (w->until != UINT64_MAX) {
            return rc;
        } else {
            rc = walk_sync(w);
            if (rc != WALK_END && pt_qry_get_sync_offset(w->query, &offset) == 0 && offset == last)
                break;
            last = offset;
        }
        if (rc == 0)
            rc = walk_on(w);
    }
    if (rc == WALK_PSB && !w->out->rc)
        return rc;
    out_flush(w->out);
    return w->out->rc ? w->out->rc : rc < 0 ? rc : 0;
}
