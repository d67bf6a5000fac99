/* Samples -> calls. */
#include "decoder/samples.h"

#include "tracedb/tracedb.h"

#include <stdlib.h>

enum { WAY_IN = 8000 /* ns */ };

struct open_call {
    struct dec_sample_frame frame;

    size_t row;

    uint64_t cpu_start, cpu_children;
};

struct builder {
    const struct dec_samples *in;

    const struct dec_samples_segment *segment;

    dec_calls *calls;

    uint64_t *off_before; /* for each interval: time off the CPU before it */

    ST_VEC(struct open_call) open;

    ST_VEC(size_t) on, off; /* the chains that were taken on a CPU; those at a switch */
};

/* ------------------------------------------------------------------ */
/* The thread's clock that stands still while it has no CPU             */

static int sum_offcpu(struct builder *b)
{
    uint64_t sum = 0;

    b->off_before = calloc(b->in->noffcpu + 1, sizeof(*b->off_before));
    if (!b->off_before)
        return -1;
    for (size_t i = 0; i < b->in->noffcpu; i++) {
        b->off_before[i] = sum;
        sum += b->in->offcpu[i].end - b->in->offcpu[i].start;
    }
    b->off_before[b->in->noffcpu] = sum;
    return 0;
}

/* Index of the first interval that begins at `time` or later. */
static size_t interval_at(const struct builder *b, uint64_t time)
{
    size_t low = 0, high = b->in->noffcpu;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (b->in->offcpu[mid].start < time)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint64_t cpu_at(const struct builder *b, uint64_t time)
{
    size_t i = interval_at(b, time);
    uint64_t off = b->off_before[i];

    if (i && b->in->offcpu[i - 1].end > time)
        off -= b->in->offcpu[i - 1].end - time;
    return time - off;
}

/* The first moment at which the thread's clock shows `cpu`. */
static uint64_t moment_of(const struct builder *b, uint64_t cpu)
{
    size_t low = 0, high = b->in->noffcpu;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (b->in->offcpu[mid].start - b->off_before[mid] < cpu)
            low = mid + 1;
        else
            high = mid;
    }
    return cpu + b->off_before[low];
}

/* ------------------------------------------------------------------ */
/* Open calls                                                           */

static void close_top(struct builder *b, uint64_t time, uint32_t flags)
{
    struct open_call *top = &b->open.at[b->open.n - 1];
    struct tdb_span *call = &b->calls->at[top->row];
    uint64_t cpu = cpu_at(b, time) - top->cpu_start;

    call->duration = time - call->start;
    call->self = cpu > top->cpu_children ? cpu - top->cpu_children : 0;
    call->flags |= flags;
    b->open.n--;
    if (b->open.n)
        b->open.at[b->open.n - 1].cpu_children += cpu;
}

static int open_one(struct builder *b, uint64_t time, const struct dec_sample_frame *frame, uint32_t flags)
{
    struct open_call o = {.frame = *frame, .row = b->calls->n, .cpu_start = cpu_at(b, time)};
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

static bool same_site(const struct dec_sample_frame *a, const struct dec_sample_frame *b)
{
    return a->site == b->site || !a->site || !b->site;
}

/* How many frames of the chain are the calls that are open. */
static size_t kept_by(const struct builder *b, const struct dec_sample_frame *frames, size_t n)
{
    size_t k = 0;

    while (k < n && k < b->open.n && frames[k].symbol == b->open.at[k].frame.symbol &&
           (!k || same_site(&frames[k - 1], &b->open.at[k - 1].frame)))
        k++;
    return k;
}

/* From `time` on the thread is where the chain says. */
static int set_chain(struct builder *b, uint64_t time, const struct dec_chain *chain, uint32_t flags)
{
    const struct dec_sample_frame *frames = b->in->frames + chain->first;
    size_t kept = kept_by(b, frames, chain->n);
    int rc = 0;

    while (b->open.n > kept)
        close_top(b, time, 0);
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

    while (k < x->n && k < y->n && f[k].symbol == g[k].symbol && (!k || same_site(&f[k - 1], &g[k - 1])))
        k++;
    return k;
}

/* The first of the chains at a switch that was taken behind `time`. */
static size_t off_behind(const struct builder *b, uint64_t time)
{
    size_t low = 0, high = b->off.n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (b->in->chains[b->off.at[mid]].time <= time)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* When the thread left its CPU, of a chain that was taken there. */
static uint64_t left_at(const struct builder *b, const struct dec_chain *c)
{
    size_t interval = interval_at(b, c->time);

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
    from = cpu_at(b, from);
    to = cpu_at(b, to);
    half = to > from ? from + (to - from) / 2 : from;
    turn = moment_of(b, half);
    for (size_t i = first; i < end; i++) {
        uint64_t time = left_at(b, &b->in->chains[b->off.at[i]]), cpu = cpu_at(b, time);
        uint64_t away = cpu < half ? half - cpu : cpu - half;

        if (away < best) {
            best = away;
            turn = time;
        }
    }
    return turn;
}

/* When on-CPU chain i + 1 takes the place of chain i. */
static uint64_t turn_of(const struct builder *b, size_t i)
{
    if (i + 1 >= b->on.n)
        return UINT64_MAX;
    return turn_between(b, &b->in->chains[b->on.at[i]], &b->in->chains[b->on.at[i + 1]]);
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

/* How many frames of on-CPU chain `on` hold in the stretch between two switches that begins at `time`. Those
 * that a switch between the stretch and the sample showed gone are left out, if that switch says more of this
 * chain than of its neighbour; else nobody knows, and all stand for what the thread did. */
static uint32_t frames_at(const struct builder *b, size_t on, uint64_t time)
{
    const struct dec_chain *x = &b->in->chains[b->on.at[on]];
    size_t i = off_behind(b, time), other, likes;
    bool behind = x->time < time;
    const struct dec_chain *c;

    if (behind ? !i || on + 1 >= b->on.n : i >= b->off.n || !on)
        return x->n;
    c = &b->in->chains[b->off.at[behind ? i - 1 : i]];
    if (behind ? c->time < x->time : c->time > x->time)
        return x->n;
    likes = shared(b, c, x);
    other = shared(b, c, &b->in->chains[b->on.at[behind ? on + 1 : on - 1]]);
    return likes > other ? (uint32_t)likes : x->n;
}

static size_t users_of(const struct builder *b, const struct dec_chain *c)
{
    size_t n = 0;

    while (n < c->n && !b->in->frames[c->first + n].kernel)
        n++;
    return n;
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
    users = users_of(b, before);
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
    hold(b, p, time, &chain);
    return set_chain(b, time, &chain, 0);
}

static int run_turn(struct builder *b, struct place *p)
{
    p->since = p->turn < p->since ? p->since : p->turn;
    next_chain(b, p);
    return set_on(b, p, p->since);
}

static int run_interval(struct builder *b, struct place *p)
{
    struct dec_offcpu *o = &b->in->offcpu[p->interval];
    const struct dec_chain *at = chain_at_switch(b, p->interval, &p->off);

    if (at && set_chain(b, begin_of(b, p->interval, p->since), at, 0))
        return -1;
    o->call = b->open.n ? (uint32_t)b->open.at[b->open.n - 1].row + 1 : 0;
    p->since = o->end;
    p->interval++;
    if (o->end >= b->segment->end)
        return 0;
    while (p->turn <= o->end)
        next_chain(b, p);
    return set_on(b, p, o->end);
}

/* Turns and switches in the order of their times. */
static int run(struct builder *b)
{
    const struct dec_samples_segment *s = b->segment;
    struct place p = {.interval = interval_at(b, s->start), .turn = turn_of(b, 0), .since = s->start};
    int rc;

    if (p.interval && b->in->offcpu[p.interval - 1].end > s->start)
        p.interval--; /* it was off its CPU as the segment began */
    rc = set_chain(b, s->start, &b->in->chains[b->on.at[0]], s->born ? 0 : TDB_CALL_NO_CALL);
    while (!rc) {
        uint64_t off = p.interval < b->in->noffcpu ? b->in->offcpu[p.interval].start : UINT64_MAX;

        if (off >= s->end)
            off = UINT64_MAX;
        if (p.turn == UINT64_MAX && off == UINT64_MAX)
            break;
        rc = p.turn < off ? run_turn(b, &p) : run_interval(b, &p);
    }
    return rc;
}

int dec_samples_calls(const struct dec_samples *in, const struct dec_samples_segment *segment,
                      dec_calls *calls)
{
    struct builder b = {.in = in, .segment = segment, .calls = calls};
    int rc = sum_offcpu(&b);

    if (!rc)
        rc = sort_out(&b);
    if (!rc)
        rc = run(&b);
    while (b.open.n)
        close_top(&b, segment->end, segment->ended ? 0 : TDB_CALL_NO_RETURN);
    st_vec_free(&b.open);
    st_vec_free(&b.on);
    st_vec_free(&b.off);
    free(b.off_before);
    return rc;
}

/* ------------------------------------------------------------------ */
/* Chains that end in the middle                                        */

static size_t user_frames(const dec_sample_frames *f, const struct dec_chain *c)
{
    size_t n = 0;

    while (n < c->n && !f->at[c->first + n].kernel)
        n++;
    return n;
}

/* The innermost one is left out: that it called anything is not known. */
static size_t common(const dec_sample_frames *f, const struct dec_chain *a, const struct dec_chain *b)
{
    const struct dec_sample_frame *x = f->at + a->first, *y = f->at + b->first;
    size_t nx = user_frames(f, a), ny = user_frames(f, b), k = 0;

    while (k + 1 < nx && k + 1 < ny && x[k].symbol == y[k].symbol && (!k || same_site(&x[k - 1], &y[k - 1])))
        k++;
    return k;
}

static int mend(dec_sample_frames *f, struct dec_chain *chain, const struct dec_chain *like, size_t n)
{
    size_t first = f->n;

    if (st_vec_reserve(f, n + chain->n))
        return -1;
    for (size_t k = 0; k < n; k++)
        f->at[f->n++] = f->at[like->first + k];
    f->at[f->n - 1].site = 0;
    for (size_t k = 0; k < chain->n; k++)
        f->at[f->n++] = f->at[chain->first + k];
    chain->first = (uint32_t)first;
    chain->n += (uint32_t)n;
    return 0;
}

int dec_samples_mend(dec_sample_frames *frames, struct dec_chain *chains, size_t n)
{
    const struct dec_chain *before = NULL;
    size_t i = 0;

    while (i < n) {
        size_t end = i, shared;

        while (end < n && chains[end].broken)
            end++;
        shared = before && end < n ? common(frames, before, &chains[end]) : 0;
        for (; i < end; i++)
            if (shared && mend(frames, &chains[i], before, shared))
                return -1;
        if (end < n)
            before = &chains[end];
        i = end + 1;
    }
    return 0;
}
