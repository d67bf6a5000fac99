/* Whose branches those in the ring of a CPU are.
 *
 * The side-band tells when a thread left the CPU and when the next one came, both from within the scheduler:
 * in between the kernel's code belongs first to the one, then to the other. They change at __switch_to (the
 * branch to it is the old thread's last), or where the trace was stopped and started in between. */
#include "decoder/sideband/sideband.h"

#include <stdlib.h>

struct ring_state {
    const struct dec_cpu *cpu; /* NULL: no context switches are known */

    size_t turn;

    bool handed_over; /* to the next turn's thread, before its time */

    bool running; /* the trace is on, in the kernel */
};

struct dec_turns {
    struct dec_sideband *sb;

    struct ring_state *rings;

    dec_emit_fn *emit;

    void *ctx;
};

int dec_turns_new(struct dec_sideband *sb, dec_emit_fn *emit, void *ctx, struct dec_turns **turns,
                  struct st_error *err)
{
    struct dec_turns *t = calloc(1, sizeof(*t));

    if (t)
        t->rings = calloc(sb->rings.n + 1, sizeof(*t->rings));
    if (!t || !t->rings) {
        free(t);
        return st_nomem(err, "the turns of threads");
    }
    t->sb = sb;
    t->emit = emit;
    t->ctx = ctx;
    for (size_t i = 0; i < sb->rings.n; i++)
        for (size_t j = 0; j < sb->cpus.n; j++)
            if (sb->rings.at[i].cpu >= 0 && sb->cpus.at[j].cpu == sb->rings.at[i].cpu &&
                sb->cpus.at[j].turns.n)
                t->rings[i].cpu = &sb->cpus.at[j];
    *turns = t;
    return 0;
}

void dec_turns_free(struct dec_turns *t)
{
    if (!t)
        return;
    free(t->rings);
    free(t);
}

static bool may_hand_over(const struct ring_state *r)
{
    return !r->handed_over && r->turn + 1 < r->cpu->turns.n;
}

/* The next turn begins: by its time, unless the old thread is still on its way out. */
static void move_on(struct ring_state *r, const struct dec_event *e, bool wait)
{
    const struct dec_turn *turns = r->cpu->turns.at;

    while (r->turn + 1 < r->cpu->turns.n && turns[r->turn + 1].start <= e->time) {
        bool last_step = r->turn + 2 >= r->cpu->turns.n || turns[r->turn + 2].start > e->time;

        if (wait && last_step && !r->handed_over && r->running && e->kind != DEC_ENABLE &&
            (e->flags & DEC_KERNEL_FROM))
            return;
        r->turn++;
        r->handed_over = false;
    }
}

static const struct dec_thread *owner(struct dec_turns *t, struct ring_state *r, const struct dec_event *e)
{
    const struct dec_turn *turns = r->cpu->turns.at;
    const struct dec_thread *thread;

    move_on(r, e, t->sb->switch_to != 0);
    if (e->kind == DEC_ENABLE && e->time > turns[r->turn].end && may_hand_over(r))
        r->handed_over = true;
    thread = turns[r->turn + r->handed_over].thread;
    if (t->sb->switch_to && e->to == t->sb->switch_to && may_hand_over(r))
        r->handed_over = true;
    if (e->kind == DEC_ENABLE)
        r->running = e->flags & DEC_KERNEL_TO;
    else if (e->kind != DEC_POWER)
        r->running = e->kind != DEC_DISABLE && e->kind != DEC_GAP && (e->flags & DEC_KERNEL_TO);
    return thread;
}

int dec_turns_emit(void *ctx, const struct dec_stream_info *info, const struct dec_event *events, size_t n,
                   const char *detail)
{
    struct dec_turns *t = ctx;
    struct ring_state *r = &t->rings[info->ring];
    const struct dec_thread *now = NULL;
    struct dec_stream_info of = *info;
    size_t first = 0;
    int rc = 0;

    if (!r->cpu)
        return t->emit(t->ctx, info, events, n, detail);
    for (size_t i = 0; i < n && !rc; i++) {
        const struct dec_thread *next = owner(t, r, &events[i]);

        if (now && next != now) {
            rc = t->emit(t->ctx, &of, &events[first], i - first, NULL);
            first = i;
        }
        now = next;
        of.pid = now->process->pid;
        of.tid = now->tid;
    }
    return rc || first == n ? rc : t->emit(t->ctx, &of, &events[first], n - first, detail);
}
