/* offcpu: its BPF programs and its sentence. */
#include "base/stall_attribute.h"
#include "triggers/kit.h"
#include "triggers/places.h"
#include "triggers/record_text.h"
#include "triggers/timeout_asked.h"

#include "triggers/offcpu.skel.h"

#include <time.h>

static int configure(struct offcpu_bpf *bpf, const struct trg_open *how, struct st_error *err)
{
    const struct trg_options *options = how->spec->options;
    struct timespec tick = {0, 0};
    struct trg_places places;
    int rc = trg_find_places(&places, err);

    if (rc)
        return rc;
    bpf->rodata->offcpu.states = options->states ? options->states : OFFCPU_ANY;
    bpf->rodata->offcpu.trigger = how->trigger;
    bpf->rodata->offcpu.measure_only = how->config->measure_only;
    bpf->rodata->offcpu.count_idle = options->count_idle;
    bpf->rodata->offcpu.worst = how->spec->worst;
    bpf->rodata->real_offset = trg_real_offset();
    bpf->rodata->offcpu.early = how->config->early;
    bpf->rodata->make_timers_anywhere = places.nolock;
    bpf->rodata->switch_tells_state = trg_tracepoint_arguments("sched_switch") > 3;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick); /* the kernel's TICK_NSEC */
    bpf->rodata->offcpu.tick_ns = tick.tv_nsec ? (uint64_t)tick.tv_nsec : 10000000;
    return 0;
}

/* To measure needs the switches only. */
static void choose_programs(struct offcpu_bpf *bpf, bool measure_only, bool early)
{
    struct bpf_program *firing[] = {bpf->progs.offcpu_waking, bpf->progs.st_output, bpf->progs.offcpu_look_at,
                                    bpf->progs.st_data_ready};

    if (measure_only)
        TRG_NO_WAKERS(bpf);
    for (size_t i = 0; measure_only && i < sizeof(firing) / sizeof(firing[0]); i++)
        bpf_program__set_autoload(firing[i], false);
    if (libbpf_find_vmlinux_btf_id("sk_data_ready", BPF_TRACE_RAW_TP) <= 0) /* from 6.3 */
        bpf_program__set_autoload(bpf->progs.st_data_ready, false);
    bpf_program__set_autoload(bpf->progs.offcpu_scheduled, early && !measure_only);
    bpf_program__set_autoattach(bpf->progs.offcpu_adopt, false);
    bpf_program__set_autoattach(bpf->progs.offcpu_look_at, false);
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct offcpu_bpf *bpf = offcpu_bpf__open();
    int rc;

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE(s, bpf);
    bpf->rodata->uring_told = trg_choose_uring(s, bpf->progs.uring_submit, bpf->progs.uring_complete,
                                               s->how.spec->options->count_idle);
    s->adopt = bpf->progs.offcpu_adopt;
    s->look_at = bpf->progs.offcpu_look_at;
    s->waits = bpf->maps.waits;
    s->pythons = bpf->maps.pythons;
    trg_kit_idle(s, (void *)&bpf->rodata->offcpu.idle);
    choose_programs(bpf, s->how.config->measure_only, s->how.config->early);
    rc = configure(bpf, &s->how, err);
    s->timers_later = bpf->rodata->make_timers_anywhere;
    return rc;
}

static int offcpu_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

/* Of a thread that is throttled, who got its CPU is a bystander. */
static void put_who_took_the_cpu(struct trg_out *o, const struct st_stall_record *r)
{
    enum st_quota quota = st_stall_quota(r);

    if (quota == ST_QUOTA_HELD) {
        trg_put(o, ", throttled by the CPU quota of its control group");
        return;
    }
    trg_put(o, quota == ST_QUOTA_MAYBE ? ", ready to run" : ", preempted");
    if (r->next_tid) {
        trg_put(o, quota == ST_QUOTA_MAYBE ? " while its CPU went to " : " by ");
        trg_put_thread(o, r->next_tid, r->next_comm);
    }
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    trg_put(&o, "off-CPU");
    trg_put_time(&o, r);
    if (!r->state) {
        put_who_took_the_cpu(&o, r);
        trg_put_syscall(&o, r);
        return;
    }
    trg_put_syscall(&o, r);
    trg_put_waker(&o, r, name, ctx);
    trg_put_run_queue(&o, r);
}

static const struct trg_key keys[] = {TRG_KEY_STATE, TRG_KEY_IDLE, TRG_KEY_END};

const struct trg_kind trg_offcpu = {
    .name = "offcpu",
    .record_kind = ST_STALL_OFFCPU,
    .example = "offcpu>20ms",
    .measures = "time off the CPU",
    .keys = keys,
    .open = offcpu_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
