/* quiet: its BPF programs and its sentence. */
#include "triggers/function_kit.h"
#include "triggers/record_text.h"
#include "triggers/tracepoints.h"

#include "triggers/quiet.skel.h"

#include <stdlib.h>
#include <string.h>

/* CATEGORY:NAME; else a function. */
static bool is_tracepoint(const char *what)
{
    return strchr(what, ':') && !strchr(what, '!');
}

/* Conditions on arg0 to arg5 are written as those on fields are. */
static int set_arguments(struct trg_state *s, struct st_error *err)
{
    const struct trg_options *options = s->how.spec->options;
    struct filter *filter = &s->span->filter;

    for (uint32_t i = 0; i < filter->n; i++) {
        const char *name = options->field[i];

        if (filter->term[i].is_text || strncmp(name, "arg", 3) != 0 || name[3] < '0' || name[3] > '5' ||
            name[4])
            return st_fail(err, ST_EUSAGE, "--on: if=: a function has arg0 to arg5, all numbers, and no '%s'",
                           name);
        filter->term[i].source = FILTER_ARG;
        filter->term[i].index = (uint32_t)(name[3] - '0');
    }
    return 0;
}

static int take_function(struct trg_state *s, struct quiet_bpf *bpf, struct st_error *err)
{
    enum trg_kernel_hook hook = TRG_HOOK_FENTRY;
    int rc = trg_function_open(s, &hook, err);

    if (!rc)
        rc = set_arguments(s, err);
    if (rc)
        return rc;
    trg_function_choose(s->own, bpf->progs.quiet_uprobe, bpf->progs.quiet_kprobe, bpf->progs.quiet_fentry,
                        hook);
    bpf_program__set_autoload(bpf->progs.quiet_tracepoint, false);
    bpf_program__set_autoload(bpf->progs.quiet_raw_tracepoint, false);
    return 0;
}

static int take_tracepoint(struct trg_state *s, struct quiet_bpf *bpf, struct st_error *err)
{
    const struct trg_options *options = s->how.spec->options;
    struct trg_tracepoint *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return st_nomem(err, "a tracepoint");
    s->own = t;
    s->free_own = free;
    rc = trg_find_tracepoint(options->name, options, t, &s->span->filter, err);
    s->hook = t->raw ? "raw tracepoint" : "tracepoint";
    bpf_program__set_autoload(bpf->progs.quiet_uprobe, false);
    bpf_program__set_autoload(bpf->progs.quiet_kprobe, false);
    bpf_program__set_autoload(bpf->progs.quiet_fentry, false);
    bpf_program__set_autoload(bpf->progs.quiet_tracepoint, !t->raw);
    bpf_program__set_autoload(bpf->progs.quiet_raw_tracepoint, t->raw);
    return rc;
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct quiet_bpf *bpf = quiet_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    s->own_filter = true;
    s->look_any = true;
    s->span->filter = s->how.spec->options->filter;
    bpf->bss->slots_used = 1; /* the event has the first */
    bpf_program__set_autoattach(bpf->progs.quiet_tracepoint, false);
    bpf_program__set_autoattach(bpf->progs.quiet_raw_tracepoint, false);
    return is_tracepoint(s->how.spec->options->name) ? take_tracepoint(s, bpf, err)
                                                     : take_function(s, bpf, err);
}

static int quiet_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

/* The event is seen before silence counts, which it does from trg_kit_start() on. */
static int quiet_start(struct trg_state *s, struct st_error *err)
{
    struct quiet_bpf *bpf = s->skeleton;
    int rc;

    if (is_tracepoint(s->how.spec->options->name))
        rc = trg_attach_tracepoint(s, s->own, bpf->progs.quiet_tracepoint, bpf->progs.quiet_raw_tracepoint,
                                   err);
    else
        rc = trg_function_attach(s, bpf->progs.quiet_uprobe, bpf->progs.quiet_kprobe, false, err);
    return rc ? rc : trg_kit_start(s, err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o,
            r->flags & ST_STALL_ONGOING ? "did the event last: none for" : "did the event after none for");
    trg_put_time(&o, r);
}

static bool set_name(struct trg_options *o, const char *word)
{
    return is_tracepoint(word) ? trg_set_tracepoint(o, word) : trg_function_name.set(o, word);
}

static const struct trg_name what = {true, "an event: CATEGORY:NAME of a tracepoint, or a function", set_name,
                                     trg_no_words};

static const struct trg_key keys[] = {TRG_KEY_IF_FIELD, TRG_KEY_END};

const struct trg_kind trg_quiet = {
    .name = "quiet",
    .record_kind = ST_STALL_QUIET,
    .example = "quiet:heartbeat>50ms",
    .measures = "time between two events",
    .takes = &what,
    .keys = keys,
    .open = quiet_open,
    .start = quiet_start,
    TRG_KIT_OPS,
    .describe = describe,
};
