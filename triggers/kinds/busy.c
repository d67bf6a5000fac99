/* busy: its BPF programs and its sentence. */
#include "base/units.h"
#include "triggers/kit.h"
#include "triggers/record_text.h"

#include "triggers/busy.skel.h"

#include <stdlib.h>

static int take(struct trg_state *s, struct st_error *err)
{
    struct busy_bpf *bpf = busy_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    s->waits = bpf->maps.waits;
    if (s->how.config->measure_only) {
        TRG_NO_WAKERS(bpf);
        bpf_program__set_autoload(bpf->progs.span_waking, false);
    }
    return 0;
}

static int busy_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

/* Which system call it spent most of the time in, or is in. */
static void put_longest(struct trg_out *o, const struct st_stall_record *r)
{
    const char *ns = trg_attribute(r, "syscall_ns");
    char time[24];

    if (ns)
        trg_put(o, " %s", st_format_duration(strtoll(ns, NULL, 10), time, sizeof(time)));
    else /* since when is not measured */
        trg_put(o, " now");
    trg_put_syscall(o, r);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "was away from its event loop for");
    trg_put_time(&o, r);
    if (r->syscall >= 0)
        trg_put(&o, r->flags & ST_STALL_ONGOING ? "," : ", at most");
    if (r->syscall >= 0)
        put_longest(&o, r);
}

static const struct trg_key keys[] = {TRG_KEY_IDLE, TRG_KEY_END};

const struct trg_kind trg_busy = {
    .name = "busy",
    .record_kind = ST_STALL_BUSY,
    .example = "busy>5ms",
    .measures = "time away from the event loop",
    .keys = keys,
    .open = busy_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
