/* One ring: its runs, and the walk over each of them. */
#include "decoder/pt/flow.h"

#include "base/log.h"
#include "decoder/pt/config.h"
#include "decoder/pt/fast.h"
#include "decoder/pt/prepare.h"
#include "decoder/pt/session.h"
#include "decoder/pt/walk.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Bytes were lost before this run: the gap goes to whom the trace before belonged. */
static void gap_before(struct walk *w, enum dec_gap reason)
{
    static const char *const details[] = {
        [DEC_GAP_OVERWRITTEN] = "older trace was overwritten in the ring",
        [DEC_GAP_LOST] = "the kernel had no room for more trace in the ring",
    };
    out_gap(w->out, reason, NULL, details[reason]);
}

static void know_errata(struct walk *w, const struct pt_errata *errata)
{
    w->bdm64 = errata->bdm64;
    w->bdm70 = errata->bdm70;
    w->skd007 = errata->skd007;
    w->skd022 = errata->skd022;
    w->skl014 = errata->skl014 && w->options->config.filtered;
    w->odd_overflows = errata->skd007 || errata->skd010 || errata->apl11 || errata->apl12;
}

static int walk_bytes(struct walk *w, struct fast *fast, struct pt_run *run)
{
    struct pt_config config;
    if (w->options->config.event_trace && pt_take_event_trace(run, &w->event_trace, w->err))
        return ST_ENOMEM;
    pt_configure(&config, &w->options->config, run->bytes, run->size);
    w->guests = pt_run_has_guests(run);
    w->guest = w->had_guest = w->mode_lost = false;
    w->modes = 0;
    know_errata(w, &config.errata);
    w->missing = (struct walk_missing){0}; /* of this run's PSBs */
    w->query = pt_qry_alloc_decoder(&config);
    if (!w->query)
        return st_nomem(w->err, "libipt's decoder");
    w->status = 0;
    w->serial = 0;
    w->counted = 0;
    int rc = times_init(&w->times, &w->options->config, &config, w->err);
    if (rc == 0) {
        w->until = UINT64_MAX;
        rc = fast ? fast_run(fast, run) : walk_run(w, WALK_SYNC);
        times_free(&w->times);
    }
    pt_qry_free_decoder(w->query);
    w->query = NULL;
    w->counts->bytes += run->size;
    return rc;
}

static int walk_runs(struct walk *w, struct fast *fast, pt_runs *runs)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < runs->n; i++) {
        if (runs->at[i].before)
            gap_before(w, runs->at[i].before);
        else if (w->options->overwritten)
            w->gap_first = DEC_GAP_OVERWRITTEN;
        rc = w->out->rc ? w->out->rc : walk_bytes(w, fast, &runs->at[i]);
    }
    return rc;
}

/* There is no room for the tables of the fast walk, of which little is used (vm.overcommit_memory 2, a limit
 * of the address space); libipt's walk needs none. */
static void tell_of_slow_walk(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        st_log_warn("the kernel grants too little address space for the fast decoder; decoding goes on more "
                    "slowly, with the same result (see vm.overcommit_memory, ulimit -v)");
}

/* Runs of a ring, with what the walk was lent. */
static int walk_lent(struct walk *w, struct session_lent *lent, pt_runs *runs)
{
    const struct dec_flow_options *options = w->options;
    struct st_error ignored = {0};
    w->code = lent->code;
    if (!lent->fast && !options->reference && !options->config.no_tnt)
        tell_of_slow_walk();
    if (lent->fast && !lent->fast->pool && options->threads > 1 && !options->emit)
        fast_pool_new(&lent->fast->pool, lent->fast, options->threads, &ignored); /* else it walks alone */
    return walk_runs(w, lent->fast, runs);
}

static size_t bytes_of(const pt_runs *runs)
{
    size_t bytes = 0;
    for (size_t i = 0; i < runs->n; i++)
        bytes += runs->at[i].size;
    return bytes;
}

static int walk_all(const struct dec_flow_options *options, pt_runs *runs, struct dec_flow_counts *counts,
                    struct st_error *err)
{
    struct flow_out out;
    struct dec_session *own = NULL, *session = options->session;
    struct session_lent lent;
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return st_nomem(err, "the flow decoder");
    int rc = out_init(&out, options, counts, err);
    if (rc) {
        free(w);
        return rc;
    }
    w->options = options;
    w->out = &out;
    w->counts = counts;
    w->err = err;
    w->where = (struct dec_where){.pid = -1, .tid = -1, .cpu = -1};
    if (!session)
        rc = dec_session_new(bytes_of(runs), &own, err);
    if (own)
        session = own;
    if (rc == 0)
        rc = session_lend(session, w, &lent, err);
    if (rc == 0) {
        rc = walk_lent(w, &lent, runs);
        session_return(session, &lent);
    }
    dec_session_free(own);
    out_free(&out);
    free(w);
    return rc;
}

void dec_flow_counts_add(struct dec_flow_counts *to, const struct dec_flow_counts *more)
{
    bool first = to->time_points == 0;
    to->instructions += more->instructions;
    to->cond_jump += more->cond_jump;
    to->jump += more->jump;
    to->call += more->call;
    to->ret += more->ret;
    to->far_call += more->far_call;
    to->far_return += more->far_return;
    to->far_jump += more->far_jump;
    to->taken += more->taken;
    to->indirect += more->indirect;
    to->errors += more->errors;
    to->overflows += more->overflows;
    to->gaps += more->gaps;
    to->bytes += more->bytes;
    to->slow += more->slow;
    for (unsigned i = 0; i < DEC_SLOW_CAUSES; i++)
        to->slow_by[i] += more->slow_by[i];
    if (more->time_points && (first || more->first_time < to->first_time))
        to->first_time = more->first_time;
    if (more->time_points && (first || more->last_time > to->last_time))
        to->last_time = more->last_time;
    to->time_points += more->time_points;
}

int dec_flow_run(const struct dec_flow_options *options, const struct dec_piece *pieces, size_t npieces,
                 struct dec_flow_counts *counts, struct st_error *err)
{
    struct dec_flow_counts unused = {0};
    pt_runs runs = {0};
    int rc = pt_runs_join(options, pieces, npieces, &runs, err);
    if (rc == 0)
        rc = walk_all(options, &runs, counts ? counts : &unused, err);
    pt_runs_free(&runs);
    return rc;
}
