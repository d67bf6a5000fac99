/* From the fast walk to events and counts. */
#include "decoder/pt/fast.h"

#include <string.h>

enum { DELTA = INT32_MAX }; /* instructions of an entry at most */

static void put_pending(struct fast *f, enum trail_tag tag, uint32_t of)
{
    uint64_t n = f->pending < DELTA ? f->pending : DELTA;
    f->trail.at[f->trail.n++] = of << TRAIL_BITS | (uint32_t)tag;
    f->trail.at[f->trail.n++] = (uint32_t)n | (f->untold ? TRAIL_UNTOLD : 0);
    f->pending -= n;
    f->untold = false;
    f->quiet.branch = 0;
}

bool fast_entry(struct fast *f, enum trail_tag tag, uint32_t of)
{
    while (f->pending > DELTA) {
        if (!fast_room(f, 2))
            return false;
        put_pending(f, TRAIL_REST, 0);
    }
    if (!fast_room(f, 2))
        return false;
    put_pending(f, tag, of);
    return true;
}

bool fast_entry_ip(struct fast *f, enum trail_tag tag, uint32_t of, uint64_t ip)
{
    if (!fast_entry(f, tag, of) || !fast_room(f, 2))
        return false;
    f->trail.at[f->trail.n++] = (uint32_t)ip;
    f->trail.at[f->trail.n++] = (uint32_t)(ip >> 32);
    return true;
}

bool fast_rest(struct fast *f)
{
    return (!f->pending && !f->untold) || fast_entry(f, TRAIL_REST, 0);
}

void fast_forget(struct fast *f)
{
    f->trail.n = 0;
    f->pending = 0;
    f->untold = false;
    f->quiet.branch = 0;
    memset(&f->idle, 0, sizeof(f->idle));
}

/* The telling of a trail. */
struct teller {
    struct walk *w;

    const struct fast_graph *graph;

    const uint32_t *word;
};

static uint64_t address(const uint32_t *word)
{
    return word[2] | (uint64_t)word[3] << 32;
}

static void on_point(struct teller *t, bool exact)
{
    struct walk *w = t->w;
    uint64_t ns = address(t->word);
    if (ns > w->now || !w->out->timed)
        w->now = ns;
    out_point(w->out, ns, exact, t->word[4]);
}

static int after(struct walk *w, uint64_t from, uint64_t to)
{
    w->begin = false;
    return (from | to) >> 63 ? walk_ask(w) : 0;
}

/* A node left for `to`, or by one of its sides. */
static int on_branch(struct teller *t, uint32_t node, bool taken, const uint64_t *to)
{
    const struct fast_node_info *info = &t->graph->info[node];
    struct walk *w = t->w;
    struct walk_branch b = {.run = &info->run,
                            .next = fast_next(t->graph, info),
                            .target = fast_target(t->graph, info),
                            .taken = taken,
                            .direct = info->run.direct};
    b.to = to ? *to : taken ? b.target : b.next;
    w->ip = fast_from(t->graph, info);
    walk_send(w, &b);
    return after(w, w->ip, b.to);
}

static void on_leave(struct teller *t, uint32_t node)
{
    const struct fast_node_info *info = &t->graph->info[node];
    struct walk *w = t->w;
    struct walk_branch b = {.run = &info->run,
                            .next = fast_next(t->graph, info),
                            .target = fast_target(t->graph, info),
                            .to = address(t->word),
                            .taken = true,
                            .direct = info->run.direct};
    if (info->run.end == CODE_COND_JUMP)
        b.taken = b.to == b.target;
    w->begin = false;
    w->ip = fast_from(t->graph, info);
    walk_send(w, &b);
    out_event(w->out, DEC_DISABLE, 0, w->ip, 0, 0);
}

static int on_async(struct teller *t)
{
    uint64_t from = address(t->word);
    uint64_t to = address(t->word + 2);
    out_event(t->w->out, DEC_ASYNC, DEC_TAKEN, from, to, 0);
    return after(t->w, from, to);
}

static int on_enable(struct teller *t, bool resumed)
{
    int rc = walk_ask(t->w);
    walk_stretch(t->w, address(t->word), resumed ? DEC_RESUMED : 0);
    return rc;
}

/* The place is lost behind the run of a node, which is a return or goes on at no instruction. */
static void on_lost(struct teller *t, uint32_t node, bool no_call)
{
    const struct fast_node_info *info = &t->graph->info[node];
    struct walk *w = t->w;
    w->mapping = w->where.space ? dec_space_find(w->where.space, w->now, info->start) : NULL;
    w->ip = fast_from(t->graph, info);
    w->begin &= info->run.end == CODE_NONE;
    if (no_call)
        walk_call_missing(w);
    else if (info->run.end == CODE_NONE)
        walk_no_code(w);
    else
        walk_bad_code(w);
}

static int on_sync(struct teller *t, bool on)
{
    int rc = walk_ask(t->w);
    if (on)
        walk_stretch(t->w, address(t->word), 0);
    return rc;
}

/* What ran since the entry before. */
static void on_pending(struct walk *w, uint32_t word)
{
    if (word == 0)
        return;
    w->begin = false;
    out_ran(w->out, word & ~TRAIL_UNTOLD);
    if (word & TRAIL_UNTOLD)
        out_untold(w->out);
}

/* One entry; *size becomes how many words it has. */
static int tell(struct teller *t, size_t *size)
{
    uint32_t of = *t->word >> TRAIL_BITS;
    uint64_t to;
    *size = 4;
    on_pending(t->w, t->word[1]);
    switch (*t->word & ((1u << TRAIL_BITS) - 1)) {
    case TRAIL_BRANCH:
        *size = 2;
        return on_branch(t, of >> 1, of & 1, NULL);
    case TRAIL_TO:
        to = address(t->word);
        return on_branch(t, of, true, &to);
    case TRAIL_LEAVE:
        on_leave(t, of);
        return 0;
    case TRAIL_POINT:
        *size = 5;
        on_point(t, of);
        return 0;
    case TRAIL_REST:
        *size = 2;
        return of ? walk_ask(t->w) : 0;
    case TRAIL_ASYNC:
        *size = 6;
        return on_async(t);
    case TRAIL_ENABLE:
        return on_enable(t, of);
    case TRAIL_LOST:
        *size = 2;
        on_lost(t, of >> 1, of & 1);
        return 0;
    case TRAIL_FOUND:
        walk_stretch(t->w, address(t->word), 0);
        return walk_ask(t->w);
    case TRAIL_OFF:
        walk_refused_at(t->w, -pte_no_enable, address(t->word));
        return 0;
    case TRAIL_OVERFLOW:
        walk_overflowed(t->w);
        return of ? on_sync(t, of) : 0;
    case TRAIL_SYNC:
        return on_sync(t, of);
    default:
        t->w->begin = false;
        out_event(t->w->out, DEC_DISABLE, DEC_ASYNC_DISABLE, address(t->word), 0, 0);
        return 0;
    }
}

int fast_tell(struct fast *f)
{
    struct teller t = {.w = f->w, .graph = f->graph};
    struct dec_flow_counts *counts = f->w->counts;
    int rc = 0;
    counts->cond_jump += f->idle.cond_jump;
    counts->jump += f->idle.jump;
    counts->taken += f->idle.taken;
    for (size_t i = 0, size; i < f->trail.n && rc == 0 && f->w->out->rc == 0; i += size) {
        t.word = f->trail.at + i;
        rc = tell(&t, &size);
    }
    fast_forget(f);
    return f->w->out->rc ? WALK_STOP : rc;
}

static void count_node(struct dec_flow_counts *c, const struct code_run *run, uint64_t fell, uint64_t took,
                       bool same)
{
    uint64_t n = fell + took;
    uint64_t *const by_end[] = {
        [CODE_COND_JUMP] = &c->cond_jump, [CODE_JUMP] = &c->jump,         [CODE_CALL] = &c->call,
        [CODE_RETURN] = &c->ret,          [CODE_FAR_CALL] = &c->far_call, [CODE_FAR_RETURN] = &c->far_return,
        [CODE_FAR_JUMP] = &c->far_jump};
    c->instructions += n * (run->count + (run->end != CODE_FALLS));
    if (run->end == CODE_FALLS || run->end >= CODE_PTWRITE)
        return;
    *by_end[run->end] += n;
    c->taken += same ? 0 : took;
    bool far = run->end == CODE_FAR_CALL || run->end == CODE_FAR_RETURN || run->end == CODE_FAR_JUMP;
    c->indirect += !run->direct && !far ? n : 0;
}

/* Visits, below 0 where another walk's were taken back. */
static uint64_t visits_of(const uint32_t *visits, unsigned side)
{
    return (uint64_t)(int32_t)visits[side];
}

/* The nodes that an edge skips count with it. */
static void count_skipped(const struct fast *f, struct dec_flow_counts *counts, uint32_t node, unsigned side)
{
    fast_edge at = fast_graph_succ(f->graph, node, side);
    uint64_t n = visits_of(f->nodes[node].visits, side);
    if (n == 0 || at == f->nodes[node].to[side])
        return;
    while (fast_skips(at, &side)) {
        const struct code_run *run = &f->graph->info[at >> FAST_SHIFT].run;
        count_node(counts, run, side == FAST_FALL ? n : 0, side == FAST_TAKEN ? n : 0,
                   run->direct && run->displacement == 0);
        at = fast_graph_succ(f->graph, at >> FAST_SHIFT, side);
    }
}

void fast_count(struct fast *f, struct dec_flow_counts *counts)
{
    for (uint32_t i = 1; i < f->graph->n; i++) {
        const struct code_run *run = &f->graph->info[i].run;
        uint32_t *far = f->nodes[i].visits, *exact_visits = f->exact_visits[i].visits;
        uint64_t n[2];
        for (unsigned side = 0; side < 2; side++) {
            n[side] = visits_of(far, side) + visits_of(exact_visits, side);
            count_skipped(f, counts, i, side);
        }
        count_node(counts, run, n[FAST_FALL], n[FAST_TAKEN], run->direct && run->displacement == 0);
        memset(far, 0, 2 * sizeof(*far));
        memset(exact_visits, 0, 2 * sizeof(*exact_visits));
    }
    counts->instructions += f->loose;
    f->loose = 0;
}
