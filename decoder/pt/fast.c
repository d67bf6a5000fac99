/* A run of bytes by turns of the fast walk and libipt's. */
#include "decoder/pt/fast.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    COUNT_EVERY = 1 << 28, /* bytes of trace: no edge is visited 2^32 times in them */
};

enum {
    AGAIN = 1 << 16, /* bytes: the pool is not asked sooner where it could not go on, */
    PART = 4,        /* nor before that part of what it was in vain: all of it together is linear then */
};

int fast_new(struct fast **fast, struct fast_graph *graph, struct walk *w, struct st_error *err)
{
    struct fast *f = calloc(1, sizeof(*f));
    if (!f)
        return st_nomem(err, "the fast walk");
    f->w = w;
    f->graph = graph;
    f->delta = 1;
    f->counting = !w->options->emit;
    f->nodes = fast_reserve(FAST_NODES * sizeof(*f->nodes), graph->large);
    if (f->counting)
        f->exact_visits = fast_reserve(FAST_NODES * sizeof(*f->exact_visits), graph->large);
    else
        f->weights = fast_reserve(2 * FAST_NODES * sizeof(*f->weights), graph->large);
    f->hits = calloc(FAST_HITS, sizeof(*f->hits));
    if (!f->nodes || (!f->exact_visits && !f->weights) || !f->hits) {
        fast_free(f);
        return st_nomem(err, "the fast walk");
    }
    *fast = f;
    return 0;
}

void fast_lend(struct fast *f, struct walk *w)
{
    struct fast kept = *f;
    memset(f, 0, sizeof(*f));
    f->w = w;
    f->pool = kept.pool;
    f->graph = kept.graph;
    f->nodes = kept.nodes;
    f->exact_visits = kept.exact_visits;
    f->weights = kept.weights;
    f->hits = kept.hits;
    f->counting = kept.counting;
    f->delta = kept.delta;
    memcpy(f->reached, kept.reached, sizeof(f->reached));
    f->trail = kept.trail;
    f->gaps = kept.gaps;
    f->ahead.headers = kept.ahead.headers;
    f->trail.n = f->gaps.n = f->ahead.headers.n = 0;
}

void fast_free(struct fast *f)
{
    if (!f)
        return;
    fast_pool_free(f->pool);
    if (f->nodes)
        munmap(f->nodes, FAST_NODES * sizeof(*f->nodes));
    if (f->exact_visits)
        munmap(f->exact_visits, FAST_NODES * sizeof(*f->exact_visits));
    if (f->weights)
        munmap(f->weights, 2 * FAST_NODES * sizeof(*f->weights));
    free(f->hits);
    st_vec_free(&f->trail);
    st_vec_free(&f->gaps);
    st_vec_free(&f->ahead.headers);
    free(f);
}

static int find_psbs(const struct pt_run *run, psb_list *psbs)
{
    for (size_t at = pt_find_psb(run->bytes, run->size, 0); at < run->size;
         at = pt_find_psb(run->bytes, run->size, at + 2)) { /* damage may look like one that overlaps */
        if (st_vec_push(psbs, at))
            return -1;
    }
    return 0;
}

/* The first PSB at or behind an offset. */
static size_t psb_from(const psb_list *psbs, uint64_t offset)
{
    size_t low = 0, high = psbs->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (psbs->at[middle] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* libipt's walk stands in front of a PSB+ with that state: the fast one takes it over. False: it cannot. */
static bool take_over(struct fast *f, size_t psb)
{
    const struct walk *w = f->w;
    struct fast_state *s = &f->s;
    if (w->in_tx || w->aborted || w->guest || w->mode_lost)
        return false;
    s->where = w->where;
    s->asked = w->asked;
    s->ask_due = w->now >= w->where.until;
    s->now = w->now;
    s->mode = w->mode;
    s->depth = 0;
    s->top = 0;
    s->epochs[0] = s->epochs[1] = UINT32_MAX;
    s->mode_known = w->mode_known;
    s->modes = (uint8_t)w->modes;
    s->on = w->enabled;
    if (!fast_behind_psb(f, f->begin + psb))
        return false;
    s->on = false; /* `at` is not known yet */
    if (!fast_epochs(f))
        return false;
    s->on = w->enabled;
    if (s->on)
        fast_stand(f, w->ip);
    for (unsigned i = w->depth; i > 0; i--)
        fast_push_ip(f, w->returns[(w->top + WALK_RETURNS - (i - 1)) % WALK_RETURNS]);
    s->times = w->times;
    s->serial = w->serial;
    s->leave = w->leave;
    s->begin = w->begin;
    s->did = false;
    s->lost = false;
    s->missing = w->missing;
    if (w->missing.behind_psb != w->times.behind_psb)
        s->missing.reason = 0;
    return true;
}

/* What telling the trail does otherwise. */
static void hand_counted(const struct fast *f)
{
    struct walk *w = f->w;
    if (!f->counting)
        return;
    w->where = f->s.where;
    w->asked = f->s.asked;
    w->now = f->s.now;
    w->begin = f->s.begin;
}

/* The fast walk could not do the stretch that begins at the PSB: libipt's stands there again. */
static bool hand_back(struct fast *f, size_t psb)
{
    struct walk *w = f->w;
    const struct fast_state *s = &f->s;
    w->enabled = s->on;
    w->ip = s->on ? fast_ip(f, s->at) : 0;
    w->mode = s->mode;
    w->mode_known = s->mode_known;
    w->modes |= s->modes;
    w->in_tx = w->aborted = false;
    w->leave = s->leave;
    w->loop_n = 0;
    w->depth = s->depth;
    w->top = s->top;
    for (unsigned i = 0, slot = s->top; i < s->depth; i++, slot = (slot + WALK_RETURNS - 1) % WALK_RETURNS)
        w->returns[slot] = fast_ip(f, s->returns[slot]);
    w->serial = s->serial;
    w->mapping = NULL;
    hand_counted(f);
    if (!walk_resume(w, psb, &s->times, (uint64_t)(f->from - f->begin)))
        return false;
    w->missing = s->missing;
    w->missing.behind_psb = w->times.behind_psb;
    uint64_t now = dec_clock_ns(&w->options->config.clock, w->times.tsc);
    if (!fast_trailing(f) && w->times.base.known && now > w->now)
        w->now = now;
    return true;
}

static void copy_state(struct fast_state *to, const struct fast_state *from)
{
    memcpy(to, from, from->depth ? sizeof(*to) : offsetof(struct fast_state, stubs[1]));
}

/* Takes back what a stretch that was not finished counted: by walking it once more. */
static void take_back(struct fast *f, const uint8_t *to)
{
    fast_forget(f);
    if (f->counting) {
        copy_state(&f->s, &f->start);
        f->p = f->from;
        f->delta = -f->delta;
        fast_stretch(f, to);
        f->delta = -f->delta;
    }
    copy_state(&f->s, &f->start);
    f->p = f->from;
}

bool fast_step(struct fast *f, const uint8_t *to)
{
    copy_state(&f->start, &f->s);
    f->from = f->p;
    size_t gaps = f->gaps.n;
    fast_forget(f);
    if (fast_stretch(f, to))
        return true;
    take_back(f, to);
    f->gaps.n = gaps;
    return false;
}

static void count_all(struct fast *f)
{
    fast_count(f, f->w->counts);
    if (f->pool)
        fast_pool_count(f->pool, f->w->counts);
}

/* By all threads of the pool, where there is enough to do. Returns the bytes that it walked in vain. */
static size_t go_on_together(struct fast *f, const psb_list *psbs, size_t *at)
{
    while (*at + 1 < psbs->n) {
        size_t end = *at, first = *at;
        while (end + 1 < psbs->n && psbs->at[end] - psbs->at[first] < COUNT_EVERY)
            end++;
        fast_pool_walk(f->pool, psbs, at, end);
        if (*at > first)
            f->w->out->idle &= !f->s.did;
        count_all(f);
        if (*at < end)
            return psbs->at[end] - psbs->at[*at];
    }
    return 0;
}

/* Stretches from PSB *at on, as many as can be done. 0: to the end; WALK_LOST: *at is one for libipt's walk.
 */
static int go_on(struct fast *f, const psb_list *psbs, size_t *at)
{
    size_t counted = psbs->at[*at];
    for (; *at < psbs->n; ++*at) {
        if (f->pool && psbs->at[*at] >= f->pool_from) {
            size_t vain = go_on_together(f, psbs, at) / PART;
            f->pool_from = psbs->at[*at] + (vain > AGAIN ? vain : AGAIN);
        }
        const uint8_t *to = *at + 1 < psbs->n ? f->begin + psbs->at[*at + 1] : f->end;
        if (!fast_step(f, to))
            return WALK_LOST;
        st_progress_add((uint64_t)(to - f->begin) - psbs->at[*at]);
        int rc = f->counting ? 0 : fast_tell(f);
        if (rc)
            return rc;
        if (!f->counting)
            continue;
        fast_count_gaps(f, 0, f->gaps.n);
        f->gaps.n = 0;
        f->w->out->idle &= !f->s.did;
        if (psbs->at[*at] - counted > COUNT_EVERY) {
            count_all(f);
            counted = psbs->at[*at];
        }
    }
    return 0;
}

/* Whether libipt holds a FUP at PSB `to` that no TIP has answered: it goes on waiting past the PSB, and would
 * forget it if it were set there anew. `waits`: at PSB `from`. */
static bool fup_waits(const struct fast *f, size_t from, size_t to, bool waits)
{
    struct pt_packet_decoder *packets = f->w->times.ahead;
    struct pt_packet packet;
    uint64_t offset;
    bool header = false;
    if (pt_pkt_sync_set(packets, from) < 0)
        return true;
    while (pt_pkt_get_offset(packets, &offset) == 0 && offset < to) {
        if (pt_pkt_next(packets, &packet, sizeof(packet)) < 0)
            return true;
        if (packet.type == ppt_psb || packet.type == ppt_psbend)
            header = packet.type == ppt_psb;
        else if (packet.type == ppt_fup)
            waits |= !header;
        else if (packet.type == ppt_tip || packet.type == ppt_tip_pge || packet.type == ppt_tip_pgd)
            waits = false;
    }
    return waits;
}

/* libipt's walk, until it stands at a PSB that the fast one can take over (*at), or at the end. `rc`: as
 * walk_run(). */
static int go_slowly(struct fast *f, const psb_list *psbs, int rc, size_t *at, enum dec_slow why)
{
    struct walk *w = f->w;
    bool waits = false;
    for (;;) {
        size_t next = *at + 1, from = psbs->at[*at];
        w->counts->slow++;
        w->counts->slow_by[why]++;
        why = DEC_SLOW_STILL;
        w->until = next < psbs->n ? psbs->at[next] : UINT64_MAX - 1;
        rc = walk_run(w, rc);
        if (rc != WALK_PSB)
            return rc;
        /* The event was read at the PSBEND. */
        *at = psb_from(psbs, w->event_offset) - 1;
        st_progress_add(psbs->at[*at] - from);
        waits = fup_waits(f, from, psbs->at[*at], waits);
        /* Where code and trace do not fit, bits from behind the PSB+ may have led to it. */
        bool ahead = w->times.offset > w->event_offset;
        /* libipt could not be set to that PSB again if damage followed it. */
        if (!waits && !ahead && take_over(f, psbs->at[*at]) && f->p == f->begin + w->event_offset + 2 &&
            fast_ahead_is_whole(f)) {
            if (w->enabled)
                walk_time(w, &w->event_time);
            f->s.serial = w->serial;
            f->s.now = w->now;
            return WALK_PSB;
        }
        rc = 0;
    }
}

/* Goes to the next PSB, which must be a new one. WALK_PSB: the fast walk stands there; WALK_END: there is
 * none. */
static int sync_both(struct fast *f, const psb_list *psbs, size_t *at, int *slow)
{
    struct walk *w = f->w;
    uint64_t offset;
    *slow = walk_sync(w);
    if (pt_qry_get_sync_offset(w->query, &offset) < 0)
        return *slow ? *slow : WALK_END;
    size_t psb = psb_from(psbs, offset);
    if (*slow == WALK_END || *slow < 0 || *slow == WALK_STOP)
        return *slow;
    if (*at != SIZE_MAX && psb <= *at)
        return WALK_END;
    *at = psb;
    if (*slow == 0 && psb < psbs->n && psbs->at[psb] == offset && take_over(f, offset))
        return WALK_PSB;
    return WALK_LOST;
}

static int turns(struct fast *f, const psb_list *psbs)
{
    size_t at = SIZE_MAX;
    int rc = WALK_SYNC, slow = 0;
    for (;;) {
        if (rc == WALK_SYNC) {
            rc = sync_both(f, psbs, &at, &slow);
            if (rc == WALK_LOST)
                rc = go_slowly(f, psbs, slow, &at, DEC_SLOW_BEGIN);
        }
        while (rc == WALK_PSB) {
            rc = go_on(f, psbs, &at);
            if (rc == 0)
                hand_counted(f);
            if (rc != WALK_LOST)
                break;
            slow = f->s.lost ? WALK_LOST : 0;
            rc = hand_back(f, psbs->at[at]) ? go_slowly(f, psbs, slow, &at, f->why) : WALK_SYNC;
        }
        if (rc != WALK_SYNC)
            return rc;
    }
}

int fast_run(struct fast *f, const struct pt_run *run)
{
    struct walk *w = f->w;
    psb_list psbs = {0};
    int rc = find_psbs(run, &psbs) ? st_nomem(w->err, "the list of PSBs") : 0;
    f->begin = run->bytes;
    f->end = run->bytes + run->size;
    f->ahead.headers.n = 0;
    f->pool_from = 0;
    if (rc == 0)
        rc = turns(f, &psbs);
    if (f->counting)
        count_all(f);
    st_vec_free(&psbs);
    w->until = UINT64_MAX;
    out_flush(w->out);
    return w->out->rc ? w->out->rc : rc < 0 ? rc : 0;
}
