/* Samples -> calls. */
#include "decoder/model/samples/samples.h"
#include "base/bisect.h"
#include "decoder/model/samples/clock.h"

#include "tracedb/tracedb.h"

#include <stdlib.h>

enum {
    WAY_IN = 8000,  /* ns */
    CALL_FRAMES = 3 /* entry_SYSCALL_64_after_hwframe, do_syscall_64, __x64_sys_read */
};

struct open_call {
    struct dec_sample_frame frame;

    size_t row;

    uint64_t cpu_start, cpu_children;
};

struct builder {
    const struct dec_samples *in;

    const struct dec_samples_segment *segment;

    dec_calls *calls;

    struct dec_run_clock clock;

    ST_VEC(struct open_call) open;

    ST_VEC(size_t) on, off; /* the chains that were taken on a CPU; those at a switch */

    ST_VEC(struct open_call) waited; /* what was open in the last wait */

    const struct dec_chain *slept; /* the chain of that wait; NULL: not known */

    const struct dec_measured *within; /* the system call that goes on after a wait; NULL: none */

    struct dec_chain held; /* what it is in until then */

    uint64_t woke; /* when that wait ended; 0: there was none */
};

/* ------------------------------------------------------------------ */
/* Open calls                                                           */

static void close_top(struct builder *b, uint64_t time, uint32_t flags)
{
    struct open_call *top = &b->open.at[b->open.n - 1];
    struct tdb_span *call = &b->calls->at[top->row];
    uint64_t cpu = dec_run_clock_at(&b->clock, time) - top->cpu_start;

    call->duration = time - call->start;
    call->self = cpu > top->cpu_children ? cpu - top->cpu_children : 0;
    call->flags |= flags;
    b->open.n--;
    if (b->open.n)
        b->open.at[b->open.n - 1].cpu_children += cpu;
}

static void close_to(struct builder *b, uint64_t time, size_t n)
{
    while (b->open.n > n)
        close_top(b, time, 0);
}

static int open_one(struct builder *b, uint64_t time, const struct dec_sample_frame *frame, uint32_t flags)
{
    struct open_call o = {
        .frame = *frame, .row = b->calls->n, .cpu_start = dec_run_clock_at(&b->clock, time)};
    struct tdb_span call = {.start = time,
                            .symbol = frame->symbol,
                            .depth = (uint32_t)b->open.n,
                            .flags = flags | TDB_CALL_SAMPLED};

    for (size_t i = 0; i < b->open.n; i++)
        if (b->open.at[i].frame.symbol == frame->symbol)
            call.flags |= TDB_CALL_RECURSIVE;
    if (b->open.n)
        call.parent = (uint32_t)b->open.at[b->open.n - 1].row + 1;
    return st_vec_push(b->calls, call) || st_vec_push(&b->open, o) ? -1 : 0;
}

/* How many frames of the chain are the calls that are open. */
static size_t kept_by(const struct builder *b, const struct dec_sample_frame *frames, size_t n)
{
    size_t k = 0;

    while (k < n && k < b->open.n && frames[k].symbol == b->open.at[k].frame.symbol &&
           (!k || dec_same_site(&frames[k - 1], &b->open.at[k - 1].frame)))
        k++;
    return k;
}

/* From `time` on the thread is where the chain says. */
static int set_chain(struct builder *b, uint64_t time, const struct dec_chain *chain, uint32_t flags)
{
    const struct dec_sample_frame *frames = b->in->frames + chain->first;
    size_t kept = kept_by(b, frames, chain->n);
    int rc = 0;

    close_to(b, time, kept);
    for (size_t k = 0; k < kept; k++)
        b->open.at[k].frame.site = frames[k].site;
    for (size_t k = kept; k < chain->n && !rc; k++)
        rc = open_one(b, time, &frames[k], flags);
    return rc;
}

/* ------------------------------------------------------------------ */
/* A segment                                                            */

static int sort_out(struct builder *b)
{
    const struct dec_samples_segment *s = b->segment;

    for (size_t i = s->first; i < s->first + s->n; i++)
        if (b->in->chains[i].off && b->in->noffcpu ? st_vec_push(&b->off, i) : st_vec_push(&b->on, i))
            return -1;
    /* A thread that was never met on a CPU. */
    for (size_t i = 0; !b->on.n && i < b->off.n; i++)
        if (st_vec_push(&b->on, b->off.at[i]))
            return -1;
    return 0;
}

static size_t shared(const struct builder *b, const struct dec_chain *x, const struct dec_chain *y)
{
    const struct dec_sample_frame *f = b->in->frames + x->first, *g = b->in->frames + y->first;
    size_t k = 0;

    while (k < x->n && k < y->n && f[k].symbol == g[k].symbol && (!k || dec_same_site(&f[k - 1], &g[k - 1])))
        k++;
    return k;
}

/* How many of these chains were taken up to `time`. */
static size_t taken_until(const struct builder *b, const size_t *chains, size_t n, uint64_t time)
{
    return st_bisect(i, n, b->in->chains[chains[i]].time <= time);
}

/* The first of the chains at a switch that was taken behind `time`. */
static size_t off_behind(const struct builder *b, uint64_t time)
{
    return taken_until(b, b->off.at, b->off.n, time);
}

/* When the thread left its CPU, of a chain that was taken there. */
static uint64_t left_at(const struct builder *b, const struct dec_chain *c)
{
    size_t interval = dec_run_clock_interval(&b->clock, c->time);

    return interval < b->in->noffcpu ? b->in->offcpu[interval].start : c->time;
}

/* When the thread went over from one on-CPU chain to the next: halfway between them on its clock, but behind
 * the last switch whose chain is more like the former, and before the first whose chain is more like the
 * latter; and if it switched between them with a chain that is like neither, at the nearest such switch. */
static uint64_t turn_between(const struct builder *b, const struct dec_chain *x, const struct dec_chain *y)
{
    uint64_t from = x->time, to = y->time, half, best = UINT64_MAX, turn;
    size_t first = off_behind(b, x->time), end = off_behind(b, y->time);

    for (size_t i = first; i < end; i++) {
        const struct dec_chain *c = &b->in->chains[b->off.at[i]];
        size_t likes_x = shared(b, c, x), likes_y = shared(b, c, y);

        if (likes_y > likes_x) {
            to = c->time;
            end = i;
        } else if (likes_x > likes_y) {
            from = left_at(b, c);
            first = i + 1;
        }
    }
    from = dec_run_clock_at(&b->clock, from);
    to = dec_run_clock_at(&b->clock, to);
    half = to > from ? from + (to - from) / 2 : from;
    turn = dec_run_clock_moment(&b->clock, half);
    for (size_t i = first; i < end; i++) {
        uint64_t time = left_at(b, &b->in->chains[b->off.at[i]]), cpu = dec_run_clock_at(&b->clock, time);
        uint64_t away = cpu < half ? half - cpu : cpu - half;

        if (away < best) {
            best = away;
            turn = time;
        }
    }
    return turn;
}

/* The measured system call that an on-CPU chain was taken in. */
static const struct dec_measured *call_of(const struct builder *b, const struct dec_chain *x)
{
    if (!b->in->measured || x->off || x->n <= x->outer)
        return NULL;
    return dec_measured_at(b->in->measured, b->in->tid, x->time);
}

/* A chain of a measured system call holds from its begin to its end; before and after it the outer frames. */
static void cut_to_call(const struct builder *b, uint64_t time, struct dec_chain *x)
{
    const struct dec_measured *call = call_of(b, x);

    if (call && (time < call->span.start || time >= call->span.end))
        x->n = x->outer;
}

/* When on-CPU chain i + 1 takes the place of chain i: where a measured system call begins or ends in between,
 * then. */
static uint64_t turn_of(const struct builder *b, size_t i)
{
    const struct dec_chain *x, *y;
    const struct dec_measured *call;
    uint64_t turn;

    if (i + 1 >= b->on.n)
        return UINT64_MAX;
    x = &b->in->chains[b->on.at[i]];
    y = &b->in->chains[b->on.at[i + 1]];
    call = call_of(b, y);
    if (call && call->span.start > x->time)
        return call->span.start;
    call = call_of(b, x);
    if (call && call->span.end < y->time)
        return call->span.end;
    turn = turn_between(b, x, y);
    call = b->in->measured ? dec_measured_at(b->in->measured, b->in->tid, turn) : NULL;
    return call && call->span.start > x->time ? call->span.start : turn;
}

/* The chain that was taken as the interval began: the sample comes a moment before the switch's record. */
static const struct dec_chain *chain_at_switch(const struct builder *b, size_t interval, size_t *next)
{
    const struct dec_offcpu *o = b->in->offcpu;
    const struct dec_chain *found = NULL;

    for (; *next < b->off.n; ++*next) {
        const struct dec_chain *c = &b->in->chains[b->off.at[*next]];

        if (c->time > o[interval].start)
            break;
        if (!interval || c->time >= o[interval - 1].end)
            found = c;
    }
    return found;
}

/* The way into the scheduler takes a moment; no more than a part of the time since `since` is given to it. */
static uint64_t begin_of(const struct builder *b, size_t interval, uint64_t since)
{
    uint64_t start = b->in->offcpu[interval].start;
    uint64_t part = start > since ? (start - since) / 2 : 0;

    if (start <= since)
        return since;
    return start - (part < WAY_IN ? part : WAY_IN);
}

/* Where a segment's run is. */
struct place {
    size_t interval; /* the next one off the CPU */

    size_t on; /* the on-CPU chain that holds */

    size_t off; /* the next chain at a switch */

    uint64_t turn; /* when the next on-CPU chain takes its place */

    uint64_t since; /* the last change */
};

static void next_chain(const struct builder *b, struct place *p)
{
    p->turn = turn_of(b, ++p->on);
}

/* How many frames a chain has in common with on-CPU chain `on`; of one that there is not, none. */
static size_t shared_with(const struct builder *b, const struct dec_chain *c, size_t on)
{
    return on < b->on.n ? shared(b, c, &b->in->chains[b->on.at[on]]) : 0;
}

/* How many frames of on-CPU chain `on` hold in the stretch between two switches that begins at `time`. Those
 * that a switch between the stretch and the sample showed gone are left out, if that switch says more of this
 * chain than of its neighbour (the first and the last have none on one side); else nobody knows, and all
 * stand for what the thread did. */
static uint32_t frames_at(const struct builder *b, size_t on, uint64_t time)
{
    const struct dec_chain *x = &b->in->chains[b->on.at[on]];
    size_t i = off_behind(b, time), other, likes;
    bool behind = x->time < time;
    const struct dec_chain *c;

    if (behind ? !i : i >= b->off.n)
        return x->n;
    c = &b->in->chains[b->off.at[behind ? i - 1 : i]];
    if (behind ? c->time < x->time : c->time > x->time)
        return x->n;
    likes = shared(b, c, x);
    other = shared_with(b, c, behind ? on + 1 : on - 1);
    return likes > other ? (uint32_t)likes : x->n;
}

/* Whether on-CPU chain `on` was taken between the interval and the one before it. */
static bool taken_before(const struct builder *b, size_t on, size_t interval)
{
    const struct dec_offcpu *o = &b->in->offcpu[interval];
    uint64_t time = on < b->on.n ? b->in->chains[b->on.at[on]].time : 0;

    return time >= o[-1].end && time <= o->start;
}

/* The thread was preempted, came back, and left its CPU again before a sample was taken. What it was in both
 * times it was in between: `chain` becomes that, if it tells less. */
static void hold(const struct builder *b, const struct place *p, uint64_t time, struct dec_chain *chain)
{
    const struct dec_offcpu *o = b->in->offcpu;
    size_t i = off_behind(b, time), k, users;
    const struct dec_chain *before, *behind;

    if (!p->interval || p->interval >= b->in->noffcpu || !o[p->interval - 1].preempted || !i ||
        i >= b->off.n || taken_before(b, p->on, p->interval) || taken_before(b, p->on + 1, p->interval))
        return;
    before = &b->in->chains[b->off.at[i - 1]];
    behind = &b->in->chains[b->off.at[i]];
    if (behind->time > o[p->interval].start || before->time > o[p->interval - 1].start)
        return;
    k = shared(b, before, behind);
    users = dec_chain_users(b->in->frames, before);
    k = k < users ? k : users;
    if (k <= shared(b, chain, before))
        return;
    *chain = *before;
    chain->n = (uint32_t)k;
}

static int set_on(struct builder *b, const struct place *p, uint64_t time)
{
    struct dec_chain chain = b->in->chains[b->on.at[p->on]];

    chain.n = frames_at(b, p->on, time);
    if (chain.off && chain.n > chain.outer)
        chain.n = chain.outer; /* it waits there, and now it runs */
    hold(b, p, time, &chain);
    cut_to_call(b, time, &chain);
    return set_chain(b, time, &chain, 0);
}

static int run_turn(struct builder *b, struct place *p)
{
    const struct dec_chain *on;

    p->since = p->turn < p->since ? p->since : p->turn;
    next_chain(b, p);
    on = &b->in->chains[b->on.at[p->on]];
    if (b->within && (on->off || shared(b, on, &b->held) < b->held.n))
        return 0; /* that was before it or will be after */
    return set_on(b, p, p->since);
}

/* The last chain of these that was taken since the last wait, and before `time`; NULL: there is none. */
static const struct dec_chain *last_since(const struct builder *b, const size_t *chains, size_t n,
                                          uint64_t time)
{
    uint64_t since = b->woke > b->segment->start ? b->woke : b->segment->start;
    size_t i = time ? taken_until(b, chains, n, time - 1) : 0;

    return i && b->in->chains[chains[i - 1]].time >= since ? &b->in->chains[chains[i - 1]] : NULL;
}

/* What the thread was seen in last before it waits: by a sample, or where it was preempted. */
static const struct dec_chain *seen_before(const struct builder *b, uint64_t start,
                                           const struct dec_chain *at)
{
    uint64_t time = at ? at->time : start;
    const struct dec_chain *x = last_since(b, b->on.at, b->on.n, time);
    const struct dec_chain *y = last_since(b, b->off.at, b->off.n, time);

    if (x && x->off)
        x = NULL;
    return x && y ? (x->time > y->time ? x : y) : x ? x : y;
}

static bool is_within(const struct builder *b, const struct dec_chain *x, const struct dec_chain *at)
{
    return at ? shared(b, x, at) > at->outer : x->n > x->outer;
}

/* What was open in the last wait and is so again may have ended in between or not, unless the thread was met
 * elsewhere: one call of both waits may be several, two may be one. */
static void mark_bounds(struct builder *b, const struct dec_chain *seen, const struct dec_chain *at)
{
    bool both = at && b->slept;
    size_t same = both ? shared(b, b->slept, at) : SIZE_MAX;
    size_t met = seen && at ? shared(b, seen, at) : SIZE_MAX;

    for (size_t k = 0; k < b->waited.n && k < b->open.n && k < same && k < met; k++) {
        const struct open_call *x = &b->waited.at[k], *y = &b->open.at[k];

        if (x->row == y->row && k) {
            b->calls->at[y->row].flags |= TDB_CALL_SEVERAL;
        } else if (x->row != y->row && both) {
            b->calls->at[x->row].flags |= TDB_CALL_PART;
            b->calls->at[y->row].flags |= TDB_CALL_PART;
        }
    }
}

/* The thread waits: in what it was met at the switch, or in what it was before it entered the kernel. */
static int begin_wait(struct builder *b, const struct place *p, const struct dec_chain *at, size_t *outer)
{
    const struct dec_chain *on = &b->in->chains[b->on.at[p->on]];
    uint64_t start = b->in->offcpu[p->interval].start;
    uint64_t begin = at ? begin_of(b, p->interval, p->since) : start > p->since ? start : p->since;
    const struct dec_chain *seen;

    *outer = at ? at->outer : on->outer;
    seen = seen_before(b, start, at);
    if (!seen || !is_within(b, seen, at))
        close_to(b, begin, *outer);
    if (at && set_chain(b, begin, at, 0))
        return -1;
    mark_bounds(b, seen, at);
    return 0;
}

static int end_wait(struct builder *b, uint64_t time, const struct dec_chain *at, size_t outer)
{
    b->waited.n = 0;
    for (size_t k = 0; k < b->open.n; k++)
        if (st_vec_push(&b->waited, b->open.at[k]))
            return -1;
    close_to(b, time, outer);
    b->slept = at;
    b->woke = time;
    return 0;
}

/* The measured system call that the interval's wait is in, if where it waits is known. */
static const struct dec_measured *measured_at(const struct builder *b, const struct dec_offcpu *o,
                                              const struct dec_chain *at)
{
    if (!b->in->measured || !at || at->outer >= at->n)
        return NULL;
    return dec_measured_at(b->in->measured, b->in->tid, o->start);
}

/* The system call goes on: entry, dispatch and the call itself are what stays of the chain. */
static void hold_call(struct builder *b, const struct dec_chain *at)
{
    size_t n = dec_chain_users(b->in->frames, at) + CALL_FRAMES;

    b->held = *at;
    if (n < at->n)
        b->held.n = (uint32_t)n;
}

/* A wait in a measured system call is a part of it, as are those before and after. */
static int wait_within(struct builder *b, struct place *p, const struct dec_chain *at,
                       const struct dec_measured *call)
{
    struct dec_offcpu *o = &b->in->offcpu[p->interval];
    uint64_t begin = call->span.start > p->since ? call->span.start : p->since;

    if (b->within != call) {
        hold_call(b, at);
        if (p->since < call->span.start) /* else a sample of it has its frames open */
            close_to(b, begin, at->outer);
        if (begin < o->start && set_chain(b, begin, &b->held, 0))
            return -1;
        mark_bounds(b, NULL, NULL);
        p->since = begin;
    }
    if (set_chain(b, begin_of(b, p->interval, p->since), at, 0))
        return -1;
    o->call = b->open.n ? (uint32_t)b->open.at[b->open.n - 1].row + 1 : 0;
    b->within = call;
    p->since = o->end;
    p->interval++;
    while (p->turn <= o->end)
        next_chain(b, p);
    return o->end < b->segment->end ? set_chain(b, o->end, &b->held, 0) : 0;
}

/* The measured system call returns. */
static int end_within(struct builder *b, struct place *p)
{
    uint64_t time = b->within->span.end > p->since ? b->within->span.end : p->since;

    b->within = NULL;
    if (end_wait(b, time, NULL, b->held.outer))
        return -1;
    p->since = time;
    return set_on(b, p, time);
}

/* Whether the chain that is open is where the thread left its CPU, and not just near to it. */
static bool is_placed(const struct builder *b, const struct dec_offcpu *o, const struct dec_chain *at)
{
    return at || o->start < b->in->part_since;
}

static int run_interval(struct builder *b, struct place *p)
{
    struct dec_offcpu *o = &b->in->offcpu[p->interval];
    const struct dec_chain *at = chain_at_switch(b, p->interval, &p->off);
    const struct dec_measured *call = measured_at(b, o, at);
    size_t outer = 0;
    int rc = 0;

    if (!o->preempted && call)
        return wait_within(b, p, at, call);
    if (!o->preempted)
        rc = begin_wait(b, p, at, &outer);
    else if (at)
        rc = set_chain(b, begin_of(b, p->interval, p->since), at, 0);
    if (rc)
        return rc;
    o->call = b->open.n && is_placed(b, o, at) ? (uint32_t)b->open.at[b->open.n - 1].row + 1 : 0;
    p->since = o->end;
    p->interval++;
    if (o->end >= b->segment->end)
        return 0;
    if (!o->preempted && end_wait(b, o->end, at, outer))
        return -1;
    while (p->turn <= o->end)
        next_chain(b, p);
    return b->within ? set_chain(b, o->end, &b->held, 0) : set_on(b, p, o->end);
}

/* Turns and switches in the order of their times. */
static int run(struct builder *b)
{
    const struct dec_samples_segment *s = b->segment;
    struct place p = {
        .interval = dec_run_clock_interval(&b->clock, s->start), .turn = turn_of(b, 0), .since = s->start};
    struct dec_chain first;
    int rc;

    if (p.interval && b->in->offcpu[p.interval - 1].end > s->start)
        p.interval--; /* it was off its CPU as the segment began */
    first = b->in->chains[b->on.at[0]];
    first.n = frames_at(b, 0, s->start ? s->start - 1 : 0); /* a switch may be what it begins with */
    if (first.off && first.n > first.outer)
        first.n = first.outer;
    cut_to_call(b, s->start, &first);
    rc = set_chain(b, s->start, &first, s->born ? 0 : TDB_CALL_NO_CALL);
    while (!rc) {
        uint64_t off = p.interval < b->in->noffcpu ? b->in->offcpu[p.interval].start : UINT64_MAX;

        uint64_t until = b->within ? b->within->span.end : UINT64_MAX;

        if (off >= s->end)
            off = UINT64_MAX;
        if (until >= s->end)
            until = UINT64_MAX;
        if (p.turn == UINT64_MAX && off == UINT64_MAX && until == UINT64_MAX)
            break;
        rc = until <= p.turn && until <= off ? end_within(b, &p)
             : p.turn < off                  ? run_turn(b, &p)
                                             : run_interval(b, &p);
    }
    return rc;
}

int dec_samples_calls(const struct dec_samples *in, const struct dec_samples_segment *segment,
                      dec_calls *calls)
{
    struct builder b = {.in = in, .segment = segment, .calls = calls};
    int rc = dec_run_clock_set(&b.clock, in->offcpu, in->noffcpu);

    if (!rc)
        rc = sort_out(&b);
    if (!rc)
        rc = run(&b);
    while (b.open.n)
        close_top(&b, segment->end, segment->ended ? 0 : TDB_CALL_NO_RETURN);
    st_vec_free(&b.open);
    st_vec_free(&b.waited);
    st_vec_free(&b.on);
    st_vec_free(&b.off);
    dec_run_clock_free(&b.clock);
    return rc;
}
