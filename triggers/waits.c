/* The places where threads wait for work: read, and set in order. */
#include "triggers/waits.h"
#include "base/syscalls.h"
#include "base/vec.h"
#include "triggers/kit.h"
#include "triggers/privilege.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void trg_kit_idle(const struct trg_state *s, struct idle_config *idle)
{
    const struct trg_options *options = s->how.spec->options;

    memcpy(idle->calls, options->idle, sizeof(options->idle));
    memcpy(idle->calls32, options->idle32, sizeof(options->idle32));
    idle->learned = options->learn_idle && !options->count_idle;
    idle->by_depth = !s->how.config->calls_alone;
    idle->noted = idle->learned || !s->how.config->measure_only;
}

int trg_kit_waits(struct trg_state *s, trg_wait_fn *fn, void *ctx, struct st_error *err)
{
    struct wait_key key, last, *from = NULL;
    struct wait_place place;
    uint32_t left = s->waits ? bpf_map__max_entries(s->waits) : 0; /* the map changes while it is walked */
    int rc = 0;

    while (!rc && left-- && !bpf_map__get_next_key(s->waits, from, &key, sizeof(key))) {
        last = key;
        from = &last;
        if (!bpf_map__lookup_elem(s->waits, &key, sizeof(key), &place, sizeof(place), 0))
            rc = fn(ctx, &key, &place, err);
    }
    return rc;
}

/* ---- in order ---- */

struct total {
    uint32_t pid;

    uint64_t count;
};

struct found {
    struct trg_waited like; /* what all places of the trigger have in common */

    ST_VEC(struct trg_waited) places;

    ST_VEC(struct total) totals;
};

static int keep(void *ctx, const struct wait_key *key, const struct wait_place *place, struct st_error *err)
{
    struct found *f = ctx;
    struct trg_waited w = f->like;
    struct total total = {key->id, place->count};
    int full;

    if (key->of != WAIT_OF_PROCESS)
        return 0;
    w.pid = key->id;
    st_syscall_name((int)(key->syscall & ~WAIT_COMPAT), key->syscall & WAIT_COMPAT, w.syscall,
                    sizeof(w.syscall));
    w.ip = key->ip;
    w.depth = key->depth;
    w.count = place->count;
    w.unusual = place->unusual;
    w.sum_ns = place->sum;
    w.longest_ns = place->longest;
    w.tid = place->tid;
    snprintf(w.comm, sizeof(w.comm), "%.16s", place->comm);
    full = key->ip ? st_vec_push(&f->places, w) : st_vec_push(&f->totals, total);
    return full ? st_nomem(err, "the places of waits") : 0;
}

static int by_order(const void *a, const void *b)
{
    const struct trg_waited *x = a, *y = b;

    if (x->shown && x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->shown && x->count != y->count)
        return x->count < y->count ? 1 : -1;
    if (x->longest_ns != y->longest_ns)
        return x->longest_ns < y->longest_ns ? 1 : -1;
    return x->ip != y->ip ? (x->ip < y->ip ? -1 : 1) : (int)x->depth - (int)y->depth;
}

static void set_totals(struct found *f)
{
    for (size_t i = 0; i < f->places.n; i++)
        for (size_t k = 0; k < f->totals.n; k++)
            if (f->totals.at[k].pid == f->places.at[i].pid)
                f->places.at[i].all = f->totals.at[k].count;
}

int trg_each_wait_of(const struct trg_kind *kind, struct trg_state *state, const struct trg_waited *like,
                     trg_waited_fn *fn, void *ctx, struct st_error *err)
{
    struct found f = {.like = *like};
    int rc = kind->waits ? kind->waits(state, keep, &f, err) : 0;

    set_totals(&f);
    if (f.places.n)
        qsort(f.places.at, f.places.n, sizeof(*f.places.at), by_order);
    for (size_t i = 0; !rc && i < f.places.n; i++)
        rc = fn(ctx, &f.places.at[i], err);
    st_vec_free(&f.places);
    st_vec_free(&f.totals);
    return rc;
}
