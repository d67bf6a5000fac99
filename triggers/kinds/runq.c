/* runq: its BPF programs and its sentence. */
#include "base/stall_attribute.h"
#include "base/units.h"
#include "triggers/kit.h"
#include "triggers/record_text.h"

#include "triggers/runq.skel.h"

#include <stdlib.h>

static int take(struct trg_state *s, struct st_error *err)
{
    const struct trg_options *options = s->how.spec->options;
    struct runq_bpf *bpf = runq_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    bpf->rodata->states = options->states ? options->states : OFFCPU_ANY;
    bpf->rodata->switch_tells_state = trg_tracepoint_arguments("sched_switch") > 3;
    return 0;
}

static int runq_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};
    const char *held = trg_attribute(r, "held_ns");
    char time[24];

    (void)name;
    (void)ctx;
    trg_put(&o, "waited");
    trg_put_time(&o, r);
    trg_put(&o, " for CPU %u", r->cpu);
    if (st_stall_quota(r) == ST_QUOTA_HELD) {
        trg_put(&o, ", throttled by the CPU quota of its control group");
        return;
    }
    if (!r->next_tid)
        return;
    trg_put(&o, ", which ran ");
    trg_put_thread(&o, r->next_tid, r->next_comm);
    if (held)
        trg_put(&o, " for %s of it", st_format_duration(strtoll(held, NULL, 10), time, sizeof(time)));
}

static const struct trg_key keys[] = {TRG_KEY_STATE, TRG_KEY_END};

const struct trg_kind trg_runq = {
    .name = "runq",
    .record_kind = ST_STALL_RUNQ,
    .example = "runq>2ms",
    .measures = "time runnable without a CPU",
    .keys = keys,
    .open = runq_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
