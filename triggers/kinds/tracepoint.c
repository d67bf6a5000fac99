/* tracepoint: its BPF programs and its sentence. */
#include "triggers/kit.h"
#include "triggers/record_text.h"
#include "triggers/tracepoints.h"

#include "triggers/tracepoint.skel.h"

#include <stdlib.h>
#include <string.h>

static int find(struct trg_state *s, struct tracepoint_bpf *bpf, struct st_error *err)
{
    const struct trg_options *options = s->how.spec->options;
    struct trg_tracepoint *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return st_nomem(err, "a tracepoint");
    s->own = t;
    s->free_own = free;
    s->own_filter = true;
    s->span->filter = options->filter;
    rc = trg_find_tracepoint(options->name, options, t, &s->span->filter, err);
    bpf->rodata->shown_n = t->shown_n;
    memcpy((void *)bpf->rodata->shown, t->shown, sizeof(t->shown));
    memcpy((void *)bpf->rodata->shown_name, t->shown_name, sizeof(t->shown_name));
    return rc;
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct tracepoint_bpf *bpf = tracepoint_bpf__open();
    const struct trg_tracepoint *t;
    int rc;

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    rc = find(s, bpf, err);
    if (rc)
        return rc;
    t = s->own;
    s->hook = t->raw ? "raw tracepoint" : NULL;
    bpf_program__set_autoload(bpf->progs.tracepoint_hit, !t->raw);
    bpf_program__set_autoload(bpf->progs.tracepoint_raw_hit, t->raw);
    bpf_program__set_autoattach(bpf->progs.tracepoint_hit, false);
    bpf_program__set_autoattach(bpf->progs.tracepoint_raw_hit, false);
    return 0;
}

static int tracepoint_start(struct trg_state *s, struct st_error *err)
{
    struct tracepoint_bpf *bpf = s->skeleton;
    int rc = trg_kit_start(s, err);

    return rc ? rc
              : trg_attach_tracepoint(s, s->own, bpf->progs.tracepoint_hit, bpf->progs.tracepoint_raw_hit,
                                      err);
}

static int tracepoint_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "hit the tracepoint");
    trg_put_attributes(&o, r);
}

static const struct trg_name what = {true, "a tracepoint: CATEGORY:NAME", trg_set_tracepoint, trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_IF_FIELD, TRG_KEY_END};

const struct trg_kind trg_tracepoint = {
    .name = "tracepoint",
    .record_kind = ST_STALL_TRACEPOINT,
    .example = "tracepoint:block:block_rq_issue",
    .measures = "time between hits",
    .takes = &what,
    .hits = true,
    .keys = keys,
    .open = tracepoint_open,
    .start = tracepoint_start,
    TRG_KIT_OPS,
    .describe = describe,
};
