/* softirq: its BPF programs and its sentence. */
#include "triggers/kit.h"
#include "triggers/record_text.h"

#include "triggers/softirq.skel.h"

#include <string.h>

/* include/linux/interrupt.h */
static const char *const softirqs[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                       "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

static int number_of(const char *name)
{
    for (size_t i = 0; i < sizeof(softirqs) / sizeof(softirqs[0]); i++)
        if (!strcmp(softirqs[i], name))
            return (int)i;
    return -1;
}

static int take(struct trg_state *s, struct st_error *err)
{
    struct softirq_bpf *bpf = softirq_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    TRG_NO_WAKERS(bpf);
    bpf->rodata->only = number_of(s->how.spec->options->name);
    return 0;
}

static int softirq_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    struct trg_out o = {text, size, 0};

    (void)name;
    (void)ctx;
    trg_put(&o, "was interrupted for");
    trg_put_time(&o, r);
    trg_put_attribute(&o, r, "softirq", " by softirq ", "");
    trg_put(&o, " on CPU %u", r->cpu);
}

static bool set_name(struct trg_options *o, const char *word)
{
    snprintf(o->name, sizeof(o->name), "%s", word);
    return number_of(word) >= 0;
}

static size_t names(const char **out, size_t room)
{
    size_t n = 0;

    for (; n < sizeof(softirqs) / sizeof(softirqs[0]) && n < room; n++)
        out[n] = softirqs[n];
    return n;
}

static const struct trg_name what = {false, "the name of a softirq, as NET_RX", set_name, names};

static const struct trg_key keys[] = {TRG_KEY_END};

const struct trg_kind trg_softirq = {
    .name = "softirq",
    .record_kind = ST_STALL_SOFTIRQ,
    .example = "softirq:NET_RX>1ms",
    .measures = "time in a softirq",
    .takes = &what,
    .keys = keys,
    .open = softirq_open,
    .start = trg_kit_start,
    TRG_KIT_OPS,
    .describe = describe,
};
