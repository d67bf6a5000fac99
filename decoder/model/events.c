/* The branches of CPUs until all of a thread's are there: packed, ring by ring, and read again in the order
 * of time. A ring that is the only one is in that order: its branches become calls at once. */
#include "decoder/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

enum { PACKED_MOST = 64, BATCH = 512 };

/* An event in as few bytes as is quick: a word with the kind, the flags and how long each field is, and the
 * fields. */
struct head {
    uint32_t kind : 4, flags : 16, time : 2, from : 2, to : 2, instructions : 2, cycles : 2, cpu : 1;
};

static const uint8_t lengths[4] = {1, 2, 4, 8}, counts[4] = {0, 1, 2, 4};

static unsigned code8(uint64_t v)
{
    return (unsigned)((v > 0xff) + (v > 0xffff) + (v > 0xffffffff));
}

static unsigned code4(uint64_t v)
{
    return (unsigned)((v > 0) + (v > 0xff) + (v > 0xffff));
}

/* A difference, with its sign in the lowest bit. */
static uint64_t fold(uint64_t to, uint64_t from)
{
    int64_t d = (int64_t)(to - from);

    return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

static uint64_t unfold(uint64_t v, uint64_t from)
{
    return from + (v >> 1 ^ -(v & 1));
}

static uint8_t *put(uint8_t *to, uint64_t value, unsigned size)
{
    memcpy(to, &value, 8);
    return to + size;
}

static uint64_t get(const uint8_t **from, unsigned size)
{
    uint64_t value;

    memcpy(&value, *from, 8);
    *from += size;
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

static uint8_t *pack(uint8_t *to, const struct dec_event *e, const struct model_packed *before)
{
    uint64_t time = e->time - before->time, from = fold(e->from, before->to), target = fold(e->to, e->from);
    uint64_t instructions = e->arg & 0xffffffff, cycles = e->arg >> 32;
    struct head h = {.kind = e->kind & 15,
                     .flags = e->flags,
                     .time = code8(time) & 3,
                     .from = code8(from) & 3,
                     .to = code8(target) & 3,
                     .instructions = code4(instructions) & 3,
                     .cycles = code4(cycles) & 3,
                     .cpu = e->cpu != before->cpu};

    memcpy(to, &h, sizeof(h));
    to = put(to + sizeof(h), time, lengths[h.time]);
    to = put(to, from, lengths[h.from]);
    to = put(to, target, lengths[h.to]);
    to = put(to, instructions, counts[h.instructions]);
    to = put(to, cycles, counts[h.cycles]);
    return h.cpu ? put(to, (uint32_t)e->cpu, 4) : to;
}

static const uint8_t *unpack(const uint8_t *from, struct dec_event *e, const struct model_packed *before)
{
    struct head h;

    memcpy(&h, from, sizeof(h));
    from += sizeof(h);
    e->kind = h.kind;
    e->flags = h.flags;
    e->time = before->time + get(&from, lengths[h.time]);
    e->from = unfold(get(&from, lengths[h.from]), before->to);
    e->to = unfold(get(&from, lengths[h.to]), e->from);
    e->arg = get(&from, counts[h.instructions]);
    e->arg |= get(&from, counts[h.cycles]) << 32;
    e->cpu = h.cpu ? (int32_t)get(&from, 4) : before->cpu;
    return from;
}

static void follow(struct model_packed *p, const struct dec_event *e)
{
    *p = (struct model_packed){e->time, e->to, e->cpu};
}

/* ---- in ---- */

static int begin_run(struct dec_model *m, model_runs *runs, size_t ring, struct model_thread *t,
                     uint64_t time)
{
    struct model_run run = {.thread = t, .time = time, .ring = ring, .order = runs->n};

    m->rings[ring].idle = 0;
    m->rings[ring].packed = (struct model_packed){0};
    return st_vec_push(runs, run) ? st_nomem(&m->rings[ring].error, "the branches of a CPU") : 0;
}

/* At the end of the last run. */
static int keep_event(struct model_ring *ring, model_runs *runs, const struct dec_event *e)
{
    struct model_run *run = &runs->at[runs->n - 1];
    struct st_spool_place place;
    uint8_t *to = st_spool_room(&ring->events, PACKED_MOST, &place, &ring->error);

    if (!to)
        return ring->error.code;
    if (!run->n++)
        run->place = place;
    st_spool_wrote(&ring->events, (size_t)(pack(to, e, &ring->packed) - to));
    follow(&ring->packed, e);
    return 0;
}

/* What the stack builder would do nothing with: not taken, or within one function. */
static bool is_idle(const struct model_view *view, const struct model_thread *t, const struct dec_event *e)
{
    const struct dec_function *f;

    if (e->kind == DEC_COND_JUMP && !(e->flags & DEC_TAKEN))
        return true;
    if ((e->kind != DEC_COND_JUMP && e->kind != DEC_JUMP) || !e->to)
        return false;
    f = dec_symbols_function_by(view->symbols, t->thread->process->space, e->time, e->to);
    return f && !f->inlined && e->from >= f->start && e->from < f->end && e->to != f->start;
}

bool model_is_alone(const struct dec_model *m)
{
    return m->sb->rings.n == 1;
}

/* A new run where the thread may have been on another CPU before: it may begin with any event of its own, or
 * with DEC_ENABLE. */
int model_keep_events(struct dec_model_feed *feed, size_t index, struct model_thread *t,
                      const struct dec_event *events, size_t n)
{
    struct dec_model *m = feed->model;
    struct model_ring *ring = &m->rings[index];
    model_runs *runs = &ring->runs;
    int rc = 0;

    if (model_is_alone(m)) {
        t->view = &feed->view;
        return dec_stack_events(t->stack, events, n, &ring->error);
    }
    ring->events.spill = m->spill;
    if (!runs->n || runs->at[runs->n - 1].thread != t)
        rc = begin_run(m, runs, index, t, events[0].time);
    for (size_t i = 0; i < n && !rc; i++) {
        struct dec_event e = events[i];

        if (is_idle(&feed->view, t, &e) && dec_add_counts(&ring->idle, e.arg))
            continue;
        if (e.kind == DEC_ENABLE)
            rc = begin_run(m, runs, index, t, e.time);
        if (ring->idle && dec_has_counts(e.kind) && dec_add_counts(&e.arg, ring->idle))
            ring->idle = 0;
        if (!rc)
            rc = keep_event(ring, runs, &e);
    }
    return rc;
}

int model_keep_gap(struct dec_model *m, size_t index, struct model_thread *t, uint64_t time, int32_t cpu)
{
    struct dec_event e = {.time = time, .kind = DEC_GAP, .cpu = cpu};
    int rc;

    if (model_is_alone(m))
        return dec_stack_events(t->stack, &e, 1, &m->rings[index].error);
    m->rings[index].events.spill = m->spill;
    rc = begin_run(m, &m->runs, index, t, time);
    return rc ? rc : keep_event(&m->rings[index], &m->runs, &e);
}

/* ---- out ---- */

int model_build_run(const struct model_run *run, struct st_spool_reader *r, struct st_error *err)
{
    struct model_packed before = {0};
    struct dec_event events[BATCH];
    int rc = st_spool_seek(r, run->place, err);

    for (size_t i = 0; i < run->n && !rc;) {
        size_t n = 0;

        for (; n < BATCH && i < run->n && !rc; n++, i++) {
            if (r->at == r->end)
                rc = st_spool_next(r, err);
            if (rc)
                return rc;
            r->at = unpack(r->at, &events[n], &before);
            follow(&before, &events[n]);
        }
        rc = dec_stack_events(run->thread->stack, events, n, err);
    }
    return rc;
}
